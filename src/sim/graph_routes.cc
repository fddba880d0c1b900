// SPDX-License-Identifier: BSD-3-Clause
// graph_routes.cc - the path of each traffic flow, checked by walking it before anything runs.
#include <algorithm>
#include <deque>
#include <set>
#include <utility>

#include "base/nearest_word.h"
#include "sim/graph_build.h"
#include "spec/stages.h"

namespace batchplane::sim {
namespace {

// Stands for "no known gate": replaced later, or refused when a walk reaches it.
constexpr uint16_t kUnknown = 0xfffe;

// The gate of `module` that `text` names: as an edge writes it, or the module behind it.
uint16_t gate_of(const GraphBuild& build, uint32_t module, const std::string& text,
                 const std::string& where) {
  const Graph& graph = build.graph;
  if (text == kDropGateText) return Module::kDropMark;
  std::vector<std::string> known;
  for (const Edge& edge : graph.edges) {
    if (edge.from != module || edge.gate == exec::kDropGate) continue;
    if (edge.text == text || graph.modules[edge.to]->name == text) {
      return static_cast<uint16_t>(edge.gate);
    }
    known.push_back(edge.text);
  }
  const std::string near = nearest_word(text, known);
  throw ConfigError(
      "'" + graph.modules[module]->name + "' has no gate '" + text + "'", where,
      near.empty() ? "drop, or a gate that is connected" : "did you mean '" + near + "'?");
}

class Walk {
 public:
  Walk(GraphBuild& build, uint32_t flow, std::string name)
      : graph_(build.graph), flow_(flow), name_(std::move(name)) {}

  // Every module that a packet of the flow can come to, from `input` on.
  void from(uint32_t input) {
    std::deque<uint32_t> work = {input};
    reached_.insert(input);
    while (!work.empty()) {
      const uint32_t at = work.front();
      work.pop_front();
      for (const uint32_t to : next_of(at)) {
        before_[to].insert(at);
        if (reached_.insert(to).second) work.push_back(to);
      }
    }
    refuse_circles();
  }

 private:
  // The modules that packets of the flow go to from a module; empty where they end.
  std::vector<uint32_t> next_of(uint32_t at) {
    const Module& module = *graph_.modules[at];
    std::vector<uint32_t> next;
    uint16_t gate = 0;
    if (module.gate_of_flow != nullptr) gate = module.gate_of_flow[flow_];
    if (gate == kUnknown) {
      throw ConfigError("traffic flow '" + name_ + "' comes to '" + module.name +
                            "', and no route says which gate it takes",
                        "simulation.routes", "name the gate, or let batchplaned find the routes");
    }
    bool ends =
        gate == Module::kDropMark || module.role == Role::kEgress || module.role == Role::kDrop;
    for (const Edge& edge : graph_.edges) {
      if (edge.from != at) continue;
      if (edge.gate == exec::kDropGate) {
        if (gate == Module::kDropMark) next.push_back(edge.to), ends = false;
      } else if (gate != Module::kDropMark && (module.role == Role::kRandom ||
                                               module.role == Role::kInTurn || edge.gate == gate)) {
        next.push_back(edge.to);
      }
    }
    if (ends || next.empty()) ends_.insert(at);
    return next;
  }

  void refuse_circles() const {
    std::set<uint32_t> leaves = ends_;
    std::deque<uint32_t> work(ends_.begin(), ends_.end());
    while (!work.empty()) {
      const uint32_t at = work.front();
      work.pop_front();
      const auto it = before_.find(at);
      if (it == before_.end()) continue;
      for (const uint32_t from : it->second) {
        if (leaves.insert(from).second) work.push_back(from);
      }
    }
    for (const uint32_t module : reached_) {
      if (leaves.contains(module)) continue;
      throw ConfigError("packets of traffic flow '" + name_ + "' can never leave: from '" +
                            graph_.modules[module]->name + "' on they go round in a circle",
                        "simulation.routes", "let the loop have a way out");
    }
  }

  Graph& graph_;
  uint32_t flow_;
  std::string name_;
  std::set<uint32_t> reached_;
  std::set<uint32_t> ends_;
  std::map<uint32_t, std::set<uint32_t>> before_;
};

// Gate of a module whose routes name no gate for the flow: the only connected one, if there is just
// one.
uint16_t default_gate(const Graph& graph, uint32_t module) {
  if (graph.modules[module]->role == Role::kPass) return 0;
  uint16_t only = kUnknown;
  for (const Edge& edge : graph.edges) {
    if (edge.from != module || edge.gate == exec::kDropGate) continue;
    if (only != kUnknown) return kUnknown;
    only = static_cast<uint16_t>(edge.gate);
  }
  return only;
}

uint32_t input_of(const GraphBuild& build, const SourceSpec& source) {
  for (uint32_t i = 0; i < build.graph.modules.size(); ++i) {
    const ModuleSpec& spec = build.spec.pipeline.modules[i];
    if (build.graph.modules[i]->role != Role::kInput) continue;
    if (is_input_of(spec, source)) return i;
  }
  throw ConfigError("no input reads port '" + source.port + "'", "generators." + source.name,
                    "add a module of kind port_in for it");
}

}  // namespace

bool is_input_of(const ModuleSpec& module, const SourceSpec& source) {
  if (source.is_inline) return module.name == source.name;
  const auto port = module.params.find("port");
  return port != module.params.end() && port->second == Value(source.port);
}

void set_routes(GraphBuild& build) {
  Graph& graph = build.graph;
  for (uint32_t i = 0; i < graph.modules.size(); ++i) {
    Module& module = *graph.modules[i];
    if (module.role != Role::kRoute && module.role != Role::kPass) continue;
    module.gates.assign(build.n_traffic_flows, default_gate(graph, i));
    module.gate_of_flow = module.gates.data();
  }
  for (size_t s = 0; s < graph.sources.size(); ++s) {
    for (size_t f = 0; f < build.spec.routes[s].size(); ++f) {
      const std::string where =
          "simulation.routes." + build.spec.sources[s].name + "[" + std::to_string(f) + "]";
      for (const auto& [name, gate] : build.spec.routes[s][f]) {
        const bool is_stage = build.spec.stages.contains(name);
        Module& module = *graph.modules[graph.at(is_stage ? results_name(name) : name)];
        if (module.gate_of_flow == nullptr || (module.has_numbers() && gate != kDropGateText))
          continue;
        module.gates[graph.sources[s]->first_flow() + f] =
            gate_of(build, module.index, gate, where);
      }
    }
  }
  set_flow_numbers(build);
  for (const auto& module : graph.modules) {
    module->may_drop = std::ranges::find(module->gates, Module::kDropMark) != module->gates.end();
    if (module->role == Role::kPass && !module->may_drop) module->gate_of_flow = nullptr;
  }
  for (const auto& source : graph.sources) {
    const uint32_t input = input_of(build, source->spec());
    for (uint32_t f = 0; f < source->spec().flows.size(); ++f) {
      Walk(build, source->first_flow() + f, source->spec().flows[f].name).from(input);
    }
  }
}

void merge_branch(Graph& graph, uint32_t module, uint32_t gate) {
  for (const Edge& edge : graph.edges) {
    Module& from = *graph.modules[edge.from];
    const bool is_merged = edge.from == module && edge.gate == gate;
    if (from.role == Role::kPass || edge.gate == exec::kDropGate || is_merged) continue;
    from.siblings.push_back(static_cast<uint16_t>(edge.gate));
  }
  graph.modules[module]->merged_gate = static_cast<uint16_t>(gate);
}

}  // namespace batchplane::sim
