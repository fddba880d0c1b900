// SPDX-License-Identifier: BSD-3-Clause
// way.h - finds the way between two modules that a declared path names in succession.
#pragma once

#include <vector>

#include "spec/check.h"

namespace batchplane {

struct Way {
  std::vector<SpecEdge> edges;  // in order; empty: nothing leads there
  // Empty if there is only one way. Otherwise two edges of the same module that both lead to the target;
  // `edges` holds the edges before them.
  std::vector<SpecEdge> choices;
};

// `leaving`: the edges of each module. `first`: the edges that the first step may take. A direct edge wins
// over ways through other modules, so a path that names every module is unambiguous. Drop gates are taken
// only in `first`: a path is where packets are meant to go.
Way way_between(const std::vector<std::vector<SpecEdge>>& leaving,
                const std::vector<SpecEdge>& first, uint32_t to);

}  // namespace batchplane
