// SPDX-License-Identifier: BSD-3-Clause
// controlled.h - finds the modules where a buffer may pay off because batches may have shrunk. A task that is
// scheduled explicitly has its queues in front of the same modules.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace batchplane::exec {

struct ControlledInput {
  bool has_buffer = false;  // nodes do, pure inputs do not
  bool is_egress = false;
};

// Selects modules behind a splitter of two or more branches, and modules with two or more predecessors.
// Egress modules gain nothing from a buffer. `edges`: (from, to).
[[nodiscard]] inline std::vector<bool> controlled_modules(
    const std::vector<ControlledInput>& modules,
    const std::vector<std::pair<uint32_t, uint32_t>>& edges) {
  std::vector<std::vector<uint32_t>> next(modules.size());
  for (const auto& [from, to] : edges) {
    if (std::ranges::find(next[from], to) == next[from].end()) next[from].push_back(to);
  }
  std::vector<uint32_t> n_into(modules.size(), 0);
  std::vector<bool> is_behind_split(modules.size(), false);
  for (uint32_t from = 0; from < modules.size(); ++from) {
    for (const uint32_t to : next[from]) {
      ++n_into[to];
      if (modules[from].has_buffer && next[from].size() > 1) is_behind_split[to] = true;
    }
  }
  std::vector<bool> controlled(modules.size(), false);
  for (uint32_t m = 0; m < modules.size(); ++m) {
    controlled[m] =
        modules[m].has_buffer && !modules[m].is_egress && (n_into[m] > 1 || is_behind_split[m]);
  }
  return controlled;
}

}  // namespace batchplane::exec
