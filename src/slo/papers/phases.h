// SPDX-License-Identifier: BSD-3-Clause
// phases.h - the phases of the papers' controllers. Each phase freezes what it decides, and later
// phases leave that alone.
#pragma once

#include "slo/papers/period_state.h"

namespace batchplane::slo {

// Bypasses buffers that already receive almost full batches.
void push(const Topology& topology, const Settings& settings, PeriodState& state);

// For flows over their SLO: shrinks the buffers on the path, slowest first, by the missing delay. A
// buffer that would fall to its minimum size is bypassed. Stops once the flow is within its SLO.
void recover(const Topology& topology, PeriodState& state);

// For flows over their SLO: bypasses every buffer on the path.
void recover_by_bypass(const Topology& topology, PeriodState& state);

// Inserts bypassed buffers where every flow through them has the headroom, at their minimum size or
// at full batches.
enum class PullTo : uint8_t { kMin, kFull };
void pull(const Topology& topology, const Settings& settings, PullTo to, PeriodState& state);

}  // namespace batchplane::slo
