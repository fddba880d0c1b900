// SPDX-License-Identifier: BSD-3-Clause
// solve.h - the best plan for a problem, in less than a millisecond.
#pragma once

#include "placement/problem.h"

namespace batchplane::placement {

// Plans that are looked at, times applications and devices: what the time is spent on.
inline constexpr uint32_t kEffort = 250'000;

// Serves what can be served, then lowers the policies' cost. `start`: a plan to begin with, or empty. Always
// returns a feasible plan, if only the one that serves nothing. The same for the same arguments.
[[nodiscard]] Plan solve(const Problem& problem, const Plan& start, uint32_t effort = kEffort);

}  // namespace batchplane::placement
