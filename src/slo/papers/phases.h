// SPDX-License-Identifier: BSD-3-Clause
// phases.h - what the papers' controllers do in a period, phase by phase. Each phase freezes what
// it decides; later ones leave that alone.
#pragma once

#include "slo/papers/period_state.h"

namespace batchplane::slo {

// Batches that arrive almost full need no buffer: it is taken out.
void push(const Topology& topology, const Settings& settings, PeriodState& state);

// Flows past their SLO: buffers on the path, slowest first, give back as much delay as is missing;
// one that would fall to its least size is bypassed. Stops when the flow is within its SLO.
void recover(const Topology& topology, PeriodState& state);

// Flows past their SLO: every buffer on the path is bypassed.
void recover_by_bypass(const Topology& topology, PeriodState& state);

// Bypassed buffers are put in where every flow through them has the headroom: at their least size,
// or at full batches.
enum class PullTo : uint8_t { kMin, kFull };
void pull(const Topology& topology, const Settings& settings, PullTo to, PeriodState& state);

}  // namespace batchplane::slo
