// SPDX-License-Identifier: BSD-3-Clause
// loop_times.h - duration of busy loops, from one poll to the next: every packet in the ring waits for this
// turnaround.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "exec/percentiles.h"

namespace batchplane::exec {

// Eight buckets per octave. Owner of note(): the worker; readers keep a copy and take differences.
struct LoopTimes {
  static constexpr uint32_t kBuckets = 8 * 34;
  uint32_t counts[kBuckets] = {};

  static uint32_t index(uint64_t ns) {
    const uint32_t msb = 63 - static_cast<uint32_t>(std::countl_zero(ns | 8));
    return std::min<uint32_t>(8 * (msb - 3) + static_cast<uint32_t>((ns >> (msb - 3)) & 7),
                              kBuckets - 1);
  }
  // The longest time in bucket i.
  static uint64_t upper_ns(uint32_t i) { return ((uint64_t{8} + (i & 7) + 1) << (i >> 3)) - 1; }
  void note(uint64_t ns) { ++counts[index(ns)]; }

  // Percentile p of the times since `before`; 0 when there are none. p = 1: the maximum.
  [[nodiscard]] uint64_t percentile_ns(const LoopTimes& before, double p) const {
    const auto count_at = [&](uint32_t i) { return counts[i] - before.counts[i]; };
    uint64_t total = 0;
    for (uint32_t i = 0; i < kBuckets; ++i) total += count_at(i);
    WantedPercentile wanted[] = {{p}};
    find_percentiles(total, kBuckets, count_at, wanted);
    return total == 0 ? 0 : upper_ns(wanted[0].bucket);
  }
};

}  // namespace batchplane::exec
