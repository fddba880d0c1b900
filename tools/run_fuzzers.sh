#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# run_fuzzers.sh - runs each libFuzzer target of a build folder for a time; new inputs go to its corpus.
#
# usage: run_fuzzers.sh BUILD_FOLDER SECONDS
set -euo pipefail
cd "$(dirname "$0")/.."

main() {
  local folder=$1 seconds=$2 target name corpus is_bad=0 found=0
  for target in "$folder"/tests/fuzz/fuzz_*; do
    [[ -f $target && -x $target ]] || continue
    found=1
    name=$(basename "$target")
    corpus=tests/fuzz/corpus/${name#fuzz_}
    mkdir -p "$folder/corpus/$name" "$folder/crashes"
    echo "fuzz: $name for $seconds s"
    # The second folder, the corpus in the tree, is only read.
    "$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=4096 -print_final_stats=1 \
      -artifact_prefix="$folder/crashes/$name-" "$folder/corpus/$name" "$corpus" || is_bad=1
  done
  if [[ $found == 0 ]]; then
    echo "fuzz: no targets in $folder/tests/fuzz" >&2
    return 1
  fi
  [[ $is_bad == 0 ]] || echo "fuzz: found a failure: see $folder/crashes" >&2
  return "$is_bad"
}

main "$@"
