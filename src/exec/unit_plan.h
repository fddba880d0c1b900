// SPDX-License-Identifier: BSD-3-Clause
// unit_plan.h - the scheduling units of a task: queues, weights, and which unit feeds which.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "exec/node.h"
#include "exec/scheduling.h"

namespace batchplane::exec {

// Unit 0 is the input; the others are in rank order.
struct UnitPlan {
  struct Unit {
    uint16_t rank = 0;
    uint32_t weight = 1;
    uint32_t queue_pkts = 0;
    uint32_t trigger_pkts = 0;
    uint64_t pace_ns = 0;
    std::vector<uint32_t> downstream;  // units that its turns may feed
    bool has_way_out = false;          // its turns may also end without feeding a unit
  };
  Scheduling how;
  std::vector<Unit> units;
};

// The plan for a task's nodes; `is_unit` by rank, `firsts` as ranks. Only the ranks of units are set.
template <class Nodes>
UnitPlan connect_units(const Nodes& nodes, const std::vector<bool>& is_unit,
                       const std::vector<uint32_t>& firsts) {
  const auto n = static_cast<uint32_t>(nodes.size());
  UnitPlan plan;
  plan.units.emplace_back();
  std::vector<uint32_t> number(n, 0);
  for (uint32_t rank = 0; rank < n; ++rank) {
    if (!is_unit[rank]) continue;
    number[rank] = static_cast<uint32_t>(plan.units.size());
    plan.units.push_back({.rank = static_cast<uint16_t>(rank)});
  }
  const auto targets_of = [&](uint32_t rank) {
    std::vector<uint32_t> targets;
    for (uint32_t g = 0; g < nodes[rank].n_gates; ++g) {
      targets.push_back(nodes[rank].targets[g]->rank);
    }
    if (nodes[rank].drop_target != nullptr) targets.push_back(nodes[rank].drop_target->rank);
    return targets;
  };
  const auto explore = [&](UnitPlan::Unit& unit, std::vector<uint32_t> work) {
    std::vector<bool> seen(n, false);
    while (!work.empty()) {
      const uint32_t rank = work.back();
      work.pop_back();
      if (seen[rank]) continue;
      seen[rank] = true;
      if (is_unit[rank]) {
        unit.downstream.push_back(number[rank]);
        continue;
      }
      // The dead end is the last node, and any gate may lead there: it does not count as a way out.
      unit.has_way_out |= nodes[rank].after == After::kEnd && rank + 1 != n;
      for (const uint32_t to : targets_of(rank)) work.push_back(to);
    }
    std::ranges::sort(unit.downstream);
  };
  explore(plan.units[0], firsts);
  for (uint32_t u = 1; u < plan.units.size(); ++u) {
    const uint32_t rank = plan.units[u].rank;
    plan.units[u].has_way_out = nodes[rank].after == After::kEnd;
    explore(plan.units[u], targets_of(rank));
  }
  return plan;
}

}  // namespace batchplane::exec
