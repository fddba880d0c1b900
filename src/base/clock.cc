// SPDX-License-Identifier: BSD-3-Clause
#include "base/clock.h"

#include <ctime>

namespace batchplane {
namespace {

uint64_t raw_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC_RAW, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000ULL + static_cast<uint64_t>(t.tv_nsec);
}

// Reads both clocks as close together as possible: the tightest of many tries.
void paired_reading(uint64_t& cycles, uint64_t& ns) {
  uint64_t best = ~0ULL;
  for (int i = 0; i < 64; ++i) {
    const uint64_t before = __rdtsc();
    const uint64_t time = raw_ns();
    const uint64_t after = __rdtsc();
    if (after - before < best) {
      best = after - before;
      cycles = before + best / 2;
      ns = time;
    }
  }
}

}  // namespace

TscClock::TscClock() {
  uint64_t cycles0 = 0;
  uint64_t ns0 = 0;
  uint64_t cycles1 = 0;
  uint64_t ns1 = 0;
  paired_reading(cycles0, ns0);
  while (raw_ns() - ns0 < 20'000'000) {
  }
  paired_reading(cycles1, ns1);
  cycles_per_ns_ = static_cast<double>(cycles1 - cycles0) / static_cast<double>(ns1 - ns0);
  mult_ = static_cast<uint64_t>(4294967296.0 / cycles_per_ns_);
  base_cycles_ = cycles0;
}

const TscClock& TscClock::instance() {
  static const TscClock clock;
  return clock;
}

}  // namespace batchplane
