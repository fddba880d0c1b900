// SPDX-License-Identifier: BSD-3-Clause
// ring_fill.h - fill levels of a ring, seen by its consumer whenever it found packets.
#pragma once

#include <algorithm>
#include <cstdint>

namespace batchplane {

// Owner: the consumer of the ring. Totals since the start; the maximum also per period (begin_period()).
struct RingFill {
  uint64_t looks = 0;  // polls that found packets
  uint64_t sum_pkts = 0;
  uint64_t earlier_max_pkts = 0;  // maximum before this period
  uint64_t period_max_pkts = 0;

  void look(uint64_t fill_pkts) {
    looks += fill_pkts != 0;
    sum_pkts += fill_pkts;
    period_max_pkts = std::max(period_max_pkts, fill_pkts);
  }
  // Combines several rings of one input.
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
