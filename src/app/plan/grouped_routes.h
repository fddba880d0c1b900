// SPDX-License-Identifier: BSD-3-Clause
// grouped_routes.h - routes of very many flows, with one row for all flows that take the same way.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "app/plan/route_walk.h"
#include "base/value.h"

namespace batchplane::app {

// Routes of one source.
class GroupedRoutes {
 public:
  // Adds the next flow. `schedulers`: modules whose gate is the flow's number in a packet scheduler.
  void add(const Route& route, const std::set<std::string>& schedulers);
  // [{"ways": [{path, flow}], "flows": [index of each], "scheduled": {scheduler: [number of each]}}]
  [[nodiscard]] List rows() const;

 private:
  struct Group {
    std::vector<uint32_t> flows;
    std::map<std::string, std::vector<uint32_t>> numbers;
  };
  // The ways of a route with the flow as which each is metered, and the schedulers in which it has a number.
  using Key = std::pair<std::vector<std::pair<std::string, std::vector<std::string>>>,
                        std::vector<std::string>>;

  std::map<Key, Group> groups_;
  uint32_t n_flows_ = 0;
};

}  // namespace batchplane::app
