// SPDX-License-Identifier: BSD-3-Clause
// descend.h - the gradient step of `full`: buffers not decided by an earlier phase grow and shrink
// along the load's gradient, projected onto the constraints of the tight flows.
#pragma once

#include "slo/papers/period_state.h"

namespace batchplane::slo {

// The published program, if `is_original`, always rounds up, less one packet if that exceeds the
// tolerance; ties consecutive buffers together even if they are not close; and goes as far as the
// constraints allow, even past the least load.
void descend(const Topology& topology, const Settings& settings, PeriodState& state,
             bool is_original = false);

}  // namespace batchplane::slo
