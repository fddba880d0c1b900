// SPDX-License-Identifier: BSD-3-Clause
// unit_queues.h - the queues of a task's scheduling units: limits, watermarks and backpressure; the schedule
// decides whose turn it is.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "exec/node.h"
#include "exec/queue_waits.h"
#include "exec/unit_plan.h"
#include "exec/unit_schedule.h"

namespace batchplane::exec {

// What `show` reports of a unit; cumulative.
struct UnitCounts {
  uint64_t congested = 0;  // times that the queue rose above its high watermark
  uint32_t max_pkts = 0;   // highest fill after a turn
};

// Owner: one worker; nothing is allocated after construction.
template <class Handle>
struct UnitQueues {
  struct Unit {
    Queue<Handle>* queue = nullptr;  // null: the input
    uint32_t queue_pkts = 0;
    uint32_t high_pkts = 0;
    uint32_t low_pkts = 0;
    uint32_t trigger_pkts = 0;
    uint64_t pace_ns = 0;
    uint64_t due_ns = 0;        // with a pace: when it may run, however little it holds
    uint32_t settled_pkts = 0;  // fill when last looked at
    uint32_t n_ways = 0;        // number of units downstream, plus the way out
    uint32_t n_cut_ways = 0;    // those that are congested, or lead only to congested ones
    bool is_congested = false;
    bool is_cut = false;
    bool is_fed_by_input = false;
    std::vector<uint32_t> upstream;
    QueueWaits waits;  // used with a queueing-time threshold
    UnitCounts counts;
  };

  UnitQueues(const UnitPlan& plan, uint32_t n_nodes)
      : how(plan.how),
        schedule(static_cast<uint32_t>(plan.units.size())),
        units(plan.units.size()),
        unit_of_rank(n_nodes, 0) {
    for (uint32_t u = 0; u < units.size(); ++u) {
      const UnitPlan::Unit& planned = plan.units[u];
      units[u].queue_pkts = planned.queue_pkts;
      units[u].trigger_pkts = planned.trigger_pkts;
      units[u].pace_ns = planned.pace_ns;
      units[u].n_ways =
          static_cast<uint32_t>(planned.downstream.size()) + (planned.has_way_out ? 1 : 0);
      for (const uint32_t d : planned.downstream) {
        units[d].upstream.push_back(u);
        units[d].is_fed_by_input |= u == UnitSchedule::kInput;
      }
      if (u != UnitSchedule::kInput) unit_of_rank[planned.rank] = u;
      schedule.set_weight(u, planned.weight);
      if (how.queueing_time_threshold_ns != 0 && planned.queue_pkts != 0) {
        units[u].waits.reserve(planned.queue_pkts);
      }
    }
  }

  // Above the high watermark there is room for one more batch; the low one exceeds what a trigger waits for.
  void set_watermarks(Unit& unit, uint32_t batch_limit_pkts) const {
    const uint32_t most = unit.queue_pkts - batch_limit_pkts;
    unit.high_pkts = std::clamp(unit.queue_pkts * how.high_watermark_percent / 100,
                                std::min(batch_limit_pkts, most), most);
    unit.low_pkts =
        std::min(unit.high_pkts,
                 std::max(unit.queue_pkts * how.low_watermark_percent / 100, unit.trigger_pkts));
  }

  // Number of packets that make the unit ready now.
  [[nodiscard]] uint32_t threshold_pkts(const Unit& unit, uint64_t now_ns,
                                        uint32_t batch_limit_pkts) const {
    if (unit.pace_ns != 0) {
      if (now_ns >= unit.due_ns) return 1;
      return unit.trigger_pkts == 0 ? batch_limit_pkts : unit.trigger_pkts;
    }
    return std::max(unit.trigger_pkts, 1U);
  }

  // Congested: long, and for long enough. A queue without room for another batch cannot wait for the time to
  // pass.
  void update_congested(uint32_t u, uint32_t size_pkts, uint64_t now_ns,
                        uint32_t batch_limit_pkts) {
    Unit& unit = units[u];
    unit.waits.note_size(size_pkts, now_ns);
    if (size_pkts > unit.high_pkts &&
        (unit.waits.head_wait_ns(now_ns) >= how.queueing_time_threshold_ns ||
         size_pkts > unit.queue_pkts - batch_limit_pkts)) {
      set_congested(u, true);
    } else if (size_pkts <= unit.low_pkts) {
      set_congested(u, false);
    }
  }

  void set_congested(uint32_t u, bool is_congested) {
    Unit& unit = units[u];
    if (unit.is_congested == is_congested) return;
    unit.is_congested = is_congested;
    unit.counts.congested += is_congested ? 1 : 0;
    if (how.backpressure == Backpressure::kOff) return;
    for (const uint32_t up : unit.upstream) {
      // Instead of waiting, the input drops packets for a congested chain.
      if (up == UnitSchedule::kInput && how.backpressure == Backpressure::kEarlyDrop) continue;
      is_congested ? schedule.block(up) : schedule.unblock(up);
    }
    update_cut(u);
  }

  Scheduling how;
  UnitSchedule schedule;
  std::vector<Unit> units;
  std::vector<uint32_t> unit_of_rank;  // 0 = not a unit
  uint64_t turn_began_ns = 0;
  uint32_t charged_unit = UnitSchedule::kNobody;  // whose turn is not charged yet
  bool is_polling = false;
  bool shares_worker = false;  // other tasks run between two turns

 private:
  void update_cut(uint32_t u) {
    Unit& unit = units[u];
    const bool is_cut = unit.is_congested || (unit.n_ways != 0 && unit.n_cut_ways == unit.n_ways);
    if (unit.is_cut == is_cut) return;
    unit.is_cut = is_cut;
    for (const uint32_t up : unit.upstream) {
      if (is_cut) {
        ++units[up].n_cut_ways;
      } else {
        --units[up].n_cut_ways;
      }
      if (up != UnitSchedule::kInput) update_cut(up);
    }
  }
};

}  // namespace batchplane::exec
