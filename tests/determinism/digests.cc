// SPDX-License-Identifier: BSD-3-Clause
// digests.cc - prints the digest of each scenario: the same lines, whoever compiled it.
#include <cinttypes>
#include <cstdio>

#include "sim/digest_test_util.h"

int main() {
  for (const auto& [name, digest] : batchplane::sim::all_digests()) {
    std::printf("%016" PRIx64 "  %s\n", digest, name.c_str());
  }
  return 0;
}
