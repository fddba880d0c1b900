// SPDX-License-Identifier: BSD-3-Clause
// egress_count.h - sent, marked and dropped packets per flow.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "egress/discipline/discipline.h"
#include "modules/egress/recent_waits.h"

namespace batchplane {

inline void bump(std::atomic<uint64_t>& count, uint64_t n) {
  count.store(count.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
}

// One writer, the polling worker. Sending a packet touches one cache line.
struct alignas(64) EgressFlowCount {
  std::atomic<uint64_t> pkts{0};
  std::atomic<uint64_t> bytes{0};
  std::atomic<uint64_t> marked_pkts{0};  // instead of a drop
  std::atomic<uint64_t> full_pkts{0};
  std::atomic<uint64_t> shed_pkts{0};
  RecentWaits waits;
};
static_assert(sizeof(EgressFlowCount) == 64);

// Counts of all flows. Rare events and counts written by other workers are kept apart from the
// counters that each packet touches.
class EgressCounts {
 public:
  using Dropped = std::array<uint64_t, egress::kEnqueued>;  // indexed by Enqueued

  explicit EgressCounts(uint32_t flows) : flows_(flows), rare_(flows) {}

  // For the polling worker.
  [[nodiscard]] EgressFlowCount* data() { return flows_.data(); }
  void note_refused(uint32_t flow, egress::Enqueued why) noexcept {
    switch (why) {
      case egress::Enqueued::kYes:
        return;
      case egress::Enqueued::kFull:
      case egress::Enqueued::kPushedOut:
        return bump(flows_[flow].full_pkts, 1);
      case egress::Enqueued::kShed:
        return bump(flows_[flow].shed_pkts, 1);
      case egress::Enqueued::kTooLong:
        return bump_to_the_end(rare_[flow].too_long_pkts);
      case egress::Enqueued::kNoFlow:
        return bump_to_the_end(rare_[flow].no_flow_pkts);
    }
  }
  // Any worker that found the flow's queue full.
  void note_early(uint32_t flow) noexcept {
    rare_[flow].early_pkts.fetch_add(1, std::memory_order_relaxed);
  }

  // Any thread.
  [[nodiscard]] const EgressFlowCount& operator[](uint32_t flow) const { return flows_[flow]; }
  [[nodiscard]] Dropped dropped_pkts(uint32_t flow) const {
    const auto of = [](const auto& count) {
      return uint64_t{count.load(std::memory_order_relaxed)};
    };
    const Rare& rare = rare_[flow];
    Dropped dropped{};
    dropped[static_cast<size_t>(egress::Enqueued::kFull)] =
        of(flows_[flow].full_pkts) + of(rare.early_pkts);
    dropped[static_cast<size_t>(egress::Enqueued::kShed)] = of(flows_[flow].shed_pkts);
    dropped[static_cast<size_t>(egress::Enqueued::kTooLong)] = of(rare.too_long_pkts);
    dropped[static_cast<size_t>(egress::Enqueued::kNoFlow)] = of(rare.no_flow_pkts);
    return dropped;
  }
  [[nodiscard]] uint64_t refused_pkts(uint32_t flow) const {
    const Dropped dropped = dropped_pkts(flow);
    return std::accumulate(dropped.begin(), dropped.end(), uint64_t{0});
  }

 private:
  // One writer, except for `early_pkts`.
  struct Rare {
    std::atomic<uint64_t> early_pkts{0};
    std::atomic<uint32_t> too_long_pkts{0};
    std::atomic<uint32_t> no_flow_pkts{0};
  };
  static_assert(sizeof(Rare) == 16);
  static void bump_to_the_end(std::atomic<uint32_t>& count) noexcept {
    const uint32_t n = count.load(std::memory_order_relaxed);
    if (n != std::numeric_limits<uint32_t>::max()) count.store(n + 1, std::memory_order_relaxed);
  }

  std::vector<EgressFlowCount> flows_;
  std::vector<Rare> rare_;
};

}  // namespace batchplane
