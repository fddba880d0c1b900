// SPDX-License-Identifier: BSD-3-Clause
// graph_build.h - the data shared by the steps of build_graph.
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
  // per module: scheduled as a unit, if its task is scheduled explicitly
  std::vector<bool> is_unit = {};
};

// graph_routes.cc: whether the source's packets enter at this input module.
[[nodiscard]] bool is_input_of(const ModuleSpec& module, const SourceSpec& source);
// graph_routes.cc: sets the gate of each traffic flow at each module. Checks that it has one at
// every module it reaches, and that it can leave.
void set_routes(GraphBuild& build);
// graph_numbers.cc: what `pace` and `early_drop` need.
void make_pacing(GraphBuild& build);
// graph_numbers.cc: sets the number of each traffic flow at schedulers, `pace` and `early_drop`.
void set_flow_numbers(GraphBuild& build);
// graph_flows.cc: turns declared paths into gates.
void resolve_flows(GraphBuild& build);
// graph_stages.cc: makes the devices, and the stages of queues whose modules have a device.
void make_stages(GraphBuild& build);
// graph_tasks.cc: nodes, queues, targets, path operations, inputs.
void make_tasks(GraphBuild& build);
// graph_tasks.cc: makes the controllers' model of the graph.
void make_model(GraphBuild& build);

}  // namespace batchplane::sim
