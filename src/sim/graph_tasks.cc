// SPDX-License-Identifier: BSD-3-Clause
// graph_tasks.cc - lays out each simulated task as the engine lays out its own.
#include <algorithm>

#include "exec/controlled.h"
#include "sim/graph_build.h"
#include "slo/model/model.h"

namespace batchplane::sim {
namespace {

class TaskMaker {
 public:
  TaskMaker(GraphBuild& build, uint32_t t)
      : build_(build), graph_(build.graph), t_(t), task_(std::make_unique<Task>()) {
    for (uint32_t rank = 0; rank < build.order[t].size(); ++rank) {
      ranks_[build.order[t][rank]] = rank;
    }
  }

  std::unique_ptr<Task> make() {
    task_->index = t_;
    task_->worker = build_.worker_of_task[t_];
    task_->modules = build_.order[t_];
    const exec::TaskPlan<Traits> plan = make_plan();
    exec::TaskLayout<Traits>(plan, *task_);
    const auto other = static_cast<uint16_t>(graph_.flow_names.size() - 1);
    for (const uint32_t i : build_.order[t_]) {
      Node& node = task_->nodes[ranks_.at(i)];
      exec::add_path_ops<Traits>(*task_, node, i, *graph_.paths, out_edges(i));
      Module& module = *graph_.modules[i];
      if (module.role != Role::kEgress) continue;
      const exec::EgressFlows flows = exec::egress_flows<Traits>(*task_, i, *graph_.paths, other);
      module.static_flow = flows.static_flow;
      module.flow_of_state = flows.of_state;
    }
    add_inputs();
    return std::move(task_);
  }

 private:
  std::vector<exec::PathEdge> out_edges(uint32_t i) const {
    std::vector<exec::PathEdge> edges;
    for (const Edge& edge : graph_.edges) {
      if (edge.from == i) edges.push_back({edge.from, edge.gate, edge.to});
    }
    return edges;
  }

  exec::TaskPlan<Traits> make_plan() {
    using Plan = exec::TaskPlan<Traits>;
    const EngineSpec& engine = build_.spec.pipeline.engine;
    Plan plan;
    plan.batch_limit_pkts = engine.batch_pkts;
    plan.scheduling = build_.spec.pipeline.scheduling_of(graph_.worker_names[task_->worker]);
    plan.n_reasons = kReasons;
    if (engine.runs_by_deadline) plan.backlog_pkts = kBacklogBatches * engine.batch_pkts;
    for (const uint32_t i : build_.order[t_]) {
      Module& module = *graph_.modules[i];
      const ModuleSpec& spec = build_.spec.pipeline.modules[i];
      typename Plan::PlannedNode node{
          .run = run_function(module),
          .module = &module,
          .trigger_pkts = std::min(spec.trigger_pkts, engine.batch_pkts),
          .age_limit_ns = spec.age_limit_ns != 0 ? spec.age_limit_ns : engine.stranding_limit_ns,
          .is_unit = build_.is_unit[i],
          .weight = std::max(spec.weight, 1U),
          .queue_pkts = spec.queue_pkts};
      const bool is_splitter = module.role == Role::kRoute || module.role == Role::kRandom ||
                               module.role == Role::kInTurn;
      if (is_splitter) node.follow = Plan::Follow::kByGate;
      if (module.role == Role::kPass) node.follow = Plan::Follow::kNext;
      if (node.follow != Plan::Follow::kNothing) {
        node.n_gates = std::max<uint32_t>(module.n_gates, 1);
      }
      plan.nodes.push_back(node);
      for (const Edge& edge : graph_.edges) {
        if (edge.from != i || (module.role == Role::kQueue && edge.gate != exec::kDropGate))
          continue;
        plan.edges.push_back({ranks_.at(i), edge.gate, ranks_.at(edge.to)});
        edges_by_rank_.emplace_back(ranks_.at(i), ranks_.at(edge.to));
      }
    }
    task_->dead_end = std::make_unique<Module>();
    task_->dead_end->name = "(dead end)";
    task_->dead_end->role = Role::kDeadEnd;
    plan.nodes.push_back({.run = run_function(*task_->dead_end),
                          .module = task_->dead_end.get(),
                          .age_limit_ns = engine.stranding_limit_ns});
    for (const Edge& edge : graph_.edges) {
      if (is_input_here(edge)) plan.firsts.push_back(ranks_.at(edge.to));
    }
    for (const auto& [module, rank] : ranks_) plan.file_order.push_back(rank);
    return plan;
  }

  [[nodiscard]] bool is_door(uint32_t module) const {
    return !build_.spec.pipeline.modules[module].door_of.empty();
  }
  [[nodiscard]] bool is_input_here(const Edge& edge) const {
    const Role role = graph_.modules[edge.from]->role;
    if (is_door(edge.from)) return false;
    return (role == Role::kInput || role == Role::kQueue) && edge.gate != exec::kDropGate &&
           build_.task_of[edge.to] == t_;
  }

  void add_inputs() {
    for (const uint32_t i : build_.order[t_]) {
      const Dict& params = build_.spec.pipeline.modules[i].params;
      const auto flag = params.find("backpressure");
      const Module& module = *graph_.modules[i];
      if (module.queue == nullptr || flag == params.end() || !flag->second.as_bool()) continue;
      const auto n_nodes = static_cast<uint32_t>(task_->nodes.size());
      const Module* const end = &module;
      task_->hold_backs.push_back(exec::hold_back_of(end, ranks_.at(i), n_nodes, edges_by_rank_));
    }
    std::vector<uint32_t> inputs;
    for (const Edge& edge : graph_.edges) {
      if (!is_input_here(edge)) continue;
      inputs.push_back(edge.from);
      Module& module = *graph_.modules[edge.from];
      TaskInput input{.module = &module, .first = &task_->nodes[ranks_.at(edge.to)]};
      input.queue = module.queue;
      for (const auto& source : graph_.sources) {
        const ModuleSpec& spec = build_.spec.pipeline.modules[edge.from];
        if (module.role == Role::kInput && is_input_of(spec, source->spec())) {
          input.source = source.get();
        }
      }
      const auto& states = graph_.paths->states_at(edge.from);
      if (!graph_.paths->is_static(edge.to) && graph_.paths->is_static(edge.from) &&
          states.size() == 1) {
        input.entry_state = graph_.paths->next(edge.from, edge.gate, *states.begin());
      }
      task_->inputs.push_back(input);
    }
    task_->poll_pkts = build_.spec.pipeline.poll_pkts_of(inputs);
  }

  GraphBuild& build_;
  Graph& graph_;
  uint32_t t_;
  std::map<uint32_t, uint32_t> ranks_;  // by module
  std::vector<std::pair<uint32_t, uint32_t>> edges_by_rank_;
  std::unique_ptr<Task> task_;
};

// Units, by their place in the graph or because the pipeline gives them settings that only units
// have.
void find_units(GraphBuild& build) {
  std::vector<exec::ControlledInput> inputs;
  for (const auto& module : build.graph.modules) {
    inputs.push_back({module->role != Role::kInput, module->role == Role::kEgress});
  }
  std::vector<std::pair<uint32_t, uint32_t>> edges;
  for (const Edge& edge : build.graph.edges) edges.emplace_back(edge.from, edge.to);
  build.is_unit = exec::controlled_modules(inputs, edges);
  for (uint32_t i = 0; i < inputs.size(); ++i) {
    const bool is_asked = PipelineSpec::asks_for_unit(build.spec.pipeline.modules[i]);
    build.is_unit[i] = build.is_unit[i] || (is_asked && inputs[i].has_buffer);
  }
}

}  // namespace

void make_tasks(GraphBuild& build) {
  find_units(build);
  Graph& graph = build.graph;
  std::vector<exec::PathEdge> edges;
  for (const Edge& edge : graph.edges) edges.push_back({edge.from, edge.gate, edge.to});
  std::vector<uint32_t> entries;
  for (uint32_t i = 0; i < graph.modules.size(); ++i) {
    if (graph.modules[i]->role == Role::kInput) entries.push_back(i);
  }
  graph.paths = std::make_unique<exec::PathAutomaton>(
      static_cast<uint32_t>(graph.modules.size()), edges, entries, build.flows,
      build.running == nullptr ? nullptr : build.running->paths.get());
  for (uint32_t i = 0; i < graph.modules.size(); ++i) {
    const std::string& queue = build.spec.pipeline.modules[i].door_of;
    // A scheduler's guarantee for a packet's flow is found by the packet's path state. A stage's
    // packets stay in it when its doors change.
    const Queue* const held_in = graph.modules[i]->queue;
    const bool has_stage = held_in != nullptr && held_in->stage() != nullptr;
    if (has_stage || graph.modules[i]->kind == kSchedulerKind) graph.paths->carry_at(i);
    if (queue.empty()) continue;
    graph.paths->carry_at(i);
    graph.paths->carry_at(graph.at(queue));
  }
  for (const auto& [a, b] : graph.paths->indistinct()) {
    throw ConfigError(
        "flows '" + graph.flow_names[a] + "' and '" + graph.flow_names[b] + "' have the same path",
        "flows[" + std::to_string(b) + "]",
        "flows are told apart by their paths: join them, or split them by a module");
  }
  for (uint32_t t = 0; t < build.order.size(); ++t) {
    if (build.order[t].empty()) continue;
    graph.tasks.push_back(TaskMaker(build, t).make());
  }
}

namespace {

bool is_backpressuring(const Graph& graph, uint32_t queue) {
  return std::ranges::any_of(graph.tasks, [&](const auto& task) {
    return std::ranges::any_of(task->hold_backs, [&](const auto& back) {
      return back.end->queue == graph.modules[queue]->queue;
    });
  });
}

uint32_t max_job_pkts(const TaskInput& input, const PipelineSpec& pipeline) {
  const Stage* const stage = input.queue == nullptr ? nullptr : input.queue->stage();
  return stage == nullptr || !pipeline.placement.is_null() ? 0 : stage->max_batch_pkts();
}

void find_legs(Graph& graph) {
  std::vector<std::vector<uint32_t>> paths;
  std::vector<uint32_t> task_of;
  for (const exec::ControlFlow& flow : graph.model.flows) paths.push_back(flow.path);
  for (const exec::ControlModule& module : graph.model.modules) task_of.push_back(module.task);
  graph.model.legs = exec::find_legs(paths, task_of);
  for (uint32_t l = 0; l < graph.model.legs.all.size(); ++l) {
    Module& end = *graph.modules[graph.model.legs.all[l].ends_at];
    if (end.role == Role::kQueue) end.leg = l;
  }
}

}  // namespace

void make_model(GraphBuild& build) {
  Graph& graph = build.graph;
  exec::ControlModel& model = graph.model;
  model.batch_limit_pkts = build.spec.pipeline.engine.batch_pkts;
  model.workers = graph.worker_names;
  std::map<uint32_t, uint32_t> task_number;
  for (const auto& task : graph.tasks) {
    task_number[task->index] = static_cast<uint32_t>(model.tasks.size());
    exec::ControlTask made{task->worker, {}, task->modules};
    if (task->unit_plan != nullptr) made.scheduling = task->unit_plan->how;
    for (const TaskInput& input : task->inputs) {
      made.inputs.push_back(input.module->index);
      model.inputs.push_back(
          {.module = input.module->index,
           .task = static_cast<uint32_t>(model.tasks.size()),
           .is_queue = input.queue != nullptr,
           .size_pkts = input.queue == nullptr ? 0 : input.queue->size_pkts(),
           .holds_back = is_backpressuring(graph, input.module->index),
           .window_pkts = input.source == nullptr ? 0 : input.source->spec().window_pkts,
           .is_scheduler = input.queue != nullptr && input.queue->scheduler() != nullptr,
           .is_stage = input.queue != nullptr && input.queue->stage() != nullptr,
           .max_job_pkts = max_job_pkts(input, build.spec.pipeline)});
    }
    model.tasks.push_back(std::move(made));
  }
  for (uint32_t i = 0; i < graph.modules.size(); ++i) {
    const Module& module = *graph.modules[i];
    model.modules.push_back({.name = module.name,
                             .task = task_number[build.task_of[i]],
                             .has_buffer = module.role != Role::kInput,
                             .is_egress = module.role == Role::kEgress,
                             .is_unit = false});
  }
  for (const auto& task : graph.tasks) {
    if (task->unit_plan == nullptr) continue;
    for (size_t u = 1; u < task->unit_plan->units.size(); ++u) {
      model.modules[task->modules[task->unit_plan->units[u].rank]].is_unit = true;
    }
  }
  for (const Edge& edge : graph.edges) model.edges.push_back({edge.from, edge.gate, edge.to});
  for (size_t f = 0; f < graph.flow_paths.size(); ++f) {
    exec::ControlFlow flow{graph.flow_names[f], {}};
    for (const std::string& name : graph.flow_paths[f]) flow.path.push_back(graph.at(name));
    model.flows.push_back(std::move(flow));
  }
  find_legs(graph);
  slo::mark_controlled(model);
}

}  // namespace batchplane::sim
