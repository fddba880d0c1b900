#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# gpu_folder.sh - a folder that examines devices on a machine where nothing can be installed: without DPDK, with
# the libraries it needs.
#
# usage: gpu_folder.sh FOLDER [PYTHON]      PYTHON: the version there, such as 3.12 (3.11)
# There, FOLDER/examine compares what devices compute with the processor, byte by byte, measures all of them, and
# writes FOLDER/devices.json. It needs Python with numpy, which is larger than all the rest.
set -euo pipefail

if [[ $# -lt 1 ]]; then
  sed -n 's/^# usage: /usage: /p' "$0" >&2
  exit 2
fi
folder=$(realpath -m "$1")
if [[ -e $folder && ! -f $folder/examine && -n $(ls -A "$folder") ]]; then
  echo "gpu_folder: $folder has other files in it: give a new folder, or one that this made" >&2
  exit 2
fi
cd "$(dirname "$0")/.."
build=build-gpu
cmake -G Ninja -S . -B "$build" -DCMAKE_BUILD_TYPE=Release -DBATCHPLANE_DPDK=OFF -DBATCHPLANE_BENCH=ON \
  -DBATCHPLANE_TESTS=ON >/dev/null
ninja -C "$build" ${JOBS:+-j"$JOBS"} batchplaned test_offload bench_gpu_transfer
rm -rf "$folder"
mkdir -p "$folder/lib" "$folder/python"
for program in batchplaned test_offload bench_gpu_transfer; do
  built=$build/$program
  [[ -f $built ]] || built=$build/bench/$program
  strip -o "$folder/$program" "$built"
  # The C library is the machine's own.
  ldd "$built" | awk '$3 ~ /^\// {print $3}' |
    grep -vE '/(libc|libm|libdl|libpthread|librt)\.so' | xargs -r cp -L -t "$folder/lib"
done
cp -r python/batchplane "$folder/python/"
.venv/bin/pip download -q --only-binary=:all: --python-version "${2:-3.11}" --dest "$folder/wheels" \
  pydantic PyYAML rich typer
for wheel in "$folder"/wheels/*.whl; do
  (cd "$folder/python" && python3 -m zipfile -e "../wheels/${wheel##*/}" .)
done
rm -r "$folder/wheels"
# Colours of programming languages, a tenth of the folder.
find "$folder/python/pygments/lexers" -name '*.py' ! -name '__init__.py' ! -name '_mapping.py' -delete
find "$folder/python" -name __pycache__ -prune -exec rm -rf {} +
cat >"$folder/examine" <<'END'
#!/usr/bin/env bash
# examine - what this machine's devices compute and take; options go to `batchplane profile --devices`.
set -euo pipefail
cd "$(dirname "$0")"
export LD_LIBRARY_PATH=$PWD/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export PYTHONPATH=$PWD/python BATCHPLANE_DAEMON=$PWD/batchplaned
./batchplaned --cuda
./batchplaned --opencl
# First, while sensors tell what a GPU draws that nobody uses.
python3 -m batchplane profile --devices --out devices.json "$@"
for kind in opencl cuda; do
  BATCHPLANE_TEST_DEVICE=$kind ./test_offload --gtest_brief=1 --gtest_filter='OpenCl*:-OpenClFaults*'
done
END
chmod +x "$folder/examine"
du -sh "$folder"
