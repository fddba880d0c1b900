// SPDX-License-Identifier: BSD-3-Clause
// planner_links.h - what the links behind a plan's schedulers carry of its packets, and how long
// flows may wait for them.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "base/value.h"
#include "sim/simulation.h"

namespace batchplane::sim {

// Of one simulation whose links are free. In a plan, packets of a scheduler's flow have a fixed
// share in all packets, so what fills a link or a ceiling is a rate of all packets together.
class PlannedLinks {
 public:
  // A declared flow's wait for a link.
  struct Wait {
    const Scheduler* scheduler = nullptr;  // null: the flow's packets came to no link
    std::string link;
    uint32_t number = 0;  // the flow there; of several, the one with the longest bound
    bool has_bound = false;
    double bound_ns = 0;  // without the rounds of the worker that schedules
  };
  static constexpr double kNoLimit = std::numeric_limits<double>::infinity();

  PlannedLinks(const Spec& spec, const Simulation& simulation);

  void begin_period();
  // After a period. True when a bound has become known or longer.
  bool look();
  [[nodiscard]] const Wait& wait_of(uint32_t flow) const { return waits_[flow]; }
  // Of `in_pkts` of the period, the highest rate that fills no link and no ceiling.
  [[nodiscard]] double most_pps(uint64_t in_pkts) const;
  // Whether the flow's packets then take more of the link than its share.
  [[nodiscard]] bool is_beyond_share(uint32_t flow, uint64_t in_pkts, double rate_pps) const;
  [[nodiscard]] List value(uint64_t in_pkts, double rate_pps) const;

 private:
  struct Link {
    std::string name;
    const SchedulerSpec* spec;
    Scheduler* scheduler;
  };
  struct Limit {
    bool is_node = false;  // or else the link itself
    uint32_t number = 0;   // of the node
    uint64_t limit_bps = 0;
    double most_pps = kNoLimit;
  };
  [[nodiscard]] static Limit tightest(const Link& link, uint64_t in_pkts);

  const exec::PathAutomaton* paths_;
  std::vector<Link> links_;
  std::vector<Wait> waits_;  // by declared flow
};

}  // namespace batchplane::sim
