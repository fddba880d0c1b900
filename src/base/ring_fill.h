// SPDX-License-Identifier: BSD-3-Clause
// ring_fill.h - how full a ring was whenever its consumer looked and found something.
#pragma once

#include <algorithm>
#include <cstdint>

namespace batchplane {

// Owner: the consumer of the ring. Since the start, but for the highest since begin_period().
struct RingFill {
  uint64_t looks = 0;  // that found packets
  uint64_t sum_pkts = 0;
  uint64_t earlier_max_pkts = 0;  // before this period
  uint64_t period_max_pkts = 0;

  void look(uint64_t fill_pkts) {
    looks += fill_pkts != 0;
    sum_pkts += fill_pkts;
    period_max_pkts = std::max(period_max_pkts, fill_pkts);
  }
  // Puts several rings of one input together.
  void add(const RingFill& other) {
    looks += other.looks;
    sum_pkts += other.sum_pkts;
    earlier_max_pkts = std::max(earlier_max_pkts, other.earlier_max_pkts);
    period_max_pkts = std::max(period_max_pkts, other.period_max_pkts);
  }
  [[nodiscard]] uint64_t max_pkts() const { return std::max(earlier_max_pkts, period_max_pkts); }
  [[nodiscard]] double mean_pkts() const {
    return looks == 0 ? 0 : static_cast<double>(sum_pkts) / static_cast<double>(looks);
  }
  void begin_period() {
    earlier_max_pkts = max_pkts();
    period_max_pkts = 0;
  }
};

}  // namespace batchplane
