#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# lint.sh - one linter, or all of them, over the tree; or formats it in place.
#
# usage: lint.sh fmt | all | format | tidy | ruff | mypy | layers | sizes | shell
# Environment: CLANG_TIDY_ALL=1 every C++ file, not only changed ones; CLANG_TIDY_BASE=commit to compare
# with; CLANG_TIDY_MAX_FILES (30) bounds the routine run; JOBS.
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

# The commit to compare with: the branch point, or the last commit when we are on the main line.
base_commit() {
  local candidate
  if [[ -n ${CLANG_TIDY_BASE:-} ]]; then
    git rev-parse --verify "$CLANG_TIDY_BASE"
    return
  fi
  for candidate in origin/HEAD origin/main main; do
    if git rev-parse -q --verify "$candidate^{commit}" >/dev/null &&
      [[ $(git merge-base HEAD "$candidate" 2>/dev/null) != "$(git rev-parse HEAD)" ]] &&
      git merge-base HEAD "$candidate" 2>/dev/null; then
      return
    fi
  done
  git rev-parse -q --verify 'HEAD~1^{commit}'
}

# Prints the files to look at: sources, or for a changed header the sources that include it directly.
tidy_files() {
  local base changed header
  if [[ ${CLANG_TIDY_ALL:-0} == 1 ]] || ! base=$(base_commit 2>/dev/null); then
    files_like 'src/*.cc'
    return
  fi
  changed=$({ git diff --name-only --diff-filter=d "$base" -- src; git ls-files -o --exclude-standard src; } | sort -u)
  {
    grep '\.cc$' <<<"$changed" || true
    grep -E '\.(h|inl)$' <<<"$changed" | while read -r header; do
      grep -rlF "\"${header#src/}\"" src --include='*.cc' | head -2
    done || true
  } | sort -u
}

run_tidy() {
  local most=${CLANG_TIDY_MAX_FILES:-30} all=() chosen=()
  tools/build.sh release build.ninja
  # Only what this configuration compiles: the other packet backend has no command line to go by.
  mapfile -t all < <(tidy_files | while read -r file; do
    grep -q "$file\"" build/compile_commands.json && echo "$file"
  done)
  if [[ ${#all[@]} == 0 ]]; then
    echo "clang-tidy: good: no changed C++ file"
    return 0
  fi
  chosen=("${all[@]}")
  if [[ ${CLANG_TIDY_ALL:-0} != 1 && ${#all[@]} -gt $most ]]; then
    # Spread over the list by name hash, so that different commits look at different files.
    mapfile -t chosen < <(printf '%s\n' "${all[@]}" |
      while read -r file; do echo "$(git hash-object "$file") $file"; done | sort |
      head -n "$most" | cut -d' ' -f2)
    echo "clang-tidy: NOT RUN on $((${#all[@]} - most)) of ${#all[@]} changed files (limit $most); CLANG_TIDY_ALL=1 looks at all"
  fi
  # xargs fails when any of them does; the noise about headers of others is left out.
  printf '%s\n' "${chosen[@]}" |
    { xargs -n 1 -P "${JOBS:-$(nproc)}" "$kClangTidy" -p build --quiet 2>&1 || echo "clang-tidy: failed"; } |
    awk '/^clang-tidy: failed$/ { bad = 1 }
         !/^[0-9]+ warnings? |^Suppressed |^Use -header-filter|^$/ { print }
         END { exit bad }' || return 1
  echo "clang-tidy: good: ${#chosen[@]} files"
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
