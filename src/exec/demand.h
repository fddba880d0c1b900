// SPDX-License-Identifier: BSD-3-Clause
// demand.h - what comes to an input of a task, whether or not it is taken: so that nobody has to
// guess from delays how much there is to do.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/ring_fill.h"

namespace batchplane::exec {

// What the polling side knows of an input's ring. Zeroes where there is none.
struct RingCounts {
  uint64_t waiting_pkts = 0;  // in the ring, now
  uint64_t ring_pkts = 0;     // that it can hold
  RingFill fill;
};

// What the side that brings packets knows.
struct ArrivalCounts {
  uint64_t lost_pkts = 0;     // found no room, came too late, could not be taken; since the start
  uint64_t backlog_pkts = 0;  // due, and waiting for room in the ring, now
};

// Of one input, since its start.
struct InputCounts {
  uint64_t taken_pkts = 0;
  RingCounts ring;
  ArrivalCounts arrivals;

  [[nodiscard]] uint64_t offered_pkts() const {
    return taken_pkts + arrivals.lost_pkts + ring.waiting_pkts + arrivals.backlog_pkts;
  }
};

// Of one input over a period. offered = taken + lost + what waiting and backlog have grown by.
struct InputPeriod {
  uint64_t offered_pkts = 0;  // that came; of a saturating source, those that it found room for
  uint64_t taken_pkts = 0;
  uint64_t lost_pkts = 0;
  uint64_t waiting_pkts = 0;  // in the ring, at the end
  uint64_t backlog_pkts = 0;  // due and waiting for room in the ring, at the end
  uint64_t ring_pkts = 0;     // that the ring can hold; 0: there is none
  uint64_t fill_max_pkts = 0;
  double fill_mean_pkts = 0;  // over all looks at the ring that found packets
};

// Closes periods of one input. Ring and producer are read one after the other, so that what moves
// from one to the other meanwhile may be seen twice; the sums over periods stay exact.
class DemandBook {
 public:
  // What was there before the first period is no demand of it.
  void begin(const InputCounts& now) {
    last_ = now;
    offered_pkts_ = now.offered_pkts();
  }
  InputPeriod close(const InputCounts& now) {
    const uint64_t offered_pkts = std::max(offered_pkts_, now.offered_pkts());
    const RingFill& fill = now.ring.fill;
    const uint64_t looks = fill.looks - last_.ring.fill.looks;
    const InputPeriod period = {
        .offered_pkts = offered_pkts - offered_pkts_,
        .taken_pkts = now.taken_pkts - last_.taken_pkts,
        .lost_pkts = now.arrivals.lost_pkts - last_.arrivals.lost_pkts,
        .waiting_pkts = now.ring.waiting_pkts,
        .backlog_pkts = now.arrivals.backlog_pkts,
        .ring_pkts = now.ring.ring_pkts,
        .fill_max_pkts = std::max(fill.period_max_pkts, now.ring.waiting_pkts),
        .fill_mean_pkts = looks == 0
                              ? 0
                              : static_cast<double>(fill.sum_pkts - last_.ring.fill.sum_pkts) /
                                    static_cast<double>(looks)};
    offered_pkts_ = offered_pkts;
    last_ = now;
    return period;
  }

 private:
  uint64_t offered_pkts_ = 0;
  InputCounts last_;
};

}  // namespace batchplane::exec
