// SPDX-License-Identifier: BSD-3-Clause
// check_departures.cc - whether the departure times that modules set come to a scheduler that keeps them.
#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "spec/check.h"

namespace batchplane {
namespace {

constexpr const char* kPaceKind = "pace";
constexpr const char* kEgressKind = "egress";

using NextModules = std::multimap<std::string, std::string>;

bool keeps_departures(const ModuleSpec& egress) {
  const auto given = egress.params.find("discipline");
  return given != egress.params.end() && given->second == Value("calendar");
}

// The schedulers that packets of a module come to, directly or through others.
std::vector<const ModuleSpec*> schedulers_behind(
    const std::string& module, const NextModules& next,
    const std::map<std::string, const ModuleSpec*>& schedulers) {
  std::vector<const ModuleSpec*> found;
  std::vector<std::string> todo{module};
  std::set<std::string> seen{module};
  while (!todo.empty()) {
    const std::string at = todo.back();
    todo.pop_back();
    for (auto [edge, last] = next.equal_range(at); edge != last; ++edge) {
      const std::string& to = edge->second;
      if (!seen.insert(to).second) continue;
      todo.push_back(to);
      if (const auto egress = schedulers.find(to); egress != schedulers.end())
        found.push_back(egress->second);
    }
  }
  return found;
}

std::string fix_for(const std::vector<const ModuleSpec*>& schedulers) {
  if (schedulers.empty()) return "put an egress with discipline: calendar behind it";
  const ModuleSpec& first = *schedulers.front();
  return "set discipline: calendar for '" + (first.door_of.empty() ? first.name : first.door_of) +
         "'";
}

}  // namespace

void warn_of_departures(const PipelineSpec& spec, std::vector<ConfigError>& warnings) {
  if (std::ranges::find(spec.modules, kPaceKind, &ModuleSpec::kind) == spec.modules.end()) return;
  NextModules next;
  for (const EdgeSpec& edge : spec.edges) next.emplace(edge.from, edge.to);
  std::map<std::string, const ModuleSpec*> schedulers;
  for (const ModuleSpec& module : spec.modules) {
    if (module.kind == kEgressKind) schedulers.emplace(module.name, &module);
  }
  for (const ModuleSpec& module : spec.modules) {
    if (module.kind != kPaceKind) continue;
    const auto behind = schedulers_behind(module.name, next, schedulers);
    const auto keeps = [](const ModuleSpec* egress) { return keeps_departures(*egress); };
    if (std::ranges::any_of(behind, keeps)) continue;
    warnings.emplace_back(
        "the departure times that '" + module.name +
            "' sets are ignored: no egress with discipline: calendar is behind it",
        "modules." + module.name, fix_for(behind));
  }
}

}  // namespace batchplane
