// SPDX-License-Identifier: BSD-3-Clause
// graph_check.h - data that the steps of check_graph hand to each other.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "spec/check.h"

namespace batchplane {

struct GraphCheck {
  const PipelineSpec& spec;
  Mistakes& mistakes;
  LinkedSpec linked = {};
  std::map<std::string, uint32_t> index = {};
  std::vector<const KindFacts*> kinds = {};         // by module; nullptr: unknown
  std::vector<std::vector<SpecEdge>> leaving = {};  // by module: its edges with two known ends
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> next = {};  // by module and gate
  // An edge has an invalid end: missing connections elsewhere may only follow from that.
  bool is_torn = false;
  bool knows_all_kinds = true;

  [[nodiscard]] const std::string& name(uint32_t module) const { return spec.modules[module].name; }
  [[nodiscard]] std::string told(uint32_t module) const {
    return "'" + name(module) + "' (" + spec.modules[module].kind + ")";
  }
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const ModuleSpec& module : spec.modules) all.push_back(module.name);
    return all;
  }
  // In the users' notation.
  [[nodiscard]] std::string gate_text(const SpecEdge& edge) const;
};

// The gate number that `text` stands for; nothing if it is not a gate of the module.
[[nodiscard]] std::optional<uint32_t> gate_number(const KindFacts* kind, const std::string& text);

// check_reach.cc: unconnected ends, cycles, unreachable modules.
void check_reach(GraphCheck& graph);
// check_workers.cc: tasks and ends of ports that two workers would share.
void check_workers(GraphCheck& graph);
// check_flows.cc: names and paths.
void check_flows(GraphCheck& graph);

}  // namespace batchplane
