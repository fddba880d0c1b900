#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# check_determinism.sh - builds the simulator with g++ and clang++, at -O0 and -O3, and compares what it does.
#
# usage: check_determinism.sh     a compiler that is not there is said to be NOT RUN
set -euo pipefail
cd "$(dirname "$0")/.."

readonly kOut=build/determinism
# As CMakeLists.txt has them, where they may change what is computed.
readonly kFlags="-std=c++20 -march=x86-64-v3 -ffp-contract=off -Isrc"

build_one() {
  local compiler=$1 level=$2 folder=$kOut/$1$2
  local -a launcher=()
  command -v ccache >/dev/null && launcher=(ccache)
  mkdir -p "$folder"
  # shellcheck disable=SC2086  # flags are words
  find src/base src/exec src/telemetry src/spec src/slo src/sim -name '*.cc' ! -name '*_test.cc' |
    sort | xargs -P "${JOBS:-2}" -I{} bash -c \
    '"${@:4}" '"$kFlags"' '"$level"' -c "$1" -o "$2/$(echo "$1" | tr / _).o"' \
    _ {} "$folder" "" ${launcher[@]+"${launcher[@]}"} "$compiler"
  # shellcheck disable=SC2086
  "$compiler" $kFlags "$level" tests/determinism/digests.cc "$folder"/*.o -o "$folder/digests" -lpthread
}

main() {
  local compiler level n_built=0 first=""
  for compiler in g++ clang++-16; do
    if ! command -v "$compiler" >/dev/null; then
      echo "NOT RUN: $compiler is not installed"
      continue
    fi
    for level in -O0 -O3; do
      build_one "$compiler" "$level"
      "$kOut/$compiler$level/digests" >"$kOut/$compiler$level.txt"
      n_built=$((n_built + 1))
      first=${first:-$compiler$level}
      if ! diff "$kOut/$first.txt" "$kOut/$compiler$level.txt"; then
        echo "determinism: $compiler $level differs from $first"
        return 1
      fi
    done
  done
  echo "determinism: good ($(wc -l <"$kOut/$first.txt") runs of $n_built builds are the same)"
}

main "$@"
