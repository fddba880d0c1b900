// SPDX-License-Identifier: BSD-3-Clause
// graph.cc - makes the modules, gates, sources and tasks of a specification.
#include "sim/graph.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "base/nearest_word.h"
#include "exec/depth.h"
#include "sim/graph_build.h"
#include "slo/model/model.h"
#include "spec/stages.h"

namespace batchplane::sim {
namespace {

std::optional<uint32_t> parse_number(const std::string& text) {
  uint32_t number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || stop != text.data() + text.size()) return std::nullopt;
  return number;
}

void make_modules(GraphBuild& build) {
  Graph& graph = build.graph;
  for (const ModuleSpec& spec : build.spec.pipeline.modules) {
    auto module = std::make_unique<Module>();
    module->name = spec.name;
    module->kind = spec.kind;
    module->index = static_cast<uint32_t>(graph.modules.size());
    module->rng = Rng(build.spec.seed * 1'000'003 + module->index);
    graph.index[spec.name] = module->index;
    graph.modules.push_back(std::move(module));
  }
}

// Numbered gates keep their numbers; named gates get the numbers after the largest one.
void make_edges(GraphBuild& build) {
  Graph& graph = build.graph;
  std::map<uint32_t, uint32_t> next_free;
  for (const EdgeSpec& edge : build.spec.pipeline.edges) {
    const auto number = parse_number(edge.gate);
    if (number && *number >= exec::kDropGate) {
      throw ConfigError("gate " + edge.gate + " is out of range 0 .. 65534", "edges",
                        "number gates from 0");
    }
    uint32_t& next = next_free[graph.at(edge.from)];
    if (number) next = std::max(next, *number + 1);
  }
  for (const EdgeSpec& edge : build.spec.pipeline.edges) {
    const uint32_t from = graph.at(edge.from);
    const auto number = parse_number(edge.gate);
    uint32_t gate = exec::kDropGate;
    if (number) {
      gate = *number;
    } else if (edge.gate != kDropGateText) {
      gate = next_free[from]++;
    }
    graph.edges.push_back({from, gate, graph.at(edge.to), edge.gate});
  }
}

Role role_of(const GraphBuild& build, const ModuleSpec& spec, uint32_t i) {
  bool is_reached = false;
  bool leads_on = false;
  bool has_many_gates = false;
  for (const Edge& edge : build.graph.edges) {
    is_reached |= edge.to == i;
    if (edge.from != i || edge.gate == exec::kDropGate) continue;
    leads_on = true;
    has_many_gates |= edge.gate != 0;
  }
  const bool is_stage = !spec.device.is_null();
  if (is_stage || spec.kind == "queue" || spec.kind == "local_tap" || spec.kind == kSchedulerKind) {
    return Role::kQueue;
  }
  if (!is_reached && leads_on) return Role::kInput;
  if (!leads_on) return spec.kind == "drop" ? Role::kDrop : Role::kEgress;
  if (spec.kind == "split") {
    const auto mode = spec.params.find("mode");
    const std::string name = mode == spec.params.end() ? "round_robin" : mode->second.as_string();
    if (name == "random" || name == "weighted") return Role::kRandom;
    if (name == "round_robin") return Role::kInTurn;
  }
  return has_many_gates ? Role::kRoute : Role::kPass;
}

void set_roles(GraphBuild& build) {
  Graph& graph = build.graph;
  for (uint32_t i = 0; i < graph.modules.size(); ++i) {
    Module& module = *graph.modules[i];
    const ModuleSpec& spec = build.spec.pipeline.modules[i];
    module.role = role_of(build, spec, i);
    uint32_t n_gates = 0;
    for (const Edge& edge : graph.edges) {
      if (edge.from == i && edge.gate != exec::kDropGate)
        n_gates = std::max(n_gates, edge.gate + 1);
    }
    if (module.role == Role::kRandom || module.role == Role::kInTurn) {
      const auto gates = spec.params.find("gates");
      if (gates != spec.params.end()) {
        n_gates = std::max(n_gates, static_cast<uint32_t>(gates->second.as_int()));
      }
      const auto weights = spec.params.find("weights");
      if (weights != spec.params.end() && !weights->second.as_list().empty()) {
        std::vector<double> shares;
        for (const Value& weight : weights->second.as_list()) shares.push_back(weight.as_double());
        shares.resize(n_gates, 0.0);
        module.weights = std::make_unique<AliasTable>(shares);
      }
    }
    module.n_gates = static_cast<uint16_t>(n_gates);
    module.stamps.assign(n_gates, 0);
    if (spec.kind == kSchedulerKind && spec.door_of.empty()) {
      graph.queues.push_back(std::make_unique<Queue>(build.spec.schedulers.at(spec.name)));
      module.queue = graph.queues.back().get();
      module.ring = module.queue->add_ring();
    } else if (module.role == Role::kQueue) {
      const auto size = spec.params.find("size_pkts");
      const int64_t size_pkts = size == spec.params.end() ? 1024 : size->second.as_int();
      if (size_pkts < 1 || size_pkts > 1 << 24) {
        throw ConfigError("'size_pkts' is " + std::to_string(size_pkts), "modules." + spec.name,
                          "give a number from 1 to 16777216");
      }
      if (spec.door_of.empty()) {
        const auto credit = spec.params.find("credit_pkts");
        int64_t credit_pkts = credit == spec.params.end() ? 0 : credit->second.as_int();
        if (credit_pkts < 0 || credit_pkts > size_pkts) {
          throw ConfigError(
              "'credit_pkts' is " + std::to_string(credit_pkts), "modules." + spec.name,
              "give a number from 0 (all) to size_pkts, " + std::to_string(size_pkts));
        }
        if (credit_pkts == 0) credit_pkts = size_pkts;
        const auto flag = spec.params.find("backpressure");
        const bool holds_back = flag != spec.params.end() && flag->second.as_bool();
        graph.queues.push_back(std::make_unique<Queue>(
            static_cast<uint32_t>(size_pkts), static_cast<uint32_t>(credit_pkts), holds_back));
        module.queue = graph.queues.back().get();
      } else {
        module.queue =
            graph.modules[graph.at(spec.door_of)]->queue;  // the queue comes before its doors
      }
      module.ring = module.queue->add_ring();
    }
  }
}

// Whether this is either half of a module with a device. The stage knows its function's cost on the
// worker.
bool is_in_stage(const GraphBuild& build, const Module& module) {
  if (module.role == Role::kQueue) return module.queue->stage() != nullptr;
  return build.spec.stages.contains(stage_of_results(module.name));
}

void set_costs(GraphBuild& build) {
  std::string missing;
  for (const auto& module : build.graph.modules) {
    const std::string& queue = build.spec.pipeline.modules[module->index].door_of;
    auto it = build.spec.costs.find(queue.empty() ? module->name : queue);
    const bool is_of_part = !build.spec.pipeline.modules[module->index].leads_to.empty();
    if (it == build.spec.costs.end() && is_of_part) it = build.spec.costs.find(kAnyInQueue);
    if (is_in_stage(build, *module)) {
      const auto in_queue = build.spec.costs.find(kAnyInQueue);
      it = module->role == Role::kQueue ? in_queue : it;
      if (it == build.spec.costs.end()) continue;  // costs nothing
    }
    if (it != build.spec.costs.end()) {
      module->set_cost(it->second, build.spec.pipeline.engine.batch_pkts);
    } else if (module->role != Role::kInput) {
      missing += (missing.empty() ? "" : ", ") + module->name + " (" + module->kind + ")";
    }
  }
  if (missing.empty()) return;
  throw ConfigError("no cost is known of " + missing, "simulation.costs",
                    "measure them: batchplane profile --pipeline " + build.spec.pipeline.name +
                        " --out costs.json; or use --costs prior");
}

void find_tasks(GraphBuild& build) {
  Graph& graph = build.graph;
  const auto n = static_cast<uint32_t>(graph.modules.size());
  std::vector<std::pair<uint32_t, uint32_t>> inner;
  for (const Edge& edge : graph.edges) {
    const bool leaves =
        graph.modules[edge.from]->role == Role::kQueue && edge.gate != exec::kDropGate;
    if (!leaves) inner.emplace_back(edge.from, edge.to);
  }
  const exec::Depths depths = exec::depths_of(n, inner);
  if (!depths.in_cycle.empty()) {
    std::string names;
    for (const uint32_t i : depths.in_cycle) {
      names += (names.empty() ? "" : ", ") + graph.modules[i]->name;
    }
    throw ConfigError("the modules " + names + " lie on or behind a cycle", "edges",
                      "put a module of kind queue into the loop");
  }
  build.task_of = exec::groups_of(n, inner);
  build.order.resize(n == 0 ? 0 : *std::ranges::max_element(build.task_of) + 1);
  for (uint32_t i = 0; i < n; ++i) {
    if (graph.modules[i]->role != Role::kInput) build.order[build.task_of[i]].push_back(i);
  }
  for (std::vector<uint32_t>& order : build.order) {
    std::ranges::stable_sort(order, {}, [&](uint32_t i) { return depths.depth[i]; });
  }
}

void find_workers(GraphBuild& build) {
  const PipelineSpec& pipeline = build.spec.pipeline;
  for (const WorkerSpec& worker : pipeline.workers) {
    if (worker.is_shared) {
      throw ConfigError("worker '" + worker.name + "' is shared: that is not simulated", "workers",
                        "give it a core of its own");
    }
    build.graph.worker_names.push_back(worker.name);
    build.graph.worker_cores.push_back(worker.core);
  }
  if (build.graph.worker_names.empty()) {
    build.graph.worker_names = {pipeline.first_worker()};
    build.graph.worker_cores = {-1};
  }
  build.worker_of_task.assign(build.order.size(), 0);
  for (const Edge& edge : build.graph.edges) {
    const Module& from = *build.graph.modules[edge.from];
    const std::string& wanted = pipeline.modules[edge.from].worker;
    const bool is_input = from.role == Role::kInput || from.role == Role::kQueue;
    if (!is_input || edge.gate == exec::kDropGate || wanted.empty()) continue;
    const auto it = std::ranges::find(build.graph.worker_names, wanted);
    if (it == build.graph.worker_names.end()) {
      throw ConfigError("no worker '" + wanted + "'", "modules." + from.name,
                        "declare it under workers");
    }
    build.worker_of_task[build.task_of[edge.to]] =
        static_cast<uint32_t>(it - build.graph.worker_names.begin());
  }
}

void make_sources(GraphBuild& build, PacketPool& pool, Recorder& recorder) {
  uint32_t first_flow = 0;
  if (build.running != nullptr) {
    build.graph.sources = build.running->sources;
    for (const auto& source : build.graph.sources) {
      build.n_traffic_flows += static_cast<uint32_t>(source->spec().flows.size());
    }
    return;
  }
  for (const SourceSpec& spec : build.spec.sources) {
    build.graph.sources.push_back(std::make_unique<Source>(spec, first_flow, pool, recorder));
    first_flow += static_cast<uint32_t>(spec.flows.size());
  }
  build.n_traffic_flows = first_flow;
}

}  // namespace

uint32_t Graph::at(const std::string& name) const {
  const auto it = index.find(name);
  if (it != index.end()) return it->second;
  std::vector<std::string> names;
  for (const auto& [known, i] : index) names.push_back(known);
  const std::string near = nearest_word(name, names);
  throw ConfigError("no module '" + name + "'", "modules",
                    near.empty() ? "" : "did you mean '" + near + "'?");
}

telemetry::GraphFacts Graph::facts() const {
  telemetry::GraphFacts facts;
  for (const Edge& edge : edges) {
    facts.edges.push_back({edge.from, edge.text, edge.to, edge.gate == exec::kDropGate,
                           modules[edge.from]->role == Role::kInput});
  }
  return facts;
}

std::unique_ptr<Graph> build_graph(const Spec& spec, PacketPool& pool, Recorder& recorder,
                                   const Graph* running) {
  auto graph = std::make_unique<Graph>();
  GraphBuild build{spec, *graph, running};
  make_modules(build);
  make_edges(build);
  set_roles(build);
  make_pacing(build);
  make_stages(build);
  set_costs(build);
  find_tasks(build);
  find_workers(build);
  make_sources(build, pool, recorder);
  set_routes(build);
  resolve_flows(build);
  make_tasks(build);
  make_model(build);
  return graph;
}

}  // namespace batchplane::sim
