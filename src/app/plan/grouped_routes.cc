// SPDX-License-Identifier: BSD-3-Clause
#include "app/plan/grouped_routes.h"

#include "core/graph/graph.h"

namespace batchplane::app {

void GroupedRoutes::add(const Route& route, const std::set<std::string>& schedulers) {
  Key key;
  for (const Way& way : route.ways) key.first.emplace_back(way.flow, way.path);
  std::map<std::string, uint32_t> numbers;
  for (const std::string& scheduler : schedulers) {
    const auto gate = route.gates.find(scheduler);
    if (gate == route.gates.end() || gate->second == kDropGate) continue;
    key.second.push_back(scheduler);
    numbers.insert(*gate);
  }
  Group& group = groups_[std::move(key)];
  group.flows.push_back(n_flows_++);
  for (const auto& [scheduler, number] : numbers) group.numbers[scheduler].push_back(number);
}

List GroupedRoutes::rows() const {
  List rows;
  for (const auto& [key, group] : groups_) {
    List ways;
    for (const auto& [flow, path] : key.first) {
      Dict way{{"path", List(path.begin(), path.end())}};
      if (!flow.empty()) way["flow"] = flow;
      ways.emplace_back(std::move(way));
    }
    Dict scheduled;
    for (const auto& [scheduler, numbers] : group.numbers) {
      scheduled[scheduler] = List(numbers.begin(), numbers.end());
    }
    rows.emplace_back(Dict{{"ways", std::move(ways)},
                           {"flows", List(group.flows.begin(), group.flows.end())},
                           {"scheduled", std::move(scheduled)}});
  }
  return rows;
}

}  // namespace batchplane::app
