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

inline double share_of(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
}

// Of one simulation whose links are free. In a plan, packets of a scheduler's flow have a fixed
// share in all packets, so what fills a link or a ceiling is a rate of all packets together.
class PlannedLinks {
 public:
  // A declared flow's waits for all links on its way.
  struct Wait {
    std::string links;  // their names; empty: the flow's packets came to none
    bool has_bound = true;
    double bound_ns = 0;  // without the rounds of the workers that schedule
  };
  static constexpr double kNoLimit = std::numeric_limits<double>::infinity();

  PlannedLinks(const Spec& spec, const Simulation& simulation);

  void begin_period();
  // After a period. True when a bound has become known or longer.
  bool look();
  [[nodiscard]] Wait wait_of(uint32_t flow) const;
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
  struct Passed {
    const Link* link = nullptr;
    uint32_t number = 0;  // the flow there; of several, the one with the longest bound
    [[nodiscard]] const Scheduler::Flow& flow() const { return link->scheduler->flow(number); }
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
  std::vector<std::vector<Passed>> passed_;  // by declared flow
};

}  // namespace batchplane::sim
