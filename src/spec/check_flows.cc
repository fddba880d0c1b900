// SPDX-License-Identifier: BSD-3-Clause
// check_flows.cc - declared flows: their names, and the edges that their paths take.
#include <algorithm>

#include "base/nearest_word.h"
#include "spec/graph_check.h"
#include "spec/way.h"

namespace batchplane {
namespace {

struct Step {
  uint32_t module;
  std::string gate;  // empty: not given
};

class PathCheck {
 public:
  PathCheck(GraphCheck& graph, size_t i)
      : graph_(graph),
        flow_(graph.spec.flows[i]),
        key_("flows[" + std::to_string(i) + "].path"),
        label_("flow '" + flow_.name + "'") {}

  // Nothing after a mistake was recorded, or when an end of an edge is unknown.
  std::optional<SpecPath> run() {
    if (!read_steps() || !has_good_ends()) return std::nullopt;
    SpecPath path{{steps_.front().module}, {}};
    for (size_t s = 0; s + 1 < steps_.size(); ++s) {
      const auto edges = edges_between(steps_[s], steps_[s + 1].module);
      if (edges.empty()) return std::nullopt;
      for (const SpecEdge& edge : edges) {
        path.modules.push_back(edge.to);
        path.gates.push_back(edge.gate);
      }
    }
    return path;
  }

 private:
  void note(const std::string& message, const std::string& fix) {
    graph_.mistakes.add(key_, label_ + ": " + message, fix);
  }

  bool read_steps() {
    bool is_good = true;
    for (const std::string& text : flow_.path) {
      const size_t colon = text.find(':');
      const std::string name = text.substr(0, colon);
      const auto module = graph_.index.find(name);
      if (module != graph_.index.end()) {
        steps_.push_back(
            {module->second, colon == std::string::npos ? "" : text.substr(colon + 1)});
        continue;
      }
      is_good = false;
      note("there is no module '" + name + "'", did_you_mean(name, graph_.names()));
    }
    if (is_good && steps_.size() < 2) {
      note("a path has two modules at least", "path: [input, ..., egress]");
      return false;
    }
    return is_good;
  }

  bool has_good_ends() {
    const KindFacts* const first = graph_.kinds[steps_.front().module];
    const KindFacts* const last = graph_.kinds[steps_.back().module];
    const bool begins = first == nullptr || first->shape == Shape::kInput;
    const bool ends = last == nullptr || last->is_egress;
    if (!begins) {
      graph_.mistakes.add(
          key_,
          label_ + " begins at '" + graph_.name(steps_.front().module) + "', which is no input",
          "begin at a port_in or source");
    }
    if (!ends) {
      graph_.mistakes.add(
          key_,
          label_ + " ends at '" + graph_.name(steps_.back().module) + "', where no packet leaves",
          "end at a port_out or sink");
    }
    return begins && ends;
  }

  // Empty after a mistake was recorded, or when an end of an edge is unknown.
  std::vector<SpecEdge> edges_between(const Step& step, uint32_t to) {
    Way way = way_between(graph_.leaving, first_edges(step), to);
    if (way.choices.empty() && !way.edges.empty()) return std::move(way.edges);
    if (!way.choices.empty()) {
      tell_choices(step, to, way.choices);
    } else if (!graph_.is_torn) {
      tell_no_way(step, to);
    }
    return {};
  }

  std::vector<SpecEdge> first_edges(const Step& step) {
    const auto number = gate_number(graph_.kinds[step.module], step.gate);
    std::vector<SpecEdge> first;
    std::ranges::copy_if(
        graph_.leaving[step.module], std::back_inserter(first), [&](const SpecEdge& edge) {
          return step.gate.empty() ? edge.gate != exec::kDropGate : number && edge.gate == *number;
        });
    return first;
  }

  void tell_choices(const Step& step, uint32_t to, const std::vector<SpecEdge>& choices) {
    const std::string& at = graph_.name(choices.front().from);
    const std::string& name = graph_.name(to);
    if (choices[0].to == choices[1].to) {
      note("several gates of '" + at + "' lead to '" + graph_.name(choices[0].to) + "'",
           "say which: " + at + ":" + graph_.gate_text(choices.front()));
      return;
    }
    note("more than one way leads from '" + graph_.name(step.module) + "' to '" + name + "'",
         "name a module between them: '" + graph_.name(choices[0].to) + "' or '" +
             graph_.name(choices[1].to) + "'");
  }

  void tell_no_way(const Step& step, uint32_t to) {
    if (step.gate.empty()) {
      tell_ways_on(step.module, to);
      return;
    }
    if (graph_.kinds[step.module] == nullptr && !gate_number(nullptr, step.gate)) return;
    const std::string& from = graph_.name(step.module);
    const Way other = way_between(graph_.leaving, first_edges({step.module, ""}), to);
    if (other.edges.empty() && other.choices.empty()) {
      tell_ways_on(step.module, to);
      return;
    }
    const SpecEdge& edge = other.edges.empty() ? other.choices.front() : other.edges.front();
    note("gate " + step.gate + " of '" + from + "' does not lead to '" + graph_.name(to) + "'",
         "write " + from + ":" + graph_.gate_text(edge));
  }

  void tell_ways_on(uint32_t module, uint32_t to) {
    constexpr size_t kFew = 4;
    std::vector<std::string> names;
    std::string few;
    for (const SpecEdge& edge : graph_.leaving[module]) {
      if (names.size() < kFew) few += (few.empty() ? "" : ", ") + graph_.name(edge.to);
      names.push_back(graph_.name(edge.to));
    }
    const std::string& from = graph_.name(module);
    note("'" + from + "' does not lead to '" + graph_.name(to) + "'",
         did_you_mean(graph_.name(to), names, few.empty() ? "" : "'" + from + "' leads to " + few));
  }

  GraphCheck& graph_;
  const FlowSpec& flow_;
  std::string key_;
  std::string label_;
  std::vector<Step> steps_;
};

}  // namespace

void check_flows(GraphCheck& graph) {
  std::set<std::string> names;
  std::map<std::pair<std::vector<uint32_t>, std::vector<uint32_t>>, std::string> known;
  for (size_t i = 0; i < graph.spec.flows.size(); ++i) {
    const std::string& name = graph.spec.flows[i].name;
    const std::string key = "flows[" + std::to_string(i) + "]";
    if (name == "other") {
      graph.mistakes.add(key, "the name 'other' is taken by packets outside all flows",
                         "choose another name");
    } else if (!names.insert(name).second) {
      graph.mistakes.add(key, "the flow name '" + name + "' is used twice", "names are unique");
    }
    auto path = PathCheck(graph, i).run();
    if (!path) continue;
    const auto [it, is_new] = known.emplace(std::pair(path->modules, path->gates), name);
    if (!is_new) {
      graph.mistakes.add(key, "flow '" + name + "' has the same path as '" + it->second + "'",
                         "flows are told apart by their paths: join them, or remove one");
    }
    graph.linked.flows.push_back(std::move(*path));
  }
}

}  // namespace batchplane
