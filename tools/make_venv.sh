#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# make_venv.sh - makes .venv with the locked Python packages and this tree's own; quick when it is up to date.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly kStamp=.venv/.stamp

find_python() {
  local candidate
  for candidate in python3.11 /usr/bin/python3.11 python3.12 python3.13 python3 /usr/bin/python3; do
    # ensurepip is what Debian leaves out without python3-venv; a venv without pip is of no use.
    if command -v "$candidate" >/dev/null &&
      "$candidate" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      echo "$candidate"
      return 0
    fi
  done
  return 1
}

main() {
  local python wanted
  # The path is part of it: a venv that was moved or copied does not work.
  wanted=$({ pwd; cat requirements.lock pyproject.toml; } | sha256sum)
  if [[ -x .venv/bin/python && -f $kStamp && $(<"$kStamp") == "$wanted" ]]; then
    return 0
  fi
  if ! python=$(find_python); then
    echo "python: needs Python 3.11 or newer with venv and ensurepip; install Debian's python3-venv" >&2
    return 1
  fi
  if [[ ! -x .venv/bin/python ]] || ! .venv/bin/python -m pip --version >/dev/null 2>&1 ||
    [[ $(head -1 .venv/.place 2>/dev/null) != "$PWD" ]]; then
    echo "python: creating .venv with $python" >&2
    "$python" -m venv --clear .venv
    pwd >.venv/.place
  fi
  echo "python: installing the packages of requirements.lock into .venv" >&2
  .venv/bin/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
  .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps \
    --no-build-isolation -e .
  echo "$wanted" >"$kStamp"
}

main "$@"
