#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# lint.sh - one linter, or all of them, over the tree; or formats it in place.
#
# usage: lint.sh fmt | all | format | tidy | ruff | mypy | layers | sizes | shell
# Environment: CLANG_TIDY_ALL=1 every C++ file, not only changed ones; CLANG_TIDY_BASE=commit to compare
# with; CLANG_TIDY_SECONDS (100): no file is begun later in a routine run; JOBS.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly kClangFormat=clang-format-16 kClangTidy=clang-tidy-16 kRuff=.venv/bin/ruff

# Without git (an unpacked archive) the folders themselves are the list.
files_like() {
  if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
    git ls-files --cached --others --exclude-standard -- "$@" | while read -r file; do
      [[ -f $file ]] && echo "$file"
    done
  else
    local pattern
    for pattern in "$@"; do
      find src tests bench python tools -name "$pattern" -type f | sort
    done
  fi
}

check_format() {
  files_like '*.cc' '*.h' '*.inl' | xargs -r -n 40 -P "${JOBS:-$(nproc)}" \
    "$kClangFormat" --dry-run -Werror
  echo "clang-format: good"
}

format_in_place() {
  files_like '*.cc' '*.h' '*.inl' | xargs -r "$kClangFormat" -i
  "$kRuff" format --quiet .
  "$kRuff" check --quiet --fix . || true
}

# Files to look at: all that the build compiles, or those of tools/tidy_files.py.
tidy_files() {
  if [[ ${CLANG_TIDY_ALL:-0} == 1 ]]; then
    # The other packet backend has no command line to go by.
    files_like 'src/*.cc' | while read -r file; do
      ! grep -q "$file\"" build-tidy/compile_commands.json || echo "$file"
    done
  else
    # By name hash, so that different commits begin with different files.
    python3 tools/tidy_files.py build-tidy/compile_commands.json |
      while read -r file; do echo "$(git hash-object "$file" 2>/dev/null) $file"; done | sort | sed 's/^[^ ]* //'
  fi
}

# One file, unless the time for all of them has passed.
tidy_one() {
  if [[ $2 != 0 ]] && ((EPOCHSECONDS > $2)); then
    echo "clang-tidy: no time for $1"
  else
    "$kClangTidy" -p build-tidy --quiet "$1" 2>&1 || echo "clang-tidy: failed"
  fi
}

run_tidy() {
  local until=0 files log
  tools/build.sh tidy build.ninja
  mapfile -t files < <(tidy_files)
  if [[ ${#files[@]} == 0 ]]; then
    echo "clang-tidy: no C++ file found to look at"
    return 1
  fi
  [[ ${CLANG_TIDY_ALL:-0} == 1 ]] || until=$((EPOCHSECONDS + ${CLANG_TIDY_SECONDS:-100}))
  log=$(mktemp)
  printf '%s\n' "${files[@]}" | xargs -P "${JOBS:-$(nproc)}" -I '{}' "$0" tidy-one '{}' "$until" >"$log"
  told_tidy "$log" "${#files[@]}" || { rm "$log"; return 1; }
  rm "$log"
}

# What was found, without the noise about headers of others; and how many files of $2 were not reached.
told_tidy() {
  awk -v all="$2" -v seconds="${CLANG_TIDY_SECONDS:-100}" '
       /^clang-tidy: failed$/ { bad = 1; next }
       /^clang-tidy: no time for / { left++; next }
       !/^[0-9]+ warnings? |^Suppressed |^Use -header-filter|^$/ { print }
       END {
         files = all - left " of " all " changed files"
         if (ENVIRON["CLANG_TIDY_ALL"] == 1) files = all " files, all that are compiled"
         if (left) files = files "; " left " not reached in " seconds " s, CLANG_TIDY_ALL=1 looks at all"
         print "clang-tidy: " (bad ? "FAILED" : "good") " (" files ")"
         exit bad
       }' "$1"
}

run_shell_check() {
  local file
  while read -r file; do
    bash -n "$file"
  done < <(files_like '*.sh' '.ci/run')
  echo "shell syntax: good"
}

run_ruff() {
  "$kRuff" check . && "$kRuff" format --check --quiet . && echo "ruff: good"
}

run_mypy() {
  .venv/bin/mypy && .venv/bin/mypy --strict tools/*.py
}

main() {
  local is_bad=0 step
  case "$1" in
    fmt) format_in_place ;;
    format) check_format ;;
    tidy) run_tidy ;;
    tidy-one) tidy_one "$2" "$3" ;;
    tidy-told) told_tidy "$2" "$3" ;;
    ruff) run_ruff ;;
    mypy) run_mypy ;;
    layers) python3 tools/check_layers.py ;;
    sizes) python3 tools/lint_sizes.py ;;
    shell) run_shell_check ;;
    all)
      for step in format ruff mypy layers sizes shell tidy; do
        "$0" "$step" || is_bad=1
      done
      return "$is_bad"
      ;;
    *) echo "lint.sh: no step '$1'" >&2; return 2 ;;
  esac
}

main "$@"
