#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# build.sh - configures a build folder when it has to be, and builds targets in it.
#
# usage: build.sh PRESET TARGET...      presets: see CMakePresets.json
# The folder is that of the preset. A release folder without tests is kept when only the daemon is asked for.
set -euo pipefail
cd "$(dirname "$0")/.."

folder_of_preset() {
  case "$1" in
    run | release) echo build ;;
    *) echo "build-$1" ;;
  esac
}

main() {
  local preset=$1 folder stamp
  shift
  folder=$(folder_of_preset "$preset")
  # One cache serves every clone: paths are stored relative to the tree.
  export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
  export CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
  # What compiled without a warning is the same with and without this; a kept warning is told again.
  export CCACHE_IGNOREOPTIONS=-Werror
  # The folder remembers which preset configured it; `run` is a part of `release`, so either serves it.
  stamp=$folder/.preset
  if [[ ! -f $folder/build.ninja || ! -f $stamp ]] ||
    ! [[ $(<"$stamp") == "$preset $PWD" || ($preset == run && $(<"$stamp") == "release $PWD") ]]; then
    echo "build: configuring $folder ($preset)" >&2
    [[ -f $stamp && $(<"$stamp") != *" $PWD" ]] && rm -rf "$folder"
    cmake --preset "$preset" --log-level=WARNING >&2
    echo "$preset $PWD" >"$stamp"
  fi
  # Python's packages may have come after the folder was configured.
  if [[ " $* " =~ " "(native|all)" " ]] && compgen -G '.venv/lib/python3*/site-packages/nanobind' >/dev/null &&
    grep -q '^BATCHPLANE_NANOBIND:INTERNAL=$' "$folder/CMakeCache.txt"; then
    cmake -S . -B "$folder" --log-level=WARNING >&2
  fi
  # So may have what makes kernels for GPUs (cmake/ptx.cmake).
  if grep -q '^BATCHPLANE_CLANG:.*=BATCHPLANE_CLANG-NOTFOUND$' "$folder/CMakeCache.txt" &&
    command -v clang-16 clang-17 clang-18 clang-19 clang >/dev/null; then
    cmake -S . -B "$folder" --log-level=WARNING >&2
  fi
  NINJA_STATUS=$(tools/build_progress.py --status) \
    ninja -C "$folder" -j "${JOBS:-$(nproc)}" "$@" 2>&1 | tools/build_progress.py >&2
  # clang-tidy goes by this file, and g++'s precompiled header is none for it.
  if [[ $preset == tidy ]]; then
    sed -i -E 's/ -fpch-preprocess//; s/ -Winvalid-pch( -include [^ ]*cmake_pch\.hxx)?//g' "$folder/compile_commands.json"
  fi
}

main "$@"
