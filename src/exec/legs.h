// SPDX-License-Identifier: BSD-3-Clause
// legs.h - splits a flow's path into one leg per task and measures the delay of each, so that a delay budget
// can be divided over tasks by their actual delays.
#pragma once

#include <cstdint>
#include <vector>

namespace batchplane::exec {

// From the packet's arrival where the task polls it to its enqueueing for the next task, or its departure.
// Flows that part only in the last task cannot be told apart before it: they share the leg that ends at their
// queue.
struct Leg {
  static constexpr uint32_t kAllFlows = ~0U;
  static constexpr uint32_t kNone = ~0U;
  uint32_t task = 0;
  uint32_t ends_at = 0;       // a queue module (or its door), or the flow's egress
  uint32_t flow = kAllFlows;  // set only in the last task
};

struct Legs {
  std::vector<Leg> all;
  std::vector<std::vector<uint32_t>> of_flow;  // in path order; empty for flows within one task
};

// `paths`: each flow's modules in order; `task_of`: each module's task; a queue belongs to the task that
// fills it.
inline Legs find_legs(const std::vector<std::vector<uint32_t>>& paths,
                      const std::vector<uint32_t>& task_of) {
  Legs legs;
  std::vector<uint32_t> ending_at(task_of.size(), Leg::kNone);
  for (uint32_t f = 0; f < paths.size(); ++f) {
    const std::vector<uint32_t>& path = paths[f];
    std::vector<uint32_t> of_flow;
    for (size_t i = 0; i + 1 < path.size(); ++i) {
      const uint32_t module = path[i];
      if (task_of[module] == task_of[path[i + 1]]) continue;
      if (ending_at[module] == Leg::kNone) {
        ending_at[module] = static_cast<uint32_t>(legs.all.size());
        legs.all.push_back({task_of[module], module, Leg::kAllFlows});
      }
      of_flow.push_back(ending_at[module]);
    }
    if (!of_flow.empty()) {
      of_flow.push_back(static_cast<uint32_t>(legs.all.size()));
      legs.all.push_back({task_of[path.back()], path.back(), f});
    }
    legs.of_flow.push_back(std::move(of_flow));
  }
  return legs;
}

}  // namespace batchplane::exec
