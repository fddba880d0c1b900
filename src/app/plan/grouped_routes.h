// SPDX-License-Identifier: BSD-3-Clause
// grouped_routes.h - the routes of very many traffic flows, those that go the same way as one row.
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

// Of one source.
class GroupedRoutes {
 public:
  // The next flow. `schedulers`: which of its gates are the number of its flow in a packet scheduler.
  void add(const Route& route, const std::set<std::string>& schedulers);
  // [{"ways": [{path, flow}], "flows": [index of each], "scheduled": {scheduler: [number of each]}}]
  [[nodiscard]] List rows() const;

 private:
  struct Group {
    std::vector<uint32_t> flows;
    std::map<std::string, std::vector<uint32_t>> numbers;
  };
  // Flows as which each way is metered, and what it passes; schedulers that the route has a number in.
  using Key = std::pair<std::vector<std::pair<std::string, std::vector<std::string>>>,
                        std::vector<std::string>>;

  std::map<Key, Group> groups_;
  uint32_t n_flows_ = 0;
};

}  // namespace batchplane::app
