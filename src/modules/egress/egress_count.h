// SPDX-License-Identifier: BSD-3-Clause
// egress_count.h - what has become of the packets of a flow.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "egress/discipline/discipline.h"
#include "modules/egress/recent_waits.h"

namespace batchplane {

inline void bump(std::atomic<uint64_t>& count, uint64_t n) {
  count.store(count.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
}

// One writer, the polling worker, but for `early_pkts`. What a packet touches that leaves is one line.
struct alignas(64) EgressFlowCount {
  std::atomic<uint64_t> pkts{0};
  std::atomic<uint64_t> bytes{0};
  std::atomic<uint64_t> marked_pkts{0};  // instead of a drop
  RecentWaits waits;
  alignas(64) std::array<std::atomic<uint64_t>, egress::kEnqueued> refused_pkts{};  // by Enqueued
  std::atomic<uint64_t> early_pkts{0};  // by workers that knew its queue to be full
};
static_assert(sizeof(EgressFlowCount) == 128);

}  // namespace batchplane
