// SPDX-License-Identifier: BSD-3-Clause
// descend.h - the gradient step of `full`: buffers that no earlier phase has decided grow and
// shrink along the load's gradient, projected onto what tight flows leave free.
#pragma once

#include "slo/papers/period_state.h"

namespace batchplane::slo {

struct DescendOptions {
  bool rounds_up = false;      // always up, one packet less where that passes the tolerance
  bool always_chains = false;  // buffers behind one another are tied together, near or not
  bool overshoots = false;     // as far as the constraints allow, also past the least load
};

void descend(const Topology& topology, const Settings& settings, const DescendOptions& options,
             PeriodState& state);

}  // namespace batchplane::slo
