// SPDX-License-Identifier: BSD-3-Clause
// ring_size.h - how many packets the rings in front of a pipeline hold, and what a gap in a worker's time may
// delay there.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "exec/control.h"

namespace batchplane::exec {

// Of a ring port that gives no size; also assumed where no input tells one.
inline constexpr uint32_t kDefaultRingPkts = 64;

// The largest ring in front of the pipeline, by what its inputs tell: the packets that may be ahead of a new
// one. Queues and schedulers hold packets that came in elsewhere.
inline uint64_t largest_ring_pkts(const ControlModel& model, const PeriodSnapshot& period) {
  uint64_t most_pkts = 0;
  for (size_t i = 0; i < std::min(model.inputs.size(), period.inputs.size()); ++i) {
    const ControlInput& input = model.inputs[i];
    if (!input.is_queue && !input.is_scheduler) {
      most_pkts = std::max(most_pkts, period.inputs[i].ring_pkts);
    }
  }
  return most_pkts == 0 ? kDefaultRingPkts : most_pkts;
}

// Packets that a gap in a worker's time may delay in front of the pipeline: what waits and what comes until the
// ring has drained, so two fills of it at most. What came in the gap may not fill a large ring: then twice
// that counts, and at least two fills of the default one.
inline double caught_pkts(uint64_t ring_pkts, double rate_pkts_per_ns, double gap_ns) {
  const double came_pkts = std::max<double>(kDefaultRingPkts, rate_pkts_per_ns * gap_ns);
  return 2 * std::min(static_cast<double>(ring_pkts), came_pkts);
}

// Of these, those of a flow that had `flow_pkts` of the period's `all_pkts`.
inline double caught_flow_pkts(uint64_t ring_pkts, uint64_t flow_pkts, uint64_t all_pkts,
                               uint64_t period_ns, double gap_ns) {
  const double rate = static_cast<double>(all_pkts) / static_cast<double>(period_ns);
  return caught_pkts(ring_pkts, rate, gap_ns) * static_cast<double>(flow_pkts) /
         std::max(1.0, static_cast<double>(all_pkts));
}

// Share of an SLO: shorter holes in a worker's time delay nothing. `optimal` judges the mean gap in each task on
// a flow's path, because it must not take what triggers did for the machine's doing. The daemon's log judges the
// sum of the worst worker's gaps in this period or the one before, because it reports what the machine may have
// delayed, and its late packets are counted one by one.
inline constexpr double kMinHole = 0.05;

}  // namespace batchplane::exec
