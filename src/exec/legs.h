// SPDX-License-Identifier: BSD-3-Clause
// legs.h - the parts of a flow's way that lie in one task each, whose delays are measured one by
// one: so that a delay budget can be divided over tasks by what each of them takes.
#pragma once

#include <cstdint>
#include <vector>

namespace batchplane::exec {

// From where a packet is put where the task polls it to where it is put before the next task, or
// leaves. In front of the last task nothing tells flows apart that part only later: they share the
// leg that ends at their queue.
struct Leg {
  static constexpr uint32_t kAllFlows = ~0U;
  static constexpr uint32_t kNone = ~0U;
  uint32_t task = 0;
  uint32_t ends_at = 0;       // module: a queue (or its door), or the flow's egress
  uint32_t flow = kAllFlows;  // of the last task: one flow
};

struct Legs {
  std::vector<Leg> all;
  std::vector<std::vector<uint32_t>> of_flow;  // in the order of its path; none within one task
};

// `paths`: each flow's modules in order; `task_of`: each module's task, of a queue the one that
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
