// SPDX-License-Identifier: BSD-3-Clause
// core_plan.h - which thread runs where: workers alone on their cores, generators on another one if
// there is any, everything else on the first.
#pragma once

#include <string>
#include <vector>

#include "spec/pipeline_spec.h"

namespace batchplane::app {

struct CorePlan {
  std::vector<int> cores;  // all that may be used, ascending unless the user ordered them
  int control_core = 0;    // control and everything that looks on
  int generator_core = 0;  // of generators that name none: apart from control where possible
};

// Cores of this process, or those of `--cores`. Throws ConfigError for one that cannot be had.
CorePlan plan_cores(const std::string& cores_option);
// Gives workers without a core one each, from the last core down, the control core last of all, and
// generators the last core that is left then.
// Makes the default worker when there is none.
void assign_workers(PipelineSpec& spec, CorePlan& plan);

// Pins the calling thread to the control core, and lets it come before other threads there if it wants that. False
// when it does not.
bool enter_control_core(const CorePlan& plan, bool wants_priority);

}  // namespace batchplane::app
