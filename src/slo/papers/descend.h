// SPDX-License-Identifier: BSD-3-Clause
// descend.h - the gradient step of `full`: buffers not decided by an earlier phase grow and shrink
// along the load's gradient, projected onto the constraints of the tight flows.
#pragma once

#include "slo/papers/period_state.h"

namespace batchplane::slo {

struct DescendOptions {
  bool rounds_up = false;      // always round up, less one packet if that exceeds the tolerance
  bool always_chains = false;  // tie consecutive buffers together even if they are not close
  bool overshoots = false;     // go as far as the constraints allow, even past the least load
};

void descend(const Topology& topology, const Settings& settings, const DescendOptions& options,
             PeriodState& state);

}  // namespace batchplane::slo
