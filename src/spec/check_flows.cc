// SPDX-License-Identifier: BSD-3-Clause
// check_flows.cc - declared flows: their names, and the edges that their paths take.
#include <algorithm>

#include "base/nearest_word.h"
#include "spec/graph_check.h"

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

  // Nothing after noting what is wrong, or where an end of an edge is unknown.
  std::optional<SpecPath> run() {
    if (!read_steps() || !has_good_ends()) return std::nullopt;
    SpecPath path;
    for (const Step& step : steps_) path.modules.push_back(step.module);
    for (size_t s = 0; s + 1 < steps_.size(); ++s) {
      const auto gate = gate_of(steps_[s], steps_[s + 1].module);
      if (!gate) return std::nullopt;
      path.gates.push_back(*gate);
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

  // Drop gates are never taken unless named: a flow's path is where its packets are meant to go.
  std::optional<uint32_t> gate_of(const Step& step, uint32_t to) {
    std::vector<SpecEdge> ways;
    for (const SpecEdge& edge : graph_.leaving[step.module]) {
      const bool is_drop = edge.gate == exec::kDropGate;
      if (edge.to == to && (!is_drop || step.gate == "drop")) ways.push_back(edge);
    }
    const std::string& from = graph_.name(step.module);
    if (ways.empty()) {
      if (!graph_.is_torn) tell_ways_on(step.module, to);
      return std::nullopt;
    }
    if (step.gate.empty()) {
      if (ways.size() == 1) return ways.front().gate;
      note("several gates of '" + from + "' lead to '" + graph_.name(to) + "'",
           "say which: " + from + ":" + graph_.gate_text(ways.front()));
      return std::nullopt;
    }
    const auto number = gate_number(graph_.kinds[step.module], step.gate);
    if (!number && graph_.kinds[step.module] == nullptr) return std::nullopt;
    const auto way = std::ranges::find_if(
        ways, [&](const SpecEdge& edge) { return number && edge.gate == *number; });
    if (way != ways.end()) return way->gate;
    note("gate " + step.gate + " of '" + from + "' does not lead to '" + graph_.name(to) + "'",
         "write " + from + ":" + graph_.gate_text(ways.front()));
    return std::nullopt;
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
