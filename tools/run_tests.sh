#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# run_tests.sh - every test and check, one after the other; at the end each runner's own closing line.
#
# usage: run_tests.sh routine | long | STEP...     steps: the words in kRoutine and kLongOnly below
# A failed step does not stop the rest; the exit code is 1 when any failed. Logs: build/test-logs/.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly kRoutine="format ruff mypy layers sizes shell
  build-release ctest-release golden pytest
  build-asan-heap ctest-asan-heap build-tsan-heap ctest-tsan-heap tidy"
readonly kLongOnly="build-asan-dpdk ctest-asan-dpdk determinism"
# Each build compiles the engine anew, so that a sanitizer builds the tests that it is for: the
# thread sanitizer those with threads, and the DPDK memory those that differ from the heap's.
declare -rA kTests=(
  [release]="" [asan-heap]=""
  [asan-dpdk]="core modules ports traffic"
  [tsan-heap]="core ports traffic app"
)
readonly kLogs=build/test-logs
summary=() n_failed=0

folder_of() { if [[ $1 == release ]]; then echo build; else echo "build-$1"; fi; }

# Address space randomisation of newer kernels is wider than this compiler's TSan can map.
without_aslr() {
  if setarch "$(uname -m)" -R true 2>/dev/null; then
    setarch "$(uname -m)" -R "$@"
  else
    echo "note: setarch -R is not permitted here; TSan may fail to map its memory"
    "$@"
  fi
}

run_ctest() {
  local folder wrap=() chosen=()
  folder=$(folder_of "$1")
  export ASAN_OPTIONS="detect_stack_use_after_return=1:strict_string_checks=1"
  export UBSAN_OPTIONS="print_stacktrace=1:halt_on_error=1"
  export TSAN_OPTIONS="halt_on_error=1:second_deadlock_stack=1"
  [[ $1 == tsan-heap ]] && wrap=(without_aslr)
  if [[ -n ${kTests[$1]} && ${BATCHPLANE_LONG:-0} != 1 ]]; then
    chosen=(-R "^(${kTests[$1]// /|})\$")
  fi
  "${wrap[@]}" ctest --test-dir "$folder" "${chosen[@]}" --no-tests=error --output-on-failure \
    -j "${JOBS:-$(nproc)}" --timeout "${TEST_TIMEOUT_S:-300}"
}

run_pytest() {
  local marks=()
  [[ ${BATCHPLANE_LONG:-0} == 1 ]] || marks=(-m "not long")
  unshare -Urnm true 2>/dev/null || [[ $(id -u) == 0 ]] ||
    echo "NOT RUN: tests that need network namespaces: this user may not make any (kernel.unprivileged_userns_clone)"
  .venv/bin/python -m pytest -q -rsf "${marks[@]}" tests
}

run_build() {
  local names=() name
  if [[ -z ${kTests[$1]} || ${BATCHPLANE_LONG:-0} == 1 ]]; then
    tools/build.sh "$1" all
    return
  fi
  for name in ${kTests[$1]}; do
    compgen -G "src/$name/*_test.cc" >/dev/null || [[ $name == property ]] && names+=("test_$name")
  done
  tools/build.sh "$1" "${names[@]}"
}

run_step() {
  case "$1" in
    build-*) run_build "${1#build-}" ;;
    ctest-*) run_ctest "${1#ctest-}" ;;
    # The cases themselves run in ctest; this compares the files with the models that made them.
    golden) .venv/bin/python tests/golden/make.py --check && echo "golden cases: good" ;;
    determinism) tools/check_determinism.sh ;;
    pytest) run_pytest ;;
    *) tools/lint.sh "$1" ;;
  esac
}

# The last line by which the runner itself says how it went, and what it says was not run.
closing_lines() {
  local line
  line=$(grep -E '% tests passed|[0-9]+ (passed|failed|error)|: good|^Success|^Found |^sizes:|^layers:|No tests were found' "$1" | tail -n 1 || true)
  echo "${line:-$(tail -n 1 "$1")}"
  grep -E '^SKIPPED|NOT RUN|\*\*\*Skipped|\(Disabled\)' "$1" | sort | uniq -c | sed 's/^ */    /' || true
}

step() {
  local name=$1 log=$kLogs/$1.log
  local start=$SECONDS verdict=good
  rm -f "$kLogs/$name.failed"
  printf '== %-16s ' "$name"
  if [[ $name == ctest-* && -f $kLogs/build-${name#ctest-}.failed ]]; then
    echo "NOT RUN: its build failed" >"$log"
    verdict=FAILED
    n_failed=$((n_failed + 1))
  # A process of its own: -e stays in force there, although we look at its exit code.
  elif ! "$0" --step "$name" >"$log" 2>&1 </dev/null; then
    [[ $name != build-* ]] || touch "$kLogs/$name.failed"
    verdict=FAILED
    n_failed=$((n_failed + 1))
  fi
  echo "$verdict ($((SECONDS - start)) s)"
  if [[ $verdict == FAILED ]]; then
    echo "--- the end of $log:"
    tail -n 60 "$log"
    echo "---"
  fi
  summary+=("$(printf '%-16s %-6s %5s s  ' "$name" "$verdict" "$((SECONDS - start))")$(closing_lines "$log" | sed '2,$s/^/                                  /')")
}

main() {
  local steps name
  if [[ $1 == --step ]]; then
    run_step "$2"
    return
  fi
  case "$1" in
    routine) steps=$kRoutine ;;
    long)
      steps="$kRoutine $kLongOnly"
      export BATCHPLANE_LONG=1 CLANG_TIDY_ALL=1 TEST_TIMEOUT_S=7200
      ;;
    *) steps="$*" ;;
  esac
  mkdir -p "$kLogs"
  for name in $steps; do
    step "$name"
  done
  echo
  printf '%s\n' "${summary[@]}"
  if [[ $n_failed == 0 ]]; then
    echo "all good in $((SECONDS / 60)) min $((SECONDS % 60)) s"
  else
    echo "$n_failed steps FAILED; logs in $kLogs/"
  fi
  return $((n_failed != 0))
}

main "$@"
