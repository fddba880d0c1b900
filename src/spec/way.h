// SPDX-License-Identifier: BSD-3-Clause
// way.h - the way between two modules that a declared path names one after the other.
#pragma once

#include <vector>

#include "spec/check.h"

namespace batchplane {

struct Way {
  std::vector<SpecEdge> edges;  // in order; empty: nothing leads there
  // Empty where there is one way. Otherwise two edges of one module that both lead there; `edges` holds
  // what comes before them.
  std::vector<SpecEdge> choices;
};

// `leaving`: the edges of each module. `first`: those of them that the first step may take.
// A direct edge wins over ways through other modules, so a path that names every module has one meaning.
// Drop gates are taken only in `first`: a path is where packets are meant to go.
Way way_between(const std::vector<std::vector<SpecEdge>>& leaving,
                const std::vector<SpecEdge>& first, uint32_t to);

}  // namespace batchplane
