// SPDX-License-Identifier: BSD-3-Clause
// optimal_age.h - age limits that go with triggers: how long a packet may have been in the task
// when its buffer must let it go, so that the flow's SLO still holds. docs/model.md derives both
// bounds.
#pragma once

#include <cstdint>
#include <vector>

#include "slo/estimate/program_view.h"

namespace batchplane::slo {

// What may pass between a deadline and the end of the module's own firing, its service apart: the
// run that is going on, and what expires together with it.
[[nodiscard]] double run_allowance_ns(const ProgramView& view, const Evaluation& at, uint32_t task,
                                      const std::vector<uint32_t>& triggers_pkts);

// What holding packets costs each flow's budget (ProgramFlow::holding_ns): triggers that are not
// reached before the age limits that go with them would be triggers in name only.
void reserve_for_ages(ProgramView& view, const Evaluation& at, const std::vector<double>& bound_ns,
                      const std::vector<bool>& is_unbounded,
                      const std::vector<uint32_t>& triggers_pkts);

// By head: the limit in ns, kStrandingAge where no flow with an SLO passes. `bound_ns` by flow: the
// oldest that its packets may get, 0 = any. Flows that cannot be met anyway (`is_left_out`) limit
// nothing that other flows need.
void age_limits(const ProgramView& view, const Evaluation& at, const std::vector<double>& bound_ns,
                const std::vector<bool>& is_left_out, const std::vector<uint32_t>& triggers_pkts,
                std::vector<uint64_t>& limits_ns);

}  // namespace batchplane::slo
