// SPDX-License-Identifier: BSD-3-Clause
// way.cc - a backward pass finds the edges that lead to the target; the forward walk follows the only one, or
// stops at a choice.
#include "spec/way.h"

#include <algorithm>

#include "exec/task_layout.h"

namespace batchplane {
namespace {

std::vector<bool> modules_before(const std::vector<std::vector<SpecEdge>>& leaving, uint32_t to) {
  std::vector<std::vector<uint32_t>> before(leaving.size());
  for (const auto& edges : leaving) {
    for (const SpecEdge& edge : edges) {
      if (edge.gate != exec::kDropGate) before[edge.to].push_back(edge.from);
    }
  }
  std::vector<bool> leads(leaving.size(), false);
  leads[to] = true;
  std::vector<uint32_t> todo{to};
  while (!todo.empty()) {
    const uint32_t at = todo.back();
    todo.pop_back();
    for (const uint32_t module : before[at]) {
      if (leads[module]) continue;
      leads[module] = true;
      todo.push_back(module);
    }
  }
  return leads;
}

}  // namespace

Way way_between(const std::vector<std::vector<SpecEdge>>& leaving,
                const std::vector<SpecEdge>& first, uint32_t to) {
  Way way;
  std::vector<SpecEdge> open;
  std::ranges::copy_if(first, std::back_inserter(open),
                       [&](const SpecEdge& edge) { return edge.to == to; });
  if (open.empty()) {
    const std::vector<bool> leads = modules_before(leaving, to);
    const auto is_on_a_way = [&](const SpecEdge& edge) { return leads[edge.to]; };
    std::ranges::copy_if(first, std::back_inserter(open), is_on_a_way);
    // In a graph with a cycle the walk might not end.
    while (open.size() == 1 && open.front().to != to && way.edges.size() < leaving.size()) {
      way.edges.push_back(open.front());
      open.clear();
      for (const SpecEdge& edge : leaving[way.edges.back().to]) {
        if (edge.gate != exec::kDropGate && is_on_a_way(edge)) open.push_back(edge);
      }
    }
  }
  if (open.size() == 1) {
    way.edges.push_back(open.front());
  } else {
    way.choices = std::move(open);
  }
  return way;
}

}  // namespace batchplane
