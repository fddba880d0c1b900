// SPDX-License-Identifier: BSD-3-Clause
// ring_fill.h - fill levels of a ring, as its consumer's polls found them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

namespace batchplane {

// Owner: the consumer of the ring. Totals since the start; the maximum also per period (begin_period()).
struct RingFill {
  // Polls that know of enough packets to take need not look how many there are, so that the few which look
  // would tell of a ring that is often empty. One in so many looks all the same, and counts for all of them.
  static constexpr uint32_t kBlindPolls = 7;

  uint64_t looks = 0;  // polls that found packets
  uint64_t sum_pkts = 0;
  uint64_t earlier_max_pkts = 0;  // maximum before this period
  uint64_t period_max_pkts = 0;
  uint32_t blind_polls = 0;  // since the last one that was due
  bool has_begun = true;     // a period: its first one is due

  // For how many blind polls one is to look now; 0: it need not.
  uint32_t due() {
    if (++blind_polls < kBlindPolls && !has_begun) return 0;
    has_begun = false;
    return std::exchange(blind_polls, 0);
  }
  // One look stands for `polls` alike.
  void look(uint64_t fill_pkts, uint32_t polls = 1) {
    looks += fill_pkts != 0 ? polls : 0;
    sum_pkts += fill_pkts * polls;
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
    has_begun = true;
  }
};

}  // namespace batchplane
