#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# run_tests.sh - every test and check, one after the other; at the end each runner's own closing line.
#
# usage: run_tests.sh routine | long | STEP...     steps: the words in kRoutine and kLongOnly below
# A failed step does not stop the rest; the exit code is 1 when any failed. Logs: build/test-logs/.
# CI=true: a step that hangs is ended, and fails.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly kRoutine="format ruff mypy layers sizes shell
  build-release ctest-release bench-smoke golden pytest-python pytest-e2e
  build-asan-heap ctest-asan-heap build-tsan-heap ctest-tsan-heap tidy"
readonly kLongOnly="build-asan-dpdk ctest-asan-dpdk determinism"
# The sanitizer of addresses has the tests of packets, their memory and what comes from outside, on plain
# heap memory; the release build those again on DPDK's memory and devices, and the controllers, simulator,
# reports and the daemon; the sanitizer of threads once more what threads share, control threads and
# sockets included. Everything in every build: test-long.
declare -rA kTests=(
  [release]="slo sim profile app core offload modules ports traffic"
  [asan-heap]="base exec egress telemetry spec core offload modules ports traffic property fuzz"
  [asan-dpdk]="core offload modules ports traffic"
  [tsan-heap]="core egress offload ports traffic app"
)
# While daemons and people in tests wait, processors stand idle.
readonly kBuiltBeside="asan-heap tsan-heap"
readonly kStepLimitS=1800  # a build from nothing on two slow cores takes half of it
readonly kLogs=build/test-logs
readonly kAutogroup=/proc/sys/kernel/sched_autogroup_enabled
# Hundreds of commands start an interpreter each: what they load is compiled once.
export PYTHONPYCACHEPREFIX=$PWD/build/pycache
unset PYTHONDONTWRITEBYTECODE
summary=() n_failed=0 grouped=""

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
  local folder wrap=() chosen=() names
  folder=$(folder_of "$1")
  # Threads of an OpenCL driver have signal stacks of their own, and its caches live as long as the process.
  export ASAN_OPTIONS="detect_stack_use_after_return=1:strict_string_checks=1:use_sigaltstack=0"
  export LSAN_OPTIONS="suppressions=$PWD/tools/opencl_leaks.txt:print_suppressions=0"
  export UBSAN_OPTIONS="print_stacktrace=1:halt_on_error=1"
  export TSAN_OPTIONS="halt_on_error=1:second_deadlock_stack=1"
  [[ $1 == tsan-heap ]] && wrap=(without_aslr)
  if [[ ${BATCHPLANE_LONG:-0} != 1 ]]; then
    names=${kTests[$1]/fuzz/fuzz_.*}
    chosen=(-R "^(${names// /|})\$")
  fi
  "${wrap[@]}" ctest --test-dir "$folder" "${chosen[@]}" --no-tests=error --output-on-failure \
    -j "${JOBS:-$(nproc)}" --timeout "${TEST_TIMEOUT_S:-600}"
}

# Tests of the Python side wait for nobody: a few files each to as many processes as there are cores.
run_pytest_python() {
  local marks=() files n_good n_bad is_bad=0
  [[ ${BATCHPLANE_LONG:-0} == 1 ]] || marks=(-m "not long")
  mapfile -t files < <(find tests -name 'test_*.py' -not -path 'tests/e2e/*' -printf '%s %p\n' | sort -rn | cut -d' ' -f2)
  rm -f "$kLogs"/pytest-python-*.log
  # Each has temporary folders of its own: pytest clears those of runs before it, and fails where another
  # process does so at the same time. Exit code 5: a few files of which all tests are long.
  printf '%s\n' "${files[@]}" | xargs -P "${JOBS:-$(nproc)}" -n 4 bash -c '
    log=$0/pytest-python-$$.log
    export PYTEST_DEBUG_TEMPROOT=$(mktemp -d)
    .venv/bin/python -m pytest -q -rsf "$@" >"$log" 2>&1
    code=$?
    rm -rf "$PYTEST_DEBUG_TEMPROOT"
    [[ $code == 0 || $code == 5 ]]' "$kLogs" "${marks[@]}" || is_bad=1
  cat "$kLogs"/pytest-python-*.log
  n_good=$(counted passed) n_bad=$(($(counted failed) + $(counted error)))
  echo "$n_good passed, $n_bad failed in all processes"
  return "$is_bad"
}

# Sums what pytest's closing lines say, such as "3 failed, 40 passed in 2.10s".
counted() {
  awk -v word="$1" '/^[0-9]+ .* in [0-9.]+s/ {
    for (i = 2; i <= NF; i++) if ($i ~ "^" word) n += $(i - 1)
  } END { print n + 0 }' "$kLogs"/pytest-python-*.log
}

# End to end: daemons poll on cores of their own, and must not meet other tests there.
run_pytest_e2e() {
  local marks=()
  [[ ${BATCHPLANE_LONG:-0} == 1 ]] || marks=(-m "not long")
  unshare -Urnm true 2>/dev/null || [[ $(id -u) == 0 ]] ||
    echo "NOT RUN: tests that need network namespaces: this user may not make any (kernel.unprivileged_userns_clone)"
  local temp code=0
  temp=$(mktemp -d)
  PYTEST_DEBUG_TEMPROOT=$temp tools/pytest_twice.sh tests/e2e "$kLogs/pytest-e2e" "${marks[@]}" || code=$?
  rm -rf "$temp"
  return "$code"
}

# The compiler's cache tells a warning again, but does not fail by it. Instrumented code makes the
# compiler see overflows that are none, and fences that a sanitizer does not follow: the release
# build compiles the same files.
build_without_warnings() {
  local log=$kLogs/told-by-$1.log
  tools/build.sh "$@" 2>&1 | tee "$log"
  if [[ $1 == release ]] && grep -q 'warning:' "$log"; then
    echo "build: a warning, above: mend it"
    return 1
  fi
}

targets_of() {
  local name
  if [[ ${BATCHPLANE_LONG:-0} == 1 ]]; then
    echo all
    return
  fi
  [[ $1 == release ]] && printf 'batchplaned native batchplane_slo benchmarks '
  for name in ${kTests[$1]}; do
    if [[ $name == fuzz ]]; then printf 'fuzz_replays '; else printf 'test_%s ' "$name"; fi
  done
}

run_build() {
  local targets
  read -ra targets <<<"$(targets_of "$1")"
  build_without_warnings "$1" "${targets[@]}"
}

beside=""

# With a priority that takes nothing from tests. What it has not done yet, or cannot do, the step itself does.
begin_builds_beside() {
  local commands="" name
  for name in $kBuiltBeside; do
    [[ " $* " == *" build-$name "* ]] && commands+="tools/build.sh $name $(targets_of "$name"); "
  done
  [[ -n $commands ]] || return 0
  setsid chrt --idle 0 bash -c "$commands" >"$kLogs/built-beside.log" 2>&1 </dev/null &
  beside=$!
}

end_builds_beside() {
  [[ -n $beside ]] || return 0
  kill -- "-$beside" 2>/dev/null || true
  wait "$beside" 2>/dev/null || true
  # Compilers end a moment after what started them; two in one folder would meet.
  while pgrep --session "$beside" >/dev/null; do sleep 0.1; done
  beside=""
}

# Linux 6.18 lets one session that fills several cores keep all others off one of them, for minutes, where
# sessions are groups to its scheduler. A daemon under test and a compiler beside it are two. As root only.
share_cores_by_thread() {
  [[ -w $kAutogroup && $(<"$kAutogroup") == 1 ]] || return 0
  { echo 0 >"$kAutogroup"; } 2>/dev/null || return 0
  grouped=1
  echo "note: kernel.sched_autogroup_enabled is 0 until the tests end"
}

share_cores_as_before() { [[ -z $grouped ]] || echo 1 >"$kAutogroup"; }

run_step() {
  case "$1" in
    build-*) run_build "${1#build-}" ;;
    ctest-*) run_ctest "${1#ctest-}" ;;
    # The cases themselves run in ctest; this compares the files with the models that made them.
    golden) .venv/bin/python tests/golden/make.py --check && echo "golden cases: good" ;;
    # That each still runs, and finds its own work right; how fast is asked by make bench.
    bench-smoke) .venv/bin/python bench/run.py --smoke --out build/bench-smoke && echo "benchmarks: good" ;;
    determinism) tools/check_determinism.sh ;;
    pytest-python) run_pytest_python ;;
    pytest-e2e) run_pytest_e2e ;;
    pytest) run_pytest_python && run_pytest_e2e ;;
    *) tools/lint.sh "$1" ;;
  esac
}

# The last line by which the runner itself says how it went, and what it says was not run or is unsteady.
closing_lines() {
  local line
  line=$(grep -E '% tests passed|[0-9]+ (passed|failed|error)|: good|^Success|^Found |^sizes:|^layers:|No tests were found' "$1" | tail -n 1 || true)
  echo "${line:-$(tail -n 1 "$1")}"
  grep -E '^SKIPPED|^UNSTEADY|NOT RUN|\*\*\*Skipped|\(Disabled\)' "$1" | sort | uniq -c | sed 's/^ */    /' || true
}

# What a failed step's log says of the tests that failed.
failed_tests() {
  grep -E '^(FAILED|ERROR) |\((Failed|Timeout|SEGFAULT|Subprocess aborted)\)$' "$1" | sort -u | head -n 20 |
    cut -c 1-200 | sed 's/^[[:space:]]*/    /' || true
}

step() {
  local name=$1 log=$kLogs/$1.log limit=()
  [[ ${CI:-} != true || ${BATCHPLANE_LONG:-0} == 1 ]] || limit=(timeout --kill-after=10 "$kStepLimitS")
  local start=$SECONDS verdict=good
  rm -f "$kLogs/$name.failed"
  printf '== %-16s ' "$name"
  if [[ $name == ctest-* && -f $kLogs/build-${name#ctest-}.failed ]]; then
    echo "NOT RUN: its build failed" >"$log"
    verdict=FAILED
    n_failed=$((n_failed + 1))
  # A process of its own: -e stays in force there, although we look at its exit code.
  elif ! "${limit[@]}" "$0" --step "$name" >"$log" 2>&1 </dev/null; then
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
  summary+=("$(printf '%-16s %-6s %5s s  ' "$name" "$verdict" "$((SECONDS - start))")$({
    closing_lines "$log"
    [[ $verdict == good ]] || failed_tests "$log"
  } | sed '2,$s/^/                                  /')")
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
      export BATCHPLANE_LONG=1 CLANG_TIDY_ALL=1 TEST_TIMEOUT_S=7200 PYTEST_TIMEOUT=7200
      ;;
    *) steps="$*" ;;
  esac
  mkdir -p "$kLogs"
  trap "end_builds_beside; share_cores_as_before" EXIT
  share_cores_by_thread
  for name in $steps; do
    # shellcheck disable=SC2086
    [[ $name == pytest-e2e ]] && begin_builds_beside $steps
    step "$name"
    end_builds_beside
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

# Tests source this file for its functions.
if [[ ${BASH_SOURCE[0]} == "$0" ]]; then main "$@"; fi
