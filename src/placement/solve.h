// SPDX-License-Identifier: BSD-3-Clause
// solve.h - finds a good plan for a problem in less than a millisecond.
#pragma once

#include "placement/problem.h"

namespace batchplane::placement {

// Search effort: plans evaluated, times applications and devices.
inline constexpr uint32_t kEffort = 250'000;

// First serves as much as possible, then lowers the policies' cost. `start`: an initial plan, or
// empty. Always returns a feasible plan, if only the one that serves nothing. Deterministic.
[[nodiscard]] Plan solve(const Problem& problem, const Plan& start, uint32_t effort = kEffort);

}  // namespace batchplane::placement
