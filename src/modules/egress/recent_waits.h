// SPDX-License-Identifier: BSD-3-Clause
// recent_waits.h - waiting times of a queue's recent packets: a histogram of one-byte counts, all
// halved when one is full. It reflects the last few hundred packets, older ones with decreasing
// weight.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>

#include "exec/percentiles.h"

namespace batchplane {

class RecentWaits {
 public:
  // The first bucket ends at 1024 ns, and each further one at twice the end of the one before; the
  // last is unbounded.
  static constexpr uint32_t kRanges = 24;
  using Sums = std::array<uint64_t, kRanges>;

  // One writer.
  void note(uint64_t waited_ns) noexcept {
    const auto range = std::min<uint32_t>(std::bit_width(waited_ns >> kShift), kRanges - 1);
    const uint32_t place = range % 8 * 8;
    std::atomic<uint64_t>& counts = counts_[range / 8];
    if ((counts.load(std::memory_order_relaxed) >> place & 0xff) == 0xff) [[unlikely]] {
      halve();
    }
    counts.store(counts.load(std::memory_order_relaxed) + (uint64_t{1} << place),
                 std::memory_order_relaxed);
  }

  // Any thread.
  void add_to(Sums& sums) const noexcept {
    for (uint32_t range = 0; range < kRanges; ++range) {
      const uint64_t counts = counts_[range / 8].load(std::memory_order_relaxed);
      sums[range] += counts >> (range % 8 * 8) & 0xff;
    }
  }
  // The upper end of the bucket that contains this quantile; 0 without packets.
  static uint64_t quantile_ns(const Sums& sums, double share) noexcept {
    uint64_t all = 0;
    for (const uint64_t n : sums) all += n;
    if (all == 0) return 0;
    exec::WantedPercentile wanted[] = {{share}};
    exec::find_percentiles(
        all, kRanges, [&](uint32_t range) { return sums[range]; }, wanted);
    return uint64_t{1} << (wanted[0].bucket + kShift);
  }

 private:
  static constexpr uint32_t kShift = 10;

  void halve() noexcept {
    for (std::atomic<uint64_t>& counts : counts_) {
      counts.store(counts.load(std::memory_order_relaxed) >> 1 & 0x7f7f7f7f7f7f7f7fULL,
                   std::memory_order_relaxed);
    }
  }

  std::array<std::atomic<uint64_t>, kRanges / 8> counts_{};
};

}  // namespace batchplane
