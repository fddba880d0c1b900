// SPDX-License-Identifier: BSD-3-Clause
// graph.cc - makes the instances, links their gates, and finds the tasks and the worker of each.
#include "core/graph/graph.h"

#include <algorithm>

#include "base/nearest_word.h"
#include "core/graph/graph_internal.h"
#include "core/module/after_build.h"
#include "core/module/kind.h"
#include "exec/depth.h"
#include "spec/check.h"

namespace batchplane {
namespace {

// A queue's entry for each further worker that fills it: its node works on the queue itself.
class Door final : public Module {
 public:
  explicit Door(std::string queue) : queue_(std::move(queue)) {}
  [[nodiscard]] Value show() const override { return Dict{{"door_of", queue_}}; }

 private:
  const std::string queue_;
};

// The running module of this name and kind, if it may be kept.
const Instance* kept_instance(const GraphBuild& build, const ModuleSpec& spec) {
  if (build.running == nullptr) return nullptr;
  const auto it = build.running->index.find(spec.name);
  if (it == build.running->index.end()) return nullptr;
  const Instance& instance = build.running->instances[it->second];
  const bool is_same =
      instance.info->kind == spec.kind && instance.is_door() == !spec.door_of.empty();
  return is_same ? &instance : nullptr;
}

// Constructors report the mistakes that only they can detect.
void make_instances(GraphBuild& build, const Kinds& kinds, Mistakes& mistakes) {
  const PipelineSpec& spec = build.graph.spec;
  std::vector<std::string> ports;
  for (const auto& [name, port] : build.graph.env->ports) ports.push_back(name);
  for (const ModuleSpec& module : spec.modules) {
    const size_t n_known = build.errors.size();
    if (!module.door_of.empty() && !build.graph.index.contains(module.door_of)) continue;
    const Instance* const kept = kept_instance(build, module);
    if (module.door_of.empty() && kept == nullptr) check_module(module, kinds, ports, mistakes);
    if (build.errors.size() != n_known || build.graph.index.contains(module.name)) continue;
    const std::string where = spec.where("modules." + module.name);
    const ModuleInfo* info = find_module_kind(module.kind);
    Args args(info->params, module.params, where);
    args.set_env(build.graph.env.get());
    args.set_name(module.name);
    Instance instance{module.name, info, nullptr};
    try {
      if (kept != nullptr) {
        instance.module = kept->module;
        instance.is_kept = true;
        instance.n_gates = kept->n_gates;
      } else if (module.door_of.empty()) {
        instance.module = info->make(args);
      } else {
        instance.module = std::make_unique<Door>(module.door_of);
      }
      instance.works_on = instance.module.get();
      if (!module.door_of.empty()) {
        instance.door_of = build.graph.index.at(module.door_of);
        instance.works_on = build.graph.instances[instance.door_of].module.get();
      }
      if (!instance.is_kept) instance.module->set_name(module.name);
    } catch (const ConfigError& e) {
      build.errors.emplace_back(e.what(), e.where().empty() ? where : e.where(), e.fix());
    }
    build.graph.index[module.name] = static_cast<uint32_t>(build.graph.instances.size());
    build.graph.instances.push_back(std::move(instance));
  }
}

void finish_modules(GraphBuild& build) {
  for (const std::function<void()>& step : AfterBuild::of(*build.graph.env).take()) {
    try {
      step();
    } catch (const ConfigError& error) {
      build.errors.push_back(error);
    }
  }
}

// Joins instances by edges; a queue belongs to the task that fills it, and the modules after it to another.
void find_tasks(GraphBuild& build) {
  const auto n = static_cast<uint32_t>(build.graph.instances.size());
  std::vector<std::pair<uint32_t, uint32_t>> joined;
  for (const LinkedEdge& edge : build.graph.edges) {
    if (build.graph.instances[edge.from].info->shape == Shape::kQueue && edge.gate != kDropGate)
      continue;
    joined.emplace_back(edge.from, edge.to);
  }
  const std::vector<uint32_t> groups = exec::groups_of(n, joined);
  for (uint32_t i = 0; i < n; ++i) {
    if (groups[i] == build.members.size()) build.members.emplace_back();
    build.members[groups[i]].push_back(i);
    build.graph.instances[i].task = groups[i];
  }
  build.inputs.resize(build.members.size());
  for (const LinkedEdge& edge : build.graph.edges) {
    const Instance& from = build.graph.instances[edge.from];
    const Shape shape = from.info->shape;
    const bool begins_task = shape == Shape::kInput || shape == Shape::kQueue;
    if (!begins_task || edge.gate == kDropGate || from.is_door()) continue;
    build.inputs[build.graph.instances[edge.to].task].emplace_back(edge.from, edge.to);
  }
}

// check_graph has verified that the inputs of a task agree.
void find_workers(GraphBuild& build) {
  const PipelineSpec& spec = build.graph.spec;
  const std::string first = spec.first_worker();
  for (uint32_t t = 0; t < build.members.size(); ++t) {
    std::string chosen;
    for (const auto& [input, to] : build.inputs[t]) {
      const ModuleSpec& module = spec.modules[input];
      if (!module.worker.empty()) chosen = module.worker;
    }
    build.worker_of_task.push_back(chosen.empty() ? first : chosen);
  }
}

// Index of the worker of a task that is not made yet.
uint16_t worker_index(const PipelineSpec& spec, const std::string& name) {
  const auto worker = std::ranges::find(spec.workers, name, &WorkerSpec::name);
  return spec.workers.empty() ? 0 : static_cast<uint16_t>(worker - spec.workers.begin());
}

// How a queue is filled: workers in the order of its doors, and for each module before it the worker, by its
// position here, on which it runs.
struct Filling {
  std::vector<uint32_t> workers;
  std::map<std::string, uint32_t> senders;
};
std::map<std::string, Filling> fillings(const Graph& graph,
                                        const std::vector<std::string>& worker_of_task) {
  std::map<std::string, Filling> of_queue;
  std::vector<Filling*> of_instance;
  for (const Instance& instance : graph.instances) {
    of_instance.push_back(nullptr);
    if (instance.info->shape != Shape::kQueue) continue;
    const Instance& queue = instance.is_door() ? graph.instances[instance.door_of] : instance;
    of_instance.back() = &of_queue[queue.name];
    of_instance.back()->workers.push_back(worker_index(graph.spec, worker_of_task[instance.task]));
  }
  for (const LinkedEdge& edge : graph.edges) {
    if (of_instance[edge.to] == nullptr) continue;
    of_instance[edge.to]->senders[graph.instances[edge.from].name] =
        worker_index(graph.spec, worker_of_task[graph.instances[edge.to].task]);
  }
  return of_queue;
}

// Packets that a sender has put into another worker's ring must not be overtaken by those that it now puts
// into its own.
void tell_feeders(GraphBuild& build) {
  Graph& graph = build.graph;
  std::map<std::string, Filling> before;
  if (build.running != nullptr) {
    std::vector<std::string> workers;
    for (const auto& task : build.running->tasks) {
      workers.push_back(task == nullptr ? build.running->spec.first_worker() : task->worker);
    }
    before = fillings(*build.running, workers);
  }
  for (auto& [queue, filling] : fillings(graph, build.worker_of_task)) {
    const Instance& instance = graph.at(queue);
    if (!instance.is_kept) {
      instance.module->set_feeders(filling.workers);
    } else if (before[queue].workers != filling.workers ||
               before[queue].senders != filling.senders) {
      graph.rewiring.feeders.push_back({instance.module.get(), std::move(filling.workers)});
    }
  }
}

// Paths as crossed gates, by the automaton that follows packets.
void take_flows(GraphBuild& build, const std::vector<SpecPath>& paths) {
  Graph& graph = build.graph;
  for (size_t f = 0; f < paths.size(); ++f) {
    const SpecPath& path = paths[f];
    PathAutomaton::Flow flow{path.modules.front(), path.modules.back(), {}};
    std::vector<std::string> names;
    for (size_t i = 0; i < path.modules.size(); ++i) {
      names.push_back(graph.instances[path.modules[i]].name);
      if (i < path.gates.size()) flow.gates.emplace(path.modules[i], path.gates[i]);
    }
    build.flows.push_back(std::move(flow));
    graph.flow_paths.push_back(std::move(names));
    graph.flow_names.push_back(graph.spec.flows[f].name);
  }
  graph.flow_names.emplace_back("other");
}

void set_legs(GraphBuild& build, const std::vector<SpecPath>& flows) {
  Graph& graph = build.graph;
  std::vector<std::vector<uint32_t>> paths;
  std::vector<uint32_t> task_of;
  for (const SpecPath& flow : flows) paths.push_back(flow.modules);
  for (const Instance& instance : graph.instances) task_of.push_back(instance.task);
  graph.legs = exec::find_legs(paths, task_of);
  std::vector<uint32_t> ending_at(graph.instances.size(), exec::Leg::kNone);
  for (uint32_t l = 0; l < graph.legs.all.size(); ++l) ending_at[graph.legs.all[l].ends_at] = l;
  graph.rewiring.legs.resize(graph.tasks.size());
  for (uint32_t i = 0; i < graph.instances.size(); ++i) {
    const Instance& end = graph.instances[i];
    if (graph.works_on_kept(end) && end.info->shape == Shape::kQueue) {
      graph.rewiring.legs[end.task].push_back({end.works_on, ending_at[i]});
    } else if (ending_at[i] != exec::Leg::kNone && end.works_on != nullptr) {
      end.works_on->set_leg(graph.worker_index_of(end), ending_at[i]);
    }
  }
}

void throw_errors(GraphBuild& build) {
  if (!build.errors.empty()) throw ConfigErrors(std::move(build.errors));
}

}  // namespace

uint64_t Graph::max_held_pkts() const {
  uint64_t held = 0;
  for (const Instance& instance : instances) {
    held += instance.module->max_held_pkts();
    if (instance.node != nullptr) held += spec.engine.batch_pkts - 1;
  }
  for (const Rewiring::Feeders& change : rewiring.feeders) {
    held += uint64_t{change.queue->ring_pkts()} * change.workers.size();
  }
  for (const auto& task : tasks) {
    if (task == nullptr || task->unit_plan == nullptr) continue;
    for (const exec::UnitPlan::Unit& unit : task->unit_plan->units) held += unit.queue_pkts;
  }
  return held;
}

uint16_t Graph::worker_index_of(const Instance& instance) const {
  const Task* const task = tasks[instance.task].get();
  return task == nullptr ? 0 : worker_index(spec, task->worker);
}

const Instance& Graph::at(const std::string& name) const {
  const auto it = index.find(name);
  if (it != index.end()) return instances[it->second];
  std::vector<std::string> names;
  for (const auto& [known, i] : index) names.push_back(known);
  const std::string near = nearest_word(name, names);
  throw ConfigError("no module '" + name + "'", "",
                    near.empty() ? "" : "did you mean '" + near + "'?");
}

std::unique_ptr<Graph> build_graph(const PipelineSpec& spec, std::shared_ptr<Environment> env,
                                   const Graph* running) {
  auto graph = std::make_unique<Graph>();
  graph->spec = spec;
  graph->env = std::move(env);
  if (running == nullptr) {
    graph->env->batch_limit_pkts = spec.engine.batch_pkts;
    graph->env->n_workers = static_cast<uint32_t>(std::max<size_t>(1, spec.workers.size()));
  }
  GraphBuild build{*graph, running};
  if (spec.engine.batch_pkts < 1 || spec.engine.batch_pkts > exec::kMaxBatchPkts) {
    build.errors.emplace_back(
        "batch size " + std::to_string(spec.engine.batch_pkts) + " is out of range",
        spec.where("engine.batch_pkts"), "1 to 256");
  }
  if (spec.engine.runs_by_deadline) {
    build.errors.emplace_back(
        "a daemon runs what is ready by depth; by deadline only simulations do",
        spec.where("engine.run_order"), "depth, or batchplane simulate");
  }
  const Kinds kinds = module_kind_facts();
  Mistakes mistakes{build.errors, graph->spec.source_map};
  make_instances(build, kinds, mistakes);
  const LinkedSpec linked = check_graph(spec, kinds, mistakes);
  throw_errors(build);
  finish_modules(build);
  throw_errors(build);
  for (const SpecEdge& edge : linked.edges) {
    graph->edges.push_back({edge.from, edge.gate, edge.to});
  }
  find_tasks(build);
  find_workers(build);
  tell_feeders(build);
  order_nodes(build);
  take_flows(build, linked.flows);
  throw_errors(build);
  make_tasks(build);
  set_legs(build, linked.flows);
  return graph;
}

}  // namespace batchplane
