// SPDX-License-Identifier: BSD-3-Clause
// optimal_age.h - age limits to go with the triggers: how long a packet may have been in the task
// when its buffer must release it so that the flow's SLO still holds. docs/model.md derives both
// bounds.
#pragma once

#include <cstdint>
#include <vector>

#include "slo/estimate/program_view.h"

namespace batchplane::slo {

// Sets the part of each flow's budget that holding packets takes (ProgramFlow::least_turnaround_ns). Without
// it, buffers would reach their age limits before their triggers, and the triggers would have no
// effect.
void reserve_for_ages(ProgramView& view, const Evaluation& at, const std::vector<double>& bound_ns,
                      const Triggers& triggers_pkts);

// By head: the age limit in ns, kStrandingAge if no flow with an SLO passes. `bound_ns`, by flow:
// the oldest that its packets may get, 0 = any. `is_saturated`: as much enters as is carried.
void age_limits(const ProgramView& view, const Evaluation& at, const std::vector<double>& bound_ns,
                const Triggers& triggers_pkts, bool is_saturated, std::vector<uint64_t>& limits_ns);

}  // namespace batchplane::slo
