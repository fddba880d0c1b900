// SPDX-License-Identifier: BSD-3-Clause
// graph_flows.cc - completes declared paths: a path may leave out modules between which there is
// one way only.
#include <algorithm>
#include <map>
#include <set>

#include "core/graph_internal.h"

namespace batchplane {
namespace {

struct PathStep {
  uint32_t instance;
  std::string gate;  // empty = not given
};

class PathFinder {
 public:
  PathFinder(GraphBuild& build, std::string where) : build_(build), where_(std::move(where)) {
    out_.resize(build.graph.instances.size());
    for (const LinkedEdge& edge : build.graph.edges) out_[edge.from].push_back(edge);
  }

  // The edges of the only way from step `a` to instance `b`; notes an error when none or several.
  bool connect(const PathStep& a, uint32_t b, std::vector<LinkedEdge>& way) {
    std::vector<LinkedEdge> current;
    std::vector<std::vector<LinkedEdge>> found;
    visited_.clear();
    std::vector<LinkedEdge> first = out_[a.instance];
    if (a.gate.empty()) {
      std::erase_if(first, [](const LinkedEdge& e) { return e.gate == kDropGate; });
    } else {
      std::erase_if(first, [&](const LinkedEdge& e) {
        return gate_text(e) != a.gate && std::to_string(e.gate) != a.gate;
      });
    }
    // A direct edge is what the writer means, even where a longer way exists.
    for (const LinkedEdge& edge : first) {
      if (edge.to == b) found.push_back({edge});
    }
    if (found.empty()) {
      for (const LinkedEdge& edge : first) {
        current = {edge};
        search(edge.to, b, current, found);
      }
    }
    const std::string from = build_.graph.instances[a.instance].name;
    const std::string to = build_.graph.instances[b].name;
    if (found.size() == 1) {
      way.insert(way.end(), found[0].begin(), found[0].end());
      return true;
    }
    if (found.empty()) {
      build_.errors.emplace_back("no way leads from '" + from + "' to '" + to + "'", where_,
                                 "correct the path");
    } else {
      build_.errors.emplace_back(
          "more than one way leads from '" + from + "' to '" + to + "'", where_,
          "name the gate ('" + from + ":" + gate_text(found[0][0]) + "') or a module between them");
    }
    return false;
  }

 private:
  std::string gate_text(const LinkedEdge& edge) const {
    if (edge.gate == kDropGate) return "drop";
    const ModuleInfo& info = *build_.graph.instances[edge.from].info;
    if (edge.gate >= info.first_named_gate &&
        edge.gate - info.first_named_gate < info.gate_names.size()) {
      return info.gate_names[edge.gate - info.first_named_gate];
    }
    return std::to_string(edge.gate);
  }

  // Drop gates are never taken unless named: a flow's path is where its packets are meant to go.
  void search(uint32_t at, uint32_t goal, std::vector<LinkedEdge>& current,
              std::vector<std::vector<LinkedEdge>>& found) {
    if (found.size() > 1) return;
    if (at == goal) {
      found.push_back(current);
      return;
    }
    if (dead_.contains({at, goal})) return;
    if (!visited_.insert(at).second) return;
    const size_t before = found.size();
    for (const LinkedEdge& edge : out_[at]) {
      if (edge.gate == kDropGate) continue;
      current.push_back(edge);
      search(edge.to, goal, current, found);
      current.pop_back();
    }
    visited_.erase(at);
    if (found.size() == before) dead_.emplace(at, goal);
  }

  GraphBuild& build_;
  std::string where_;
  std::vector<std::vector<LinkedEdge>> out_;
  std::set<uint32_t> visited_;
  std::set<std::pair<uint32_t, uint32_t>> dead_;
};

std::optional<PathStep> parse_step(GraphBuild& build, const std::string& text,
                                   const std::string& where) {
  const size_t colon = text.find(':');
  const std::string name = text.substr(0, colon);
  const auto it = build.graph.index.find(name);
  if (it == build.graph.index.end()) {
    std::vector<std::string> names;
    for (const auto& [known, i] : build.graph.index) names.push_back(known);
    const std::string near = nearest_word(name, names);
    build.errors.emplace_back("no module '" + name + "' (in the path)", where,
                              near.empty() ? "" : "did you mean '" + near + "'?");
    return std::nullopt;
  }
  return PathStep{it->second, colon == std::string::npos ? "" : text.substr(colon + 1)};
}

void resolve_flow(GraphBuild& build, const FlowSpec& flow, const std::string& where) {
  std::vector<PathStep> steps;
  for (const std::string& text : flow.path) {
    const auto step = parse_step(build, text, where);
    if (!step) return;
    steps.push_back(*step);
  }
  if (steps.size() < 2) {
    build.errors.emplace_back("flow '" + flow.name + "' needs a path of at least two modules",
                              where, "path: [input, ..., egress]");
    return;
  }
  const Instance& first = build.graph.instances[steps.front().instance];
  const Instance& last = build.graph.instances[steps.back().instance];
  if (first.info->shape != Shape::kInput) {
    build.errors.emplace_back(
        "the path of flow '" + flow.name + "' begins at '" + first.name + "', which is no input",
        where, "begin at a source or port_in");
    return;
  }
  if (!last.info->is_egress) {
    build.errors.emplace_back(
        "the path of flow '" + flow.name + "' ends at '" + last.name + "', where no packet leaves",
        where, "end at a sink or port_out");
    return;
  }
  PathFinder finder(build, where);
  std::vector<LinkedEdge> way;
  for (size_t i = 0; i + 1 < steps.size(); ++i) {
    if (!finder.connect(steps[i], steps[i + 1].instance, way)) return;
  }
  PathAutomaton::Flow result{steps.front().instance, steps.back().instance, {}};
  std::vector<std::string> names{first.name};
  for (const LinkedEdge& edge : way) {
    result.gates.emplace(edge.from, edge.gate);
    names.push_back(build.graph.instances[edge.to].name);
  }
  build.flows.push_back(std::move(result));
  build.graph.flow_paths.push_back(std::move(names));
  build.graph.flow_names.push_back(flow.name);
}

}  // namespace

void resolve_flows(GraphBuild& build) {
  const PipelineSpec& spec = build.graph.spec;
  std::set<std::string> names;
  for (size_t i = 0; i < spec.flows.size(); ++i) {
    const std::string where = spec.where("flows[" + std::to_string(i) + "]");
    if (!names.insert(spec.flows[i].name).second || spec.flows[i].name == "other") {
      build.errors.emplace_back("the flow name '" + spec.flows[i].name + "' is taken", where,
                                "rename it");
      continue;
    }
    resolve_flow(build, spec.flows[i], where);
  }
  build.graph.flow_names.emplace_back("other");
}

}  // namespace batchplane
