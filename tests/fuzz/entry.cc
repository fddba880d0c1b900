// SPDX-License-Identifier: BSD-3-Clause
// entry.cc - what libFuzzer calls; FUZZ_TARGET names the target of this program.
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return batchplane::fuzz::FUZZ_TARGET(data, size);
}
