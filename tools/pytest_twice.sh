#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# pytest_twice.sh - runs the tests of a folder; the few that fail run once more, by themselves, after all.
#
# usage: pytest_twice.sh FOLDER LOGS [OPTION-OF-PYTEST...]     logs: LOGS-first.log, LOGS-again.log
# Tests of daemons share processors with whatever else a machine does, and one of hundreds may fail by
# that. What passes alone is told as UNSTEADY, and fails a long run only (BATCHPLANE_LONG=1); what fails
# twice fails.
set -euo pipefail

# More than these are no flakes: repeating them would only hide for minutes that something is broken.
readonly kMostRepeated=10
python=$(cd "$(dirname "$0")/.." && pwd)/.venv/bin/python
readonly python

# Runs pytest into a log and onto the screen; what it remembers of failures stands beside the log.
run_into() {
  local log=$1
  shift
  "$python" -m pytest -q -o "cache_dir=$cache" "$@" 2>&1 | tee "$log"
}

# How many tests failed; those whose fixtures failed count too.
n_failed() {
  "$python" - "$cache/v/cache/lastfailed" <<'PYTHON'
import json, pathlib, sys

path = pathlib.Path(sys.argv[1])
print(len(json.loads(path.read_text())) if path.exists() else 0)
PYTHON
}

# A folder that `pytest --last-failed` made of its failures: all of it passed when as many passed as failed.
repeat() {
  local n_repeated=$1 n_passed name
  echo "== those that failed, by themselves"
  run_into "$again" --last-failed -rfEsp "$folder" || true
  n_passed=$(grep -c '^PASSED ' "$again" || true)
  while read -r name; do
    echo "UNSTEADY: $name failed among the others and passed by itself: $first, $again"
  done < <(sed -n 's/^PASSED //p' "$again")
  # The last line counts the whole run, and not only what was repeated.
  echo "$(closing_line) once, of these $n_passed of $n_repeated passed by themselves"
  [[ $n_passed == "$n_repeated" && ${BATCHPLANE_LONG:-0} != 1 ]]
}

closing_line() { grep -E '^[0-9]+ .* in [0-9.]+s' "$first" | tail -n 1; }

main() {
  local code=0 n
  rm -rf "$cache" "$first" "$again"
  run_into "$first" -rsfE "$@" "$folder" || code=$?
  [[ $code != 0 ]] || return 0
  n=$(n_failed)
  # Other codes are no failed tests: broken files, a crash, nothing found.
  if [[ $code != 1 ]] || ((n == 0 || n > kMostRepeated)); then
    echo "not repeated: exit code $code, $n failed"
    closing_line || true
    return 1
  fi
  repeat "$n"
}

folder=$1 first=$2-first.log again=$2-again.log cache=$2-cache
shift 2
main "$@"
