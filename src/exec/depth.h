// SPDX-License-Identifier: BSD-3-Clause
// depth.h - longest path from an input to each node: the run order of engine and simulator.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

namespace batchplane::exec {

struct Depths {
  std::vector<uint32_t> depth;     // per node
  std::vector<uint32_t> in_cycle;  // nodes on or behind a cycle; empty without cycles
};

// Edges (from, to) among nodes 0..n_nodes-1.
[[nodiscard]] inline Depths depths_of(uint32_t n_nodes,
                                      const std::vector<std::pair<uint32_t, uint32_t>>& edges) {
  std::vector<std::vector<uint32_t>> out(n_nodes);
  std::vector<uint32_t> waiting(n_nodes, 0);
  for (const auto& [from, to] : edges) {
    out[from].push_back(to);
    ++waiting[to];
  }
  Depths result;
  result.depth.assign(n_nodes, 0);
  std::deque<uint32_t> work;
  for (uint32_t i = 0; i < n_nodes; ++i) {
    if (waiting[i] == 0) work.push_back(i);
  }
  while (!work.empty()) {
    const uint32_t at = work.front();
    work.pop_front();
    for (const uint32_t to : out[at]) {
      result.depth[to] = std::max(result.depth[to], result.depth[at] + 1);
      if (--waiting[to] == 0) work.push_back(to);
    }
  }
  for (uint32_t i = 0; i < n_nodes; ++i) {
    if (waiting[i] > 0) result.in_cycle.push_back(i);
  }
  return result;
}

// Connected components: the group of each node, numbered by the group's first node.
[[nodiscard]] inline std::vector<uint32_t> groups_of(
    uint32_t n_nodes, const std::vector<std::pair<uint32_t, uint32_t>>& edges) {
  std::vector<uint32_t> parent(n_nodes);
  for (uint32_t i = 0; i < n_nodes; ++i) parent[i] = i;
  const auto root = [&](uint32_t x) {
    while (parent[x] != x) x = parent[x] = parent[parent[x]];
    return x;
  };
  for (const auto& [from, to] : edges) parent[root(from)] = root(to);
  std::vector<uint32_t> number(n_nodes, ~0U);
  std::vector<uint32_t> groups(n_nodes);
  uint32_t next = 0;
  for (uint32_t i = 0; i < n_nodes; ++i) {
    uint32_t& mine = number[root(i)];
    if (mine == ~0U) mine = next++;
    groups[i] = mine;
  }
  return groups;
}

}  // namespace batchplane::exec
