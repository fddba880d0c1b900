// SPDX-License-Identifier: BSD-3-Clause
// graph_internal.h - data that the steps of build_graph hand to each other.
#pragma once

#include <utility>
#include <vector>

#include "core/graph/graph.h"

namespace batchplane {

struct GraphBuild {
  Graph& graph;
  const Graph* running = nullptr;
  std::vector<ConfigError> errors = {};
  std::vector<std::vector<uint32_t>> members = {};                      // per task: instances
  std::vector<std::vector<std::pair<uint32_t, uint32_t>>> inputs = {};  // per task: (input, first)
  std::vector<std::string> worker_of_task = {};
  std::vector<std::vector<uint32_t>> order = {};  // per task: instances in rank order
  std::vector<uint32_t> depth = {};               // per instance: longest path from an input
  std::vector<PathAutomaton::Flow> flows = {};
  std::vector<bool> is_unit = {};  // per instance: where tasks are scheduled explicitly
};

// graph_order.cc: depth of each node, and the order within each task.
void order_nodes(GraphBuild& build);
// graph_tasks.cc: nodes, queues, targets, path operations. Only running out of memory can fail here.
void make_tasks(GraphBuild& build);

}  // namespace batchplane
