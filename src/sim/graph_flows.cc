// SPDX-License-Identifier: BSD-3-Clause
// graph_flows.cc - the flows that a pipeline declares, as the gates that their paths cross.
#include "sim/graph_build.h"

namespace batchplane::sim {
namespace {

// The edge that a step of a declared path takes: by its gate, or the one that leads to the next
// module.
const Edge& edge_of(const GraphBuild& build, uint32_t from, const std::string& gate, uint32_t to,
                    const std::string& where) {
  const Edge* found = nullptr;
  for (const Edge& edge : build.graph.edges) {
    if (edge.from != from || edge.to != to || (!gate.empty() && edge.text != gate)) continue;
    if (found == nullptr || found->gate == exec::kDropGate) found = &edge;
  }
  if (found != nullptr) return *found;
  throw ConfigError("no edge leads from '" + build.graph.modules[from]->name + "' to '" +
                        build.graph.modules[to]->name + "'",
                    where, "name every module of the path");
}

}  // namespace

void resolve_flows(GraphBuild& build) {
  Graph& graph = build.graph;
  for (size_t f = 0; f < build.spec.pipeline.flows.size(); ++f) {
    const FlowSpec& flow = build.spec.pipeline.flows[f];
    const std::string where = build.spec.pipeline.where("flows[" + std::to_string(f) + "]");
    std::vector<std::pair<uint32_t, std::string>> steps;
    for (const std::string& step : flow.path) {
      const size_t colon = step.find(':');
      steps.emplace_back(graph.at(step.substr(0, colon)),
                         colon == std::string::npos ? "" : step.substr(colon + 1));
    }
    if (steps.size() < 2) {
      throw ConfigError("a path has two modules at least", where,
                        "name every module from input to end");
    }
    exec::PathAutomaton::Flow made{steps.front().first, steps.back().first, {}};
    std::vector<std::string> names;
    for (size_t i = 0; i < steps.size(); ++i) {
      names.push_back(graph.modules[steps[i].first]->name);
      if (i + 1 == steps.size()) break;
      const Edge& edge = edge_of(build, steps[i].first, steps[i].second, steps[i + 1].first, where);
      made.gates.emplace(edge.from, edge.gate);
    }
    build.flows.push_back(std::move(made));
    graph.flow_names.push_back(flow.name);
    graph.flow_paths.push_back(std::move(names));
  }
  graph.flow_names.emplace_back("other");
}

}  // namespace batchplane::sim
