// SPDX-License-Identifier: BSD-3-Clause
// graph_tasks.cc - lays out each task: nodes in rank order, queues, gate targets, path operations.
#include <algorithm>

#include "core/graph/graph_internal.h"
#include "core/module/dead_end.h"
#include "exec/controlled.h"
#include "exec/task_layout.h"

namespace batchplane {
namespace {

class TaskMaker {
 public:
  TaskMaker(GraphBuild& build, const PathAutomaton& paths, uint32_t t)
      : build_(build), graph_(build.graph), paths_(paths), t_(t), task_(std::make_unique<Task>()) {
    for (uint32_t rank = 0; rank < build.order[t].size(); ++rank)
      ranks_[build.order[t][rank]] = rank;
  }

  std::unique_ptr<Task> make() {
    task_->worker = build_.worker_of_task[t_];
    const exec::TaskPlan<CoreTraits> plan = make_plan();
    exec::TaskLayout<CoreTraits>(plan, *task_);
    for (const uint32_t i : build_.order[t_]) graph_.instances[i].node = &task_->nodes[rank_of(i)];
    for (const uint32_t i : build_.order[t_]) {
      exec::add_path_ops<CoreTraits>(*task_, node_of(i), i, paths_, out_edges(i));
      if (graph_.instances[i].info->is_egress) set_flows(i);
    }
    add_inputs();
    return std::move(task_);
  }

 private:
  ExecNode& node_of(uint32_t instance) { return *graph_.instances[instance].node; }

  // For an instance of this task that is not a pure input.
  uint32_t rank_of(uint32_t instance) const { return ranks_.at(instance); }

  std::vector<PathEdge> out_edges(uint32_t instance) const {
    std::vector<PathEdge> edges;
    for (const LinkedEdge& edge : graph_.edges) {
      if (edge.from == instance) edges.push_back({edge.from, edge.gate, edge.to});
    }
    return edges;
  }

  // The dead end is the last node: any gate may lead there, so its rank is above all others.
  exec::TaskPlan<CoreTraits> make_plan() {
    exec::TaskPlan<CoreTraits> plan;
    plan.batch_limit_pkts = graph_.spec.engine.batch_pkts;
    plan.scheduling = graph_.spec.scheduling_of(task_->worker);
    plan.n_reasons = static_cast<uint32_t>(drop_reasons().size());
    for (const uint32_t i : build_.order[t_]) {
      task_->node_names.push_back(graph_.instances[i].name);
      plan.nodes.push_back(plan_node(i));
      for (const PathEdge& edge : out_edges(i)) {
        if (graph_.instances[i].info->shape == Shape::kQueue && edge.gate != kDropGate) continue;
        plan.edges.push_back({rank_of(i), edge.gate, rank_of(edge.to)});
        edges_by_rank_.emplace_back(rank_of(i), rank_of(edge.to));
      }
    }
    task_->dead_end = make_dead_end();
    task_->node_names.emplace_back("(dead end)");
    plan.nodes.push_back({.run = dead_end_info().run,
                          .module = task_->dead_end.get(),
                          .age_limit_ns = graph_.spec.engine.stranding_limit_ns});
    const auto other = static_cast<uint16_t>(graph_.flow_names.size() - 1);
    for (const uint32_t i : build_.order[t_]) {
      const Instance& instance = graph_.instances[i];
      if (!graph_.works_on_kept(instance)) instance.works_on->set_flows(other, nullptr);
    }
    task_->dead_end->set_flows(other, nullptr);
    for (const auto& [input, first] : build_.inputs[t_]) plan.firsts.push_back(rank_of(first));
    // Instances are in the order of the pipeline file.
    for (const auto& [instance, rank] : ranks_) plan.file_order.push_back(rank);
    return plan;
  }

  exec::TaskPlan<CoreTraits>::PlannedNode plan_node(uint32_t i) {
    using Follow = exec::TaskPlan<CoreTraits>::Follow;
    Instance& instance = graph_.instances[i];
    const ModuleSpec& spec = graph_.spec.modules[i];
    uint32_t connected = 0;
    for (const PathEdge& edge : out_edges(i)) {
      if (edge.gate != kDropGate) connected = std::max(connected, edge.gate + 1);
    }
    exec::TaskPlan<CoreTraits>::PlannedNode node{
        .run = instance.info->run,
        .module = instance.works_on,
        .may_emit = instance.works_on->may_emit(),
        .max_held_pkts = instance.works_on->max_held_pkts(),
        .trigger_pkts = spec.trigger_pkts,
        .age_limit_ns =
            spec.age_limit_ns != 0 ? spec.age_limit_ns : graph_.spec.engine.stranding_limit_ns,
        .is_unit = build_.is_unit[i],
        .weight = std::max(spec.weight, 1U),
        .queue_pkts = spec.queue_pkts};
    const Shape shape = instance.info->shape;
    if (shape == Shape::kTerminal || shape == Shape::kQueue) return node;
    node.follow = shape == Shape::kSplitter ? Follow::kByGate : Follow::kNext;
    // A kept module keeps its connections.
    if (!instance.is_kept) instance.n_gates = std::max(connected, instance.module->link(connected));
    node.n_gates = instance.n_gates;
    return node;
  }

  void set_flows(uint32_t i) {
    const auto other = static_cast<uint16_t>(graph_.flow_names.size() - 1);
    const exec::EgressFlows flows = exec::egress_flows<CoreTraits>(*task_, i, paths_, other);
    Module& module = *graph_.instances[i].module;
    if (graph_.instances[i].is_kept) {
      graph_.rewiring.flows[t_].push_back({&module, flows.static_flow, flows.of_state});
    } else {
      module.set_flows(flows.static_flow, flows.of_state);
    }
  }

  void add_inputs() {
    std::vector<uint32_t> inputs;
    for (const auto& [input, first] : build_.inputs[t_]) {
      inputs.push_back(input);
      Instance& instance = graph_.instances[input];
      TaskInput made{instance.module.get(), instance.info->poll, graph_.instances[first].node};
      // Packets keep the state with which they were put into the queue, unless that state was static.
      const auto& states = paths_.states_at(input);
      if (!paths_.is_static(first) && paths_.is_static(input) && states.size() == 1) {
        made.entry_state = paths_.next(input, 0, *states.begin());
      }
      made.is_queue = instance.info->shape == Shape::kQueue;
      made.absorbs = instance.module->absorbs();
      made.is_timed = !made.is_queue && instance.module->times_polls();
      made.counts_as_in = !made.is_queue || instance.info->is_egress;
      if (!instance.info->drops.empty()) made.drops.resize(drop_reasons().size());
      task_->inputs.push_back(made);
      if (instance.info->shape == Shape::kInput) instance.task = t_;
    }
    task_->poll_pkts = graph_.spec.poll_pkts_of(inputs);
    for (const uint32_t i : build_.order[t_]) {
      Module& module = *graph_.instances[i].works_on;
      if (module.wants_backpressure()) {
        const auto n_nodes = static_cast<uint32_t>(task_->nodes.size());
        task_->hold_backs.push_back(
            exec::hold_back_of<Module>(&module, rank_of(i), n_nodes, edges_by_rank_));
      }
      if (module.housekeep_interval_ns() == 0) continue;
      task_->housekeepers.push_back(
          {&module, graph_.instances[i].node, module.housekeep_interval_ns()});
    }
  }

  GraphBuild& build_;
  Graph& graph_;
  const PathAutomaton& paths_;
  uint32_t t_;
  std::map<uint32_t, uint32_t> ranks_;  // by instance
  std::vector<std::pair<uint32_t, uint32_t>> edges_by_rank_;
  std::unique_ptr<Task> task_;
};

}  // namespace

namespace {

// Units by position in the graph, or because the pipeline sets a parameter that only units have.
void find_units(GraphBuild& build) {
  std::vector<exec::ControlledInput> inputs;
  for (const Instance& instance : build.graph.instances) {
    inputs.push_back({instance.info->shape != Shape::kInput, instance.info->is_egress});
  }
  std::vector<std::pair<uint32_t, uint32_t>> edges;
  for (const LinkedEdge& edge : build.graph.edges) edges.emplace_back(edge.from, edge.to);
  build.is_unit = exec::controlled_modules(inputs, edges);
  for (uint32_t i = 0; i < inputs.size(); ++i) {
    const bool is_asked = PipelineSpec::asks_for_unit(build.graph.spec.modules[i]);
    build.is_unit[i] = build.is_unit[i] || (is_asked && inputs[i].has_buffer);
  }
}

}  // namespace

void make_tasks(GraphBuild& build) {
  find_units(build);
  Graph& graph = build.graph;
  std::vector<PathEdge> edges;
  for (const LinkedEdge& edge : graph.edges) edges.push_back({edge.from, edge.gate, edge.to});
  std::vector<uint32_t> entries;
  for (uint32_t i = 0; i < graph.instances.size(); ++i) {
    if (graph.instances[i].info->shape == Shape::kInput) entries.push_back(i);
  }
  graph.paths = std::make_unique<PathAutomaton>(
      static_cast<uint32_t>(graph.instances.size()), edges, entries, build.flows,
      build.running == nullptr ? nullptr : build.running->paths.get());
  for (uint32_t i = 0; i < graph.instances.size(); ++i) {
    // A scheduler records its guarantees by the packet's state.
    if (graph.instances[i].module->is_scheduler()) graph.paths->carry_at(i);
    if (!graph.instances[i].is_door()) continue;
    graph.paths->carry_at(i);
    graph.paths->carry_at(graph.instances[i].door_of);
  }
  const PathAutomaton& paths = *graph.paths;
  graph.rewiring.flows.resize(build.members.size());
  for (uint32_t t = 0; t < build.members.size(); ++t) {
    if (build.order[t].empty()) {
      graph.tasks.push_back(nullptr);  // an input alone, whose packets go to another task
      continue;
    }
    graph.tasks.push_back(TaskMaker(build, paths, t).make());
    graph.tasks.back()->index = static_cast<uint16_t>(t);
  }
}

}  // namespace batchplane
