// SPDX-License-Identifier: BSD-3-Clause
// graph_order.cc - ranks the nodes of each task by depth and refuses cycles and unreachable
// modules.
#include <algorithm>
#include <deque>

#include "core/graph_internal.h"
#include "exec/depth.h"

namespace batchplane {
namespace {

// Edges that stay within a task: all but those that leave a queue.
bool is_inner(const Graph& graph, const LinkedEdge& edge) {
  const Shape shape = graph.instances[edge.from].info->shape;
  return shape != Shape::kQueue || edge.gate == kDropGate;
}

void note_cycle(GraphBuild& build, const std::vector<uint32_t>& in_cycle) {
  std::string names;
  for (const uint32_t i : in_cycle) {
    names += (names.empty() ? "" : ", ") + build.graph.instances[i].name;
  }
  build.errors.emplace_back("the modules " + names + " lie on or behind a cycle", "edges",
                            "put a module of kind queue into the loop");
}

void note_unreachable(GraphBuild& build) {
  const Graph& graph = build.graph;
  std::vector<bool> reached(graph.instances.size(), false);
  std::deque<uint32_t> work;
  for (uint32_t i = 0; i < graph.instances.size(); ++i) {
    if (graph.instances[i].info->shape == Shape::kInput) work.push_back(i);
  }
  for (const uint32_t i : work) reached[i] = true;
  while (!work.empty()) {
    const uint32_t at = work.front();
    work.pop_front();
    for (const LinkedEdge& edge : graph.edges) {
      if (edge.from != at || reached[edge.to]) continue;
      reached[edge.to] = true;
      work.push_back(edge.to);
    }
  }
  for (uint32_t i = 0; i < reached.size(); ++i) {
    // A queue may also be fed from outside (a TAP), so what stands behind one counts as reached.
    if (reached[i] || graph.instances[i].info->shape == Shape::kQueue) continue;
    bool is_behind_queue = false;
    for (const auto& [input, first] : build.inputs[graph.instances[i].task]) {
      is_behind_queue |= graph.instances[input].info->shape == Shape::kQueue;
    }
    if (is_behind_queue) continue;
    build.errors.emplace_back("no packet can reach '" + graph.instances[i].name + "'",
                              graph.spec.where("modules." + graph.instances[i].name),
                              "connect it, or remove it");
  }
}

}  // namespace

void order_nodes(GraphBuild& build) {
  const Graph& graph = build.graph;
  std::vector<std::pair<uint32_t, uint32_t>> inner;
  for (const LinkedEdge& edge : graph.edges) {
    if (is_inner(graph, edge)) inner.emplace_back(edge.from, edge.to);
  }
  exec::Depths depths = exec::depths_of(static_cast<uint32_t>(graph.instances.size()), inner);
  build.depth = std::move(depths.depth);
  if (!depths.in_cycle.empty()) {
    note_cycle(build, depths.in_cycle);
    return;
  }
  note_unreachable(build);
  for (const std::vector<uint32_t>& members : build.members) {
    std::vector<uint32_t> order;
    for (const uint32_t i : members) {
      if (graph.instances[i].info->shape != Shape::kInput) order.push_back(i);
    }
    std::ranges::stable_sort(order, {}, [&](uint32_t i) { return build.depth[i]; });
    constexpr size_t kMaxNodes = 60'000;
    if (order.size() > kMaxNodes) {
      build.errors.emplace_back("a task has more than 60,000 modules", "modules",
                                "split it by queues");
    }
    build.order.push_back(std::move(order));
  }
}

}  // namespace batchplane
