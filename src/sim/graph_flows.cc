// SPDX-License-Identifier: BSD-3-Clause
// graph_flows.cc - the flows that a pipeline declares, as the gates on their paths.
#include "sim/graph_build.h"
#include "spec/way.h"

namespace batchplane::sim {
namespace {

struct Step {
  uint32_t module;
  std::string gate;  // empty: not given
};

class Paths {
 public:
  explicit Paths(const Graph& graph) : graph_(graph), leaving_(graph.modules.size()) {
    for (const Edge& edge : graph.edges)
      leaving_[edge.from].push_back({edge.from, edge.gate, edge.to});
  }

  // The edges from a step to the next module that the path names.
  [[nodiscard]] std::vector<SpecEdge> edges_between(const Step& step, uint32_t to,
                                                    const std::string& where) const {
    std::vector<SpecEdge> first;
    for (const Edge& edge : graph_.edges) {
      const bool is_meant =
          step.gate.empty() ? edge.gate != exec::kDropGate : edge.text == step.gate;
      if (edge.from == step.module && is_meant) first.push_back({edge.from, edge.gate, edge.to});
    }
    Way way = way_between(leaving_, first, to);
    if (way.choices.empty() && !way.edges.empty()) return std::move(way.edges);
    throw ConfigError(
        (way.choices.empty() ? "no way leads from '" : "more than one way leads from '") +
            graph_.modules[step.module]->name + "' to '" + graph_.modules[to]->name + "'",
        where, "name every module of the path");
  }

 private:
  const Graph& graph_;
  std::vector<std::vector<SpecEdge>> leaving_;
};

}  // namespace

void resolve_flows(GraphBuild& build) {
  Graph& graph = build.graph;
  const Paths paths(graph);
  for (size_t f = 0; f < build.spec.pipeline.flows.size(); ++f) {
    const FlowSpec& flow = build.spec.pipeline.flows[f];
    const std::string where = build.spec.pipeline.where("flows[" + std::to_string(f) + "]");
    std::vector<Step> steps;
    for (const std::string& step : flow.path) {
      const size_t colon = step.find(':');
      steps.push_back({graph.at(step.substr(0, colon)),
                       colon == std::string::npos ? "" : step.substr(colon + 1)});
    }
    if (steps.size() < 2) {
      throw ConfigError("a path has two modules at least", where,
                        "name every module from input to end");
    }
    exec::PathAutomaton::Flow made{steps.front().module, steps.back().module, {}};
    std::vector<std::string> names{graph.modules[steps.front().module]->name};
    for (size_t i = 0; i + 1 < steps.size(); ++i) {
      for (const SpecEdge& edge : paths.edges_between(steps[i], steps[i + 1].module, where)) {
        made.gates.emplace(edge.from, edge.gate);
        names.push_back(graph.modules[edge.to]->name);
      }
    }
    build.flows.push_back(std::move(made));
    graph.flow_names.push_back(flow.name);
    graph.flow_paths.push_back(std::move(names));
  }
  graph.flow_names.emplace_back("other");
}

}  // namespace batchplane::sim
