// SPDX-License-Identifier: BSD-3-Clause
// graph_build.h - what the steps of build_graph hand to each other.
#pragma once

#include <vector>

#include "sim/graph.h"

namespace batchplane::sim {

struct GraphBuild {
  const Spec& spec;
  Graph& graph;
  const Graph* running = nullptr;
  std::vector<uint32_t> task_of = {};             // per module
  std::vector<std::vector<uint32_t>> order = {};  // per task: modules in rank order
  std::vector<uint32_t> worker_of_task = {};
  std::vector<exec::PathAutomaton::Flow> flows = {};
  uint32_t n_traffic_flows = 0;
  std::vector<bool> is_unit = {};  // per module: where tasks are scheduled explicitly
};

// graph_routes.cc: whether an input module is where the source's packets come in.
[[nodiscard]] bool is_input_of(const ModuleSpec& module, const SourceSpec& source);
// graph_routes.cc: the gate that each traffic flow takes at each module; that it takes one wherever
// it comes, and leaves at last.
void set_routes(GraphBuild& build);
// graph_flows.cc: declared paths as gates crossed.
void resolve_flows(GraphBuild& build);
// graph_stages.cc: devices, and the stages that queues of modules with a device have.
void make_stages(GraphBuild& build);
// graph_tasks.cc: nodes, queues, targets, path operations, inputs.
void make_tasks(GraphBuild& build);
// graph_tasks.cc: what controllers are told of the graph.
void make_model(GraphBuild& build);

}  // namespace batchplane::sim
