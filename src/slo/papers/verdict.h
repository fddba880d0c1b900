// SPDX-License-Identifier: BSD-3-Clause
// verdict.h - what the papers' controllers report for each flow: its delay term by term, and
// whether its SLO is kept, missed for now, or out of reach.
#pragma once

#include <vector>

#include "slo/papers/period_state.h"

namespace batchplane::slo {

// Service time of a path's modules, for the period's mean batches.
double service_ns(const Snapshot& snapshot, const std::vector<uint32_t>& path);
// Time to fill the buffers on a flow's path at the triggers decided.
double fill_ns(const Topology& topology, const PeriodState& state, uint32_t flow);
// Sum over a flow's tasks of the time from one poll to the next (99th percentile).
double turnaround_ns(const Topology& topology, const Snapshot& snapshot, uint32_t flow);

// Flows with delay, slack and state; modules with the figures behind their triggers. `rest` is the
// reason given for modules for which no phase gave one.
Explanation explain_period(const Topology& topology, const Settings& settings,
                           const Snapshot& snapshot, const PeriodState& state,
                           const std::vector<exec::FlowVerdict>& verdicts, const char* rest);

std::vector<exec::FlowVerdict> judge(const Topology& topology, const Settings& settings,
                                     const Snapshot& snapshot, const PeriodState& state);

}  // namespace batchplane::slo
