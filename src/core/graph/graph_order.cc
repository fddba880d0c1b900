// SPDX-License-Identifier: BSD-3-Clause
// graph_order.cc - ranks the nodes of each task by depth.
#include <algorithm>

#include "core/graph/graph_internal.h"
#include "exec/depth.h"

namespace batchplane {
namespace {

// Edges within a task: all except those that leave a queue.
bool is_inner(const Graph& graph, const LinkedEdge& edge) {
  const Shape shape = graph.instances[edge.from].info->shape;
  return shape != Shape::kQueue || edge.gate == kDropGate;
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
