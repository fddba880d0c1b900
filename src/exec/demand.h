// SPDX-License-Identifier: BSD-3-Clause
// demand.h - offered load of a task's input, taken or not, so that nobody has to infer the load from delays.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/ring_fill.h"
#include "exec/stage_period.h"

namespace batchplane::exec {

// The polling side's counts of an input's ring. All 0 without a ring.
struct RingCounts {
  uint64_t waiting_pkts = 0;  // in the ring now
  uint64_t ring_pkts = 0;     // capacity of the ring
  RingFill fill;
  uint64_t credit_pkts = 0;  // of a queue: how many each feeder may have waiting
};

// The producer's counts.
struct ArrivalCounts {
  uint64_t lost_pkts = 0;     // since the start: no room, too late, or not accepted
  uint64_t backlog_pkts = 0;  // due, but waiting for room in the ring now
};

// Counts of one input since its start.
struct InputCounts {
  uint64_t taken_pkts = 0;
  RingCounts ring;
  ArrivalCounts arrivals;
  StagePeriod stage = {};  // of a stage; its totals since the start

  [[nodiscard]] uint64_t offered_pkts() const {
    return taken_pkts + arrivals.lost_pkts + ring.waiting_pkts + arrivals.backlog_pkts;
  }
};

// One input over a period. offered = taken + lost + growth of waiting and backlog.
struct InputPeriod {
  uint64_t offered_pkts = 0;  // for a saturating source, only packets for which it found room
  uint64_t taken_pkts = 0;
  uint64_t lost_pkts = 0;
  uint64_t waiting_pkts = 0;  // in the ring, at the end
  uint64_t backlog_pkts = 0;  // due and waiting for room in the ring, at the end
  uint64_t ring_pkts = 0;     // capacity of the ring; 0: no ring
  uint64_t credit_pkts = 0;   // of a queue: how many each feeder may have waiting, at the end
  uint64_t fill_max_pkts = 0;
  double fill_mean_pkts = 0;  // as polls found it; empty ones do not count
  StagePeriod stage = {};     // of a stage
};

// Closes the periods of one input. The ring is read before the producer's counts, so packets that move in
// between may be counted twice; sums over periods stay exact.
class DemandBook {
 public:
  // Packets that were there before the first period do not count as its load.
  void begin(const InputCounts& now) {
    last_ = now;
    offered_pkts_ = now.offered_pkts();
  }
  InputPeriod close(const InputCounts& now) {
    const uint64_t offered_pkts = std::max(offered_pkts_, now.offered_pkts());
    const RingFill& fill = now.ring.fill;
    const uint64_t looks = fill.looks - last_.ring.fill.looks;
    InputPeriod period = {
        .offered_pkts = offered_pkts - offered_pkts_,
        .taken_pkts = now.taken_pkts - last_.taken_pkts,
        .lost_pkts = now.arrivals.lost_pkts - last_.arrivals.lost_pkts,
        .waiting_pkts = now.ring.waiting_pkts,
        .backlog_pkts = now.arrivals.backlog_pkts,
        .ring_pkts = now.ring.ring_pkts,
        .credit_pkts = now.ring.credit_pkts,
        .fill_max_pkts = std::max(fill.period_max_pkts, now.ring.waiting_pkts),
        .fill_mean_pkts = looks == 0
                              ? 0
                              : static_cast<double>(fill.sum_pkts - last_.ring.fill.sum_pkts) /
                                    static_cast<double>(looks),
        .stage = now.stage};
    period.stage.totals = now.stage.totals.since(last_.stage.totals);
    offered_pkts_ = offered_pkts;
    last_ = now;
    return period;
  }

 private:
  uint64_t offered_pkts_ = 0;
  InputCounts last_;
};

}  // namespace batchplane::exec
