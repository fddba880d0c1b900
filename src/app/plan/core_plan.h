// SPDX-License-Identifier: BSD-3-Clause
// core_plan.h - assigns threads to cores: each worker has its own core, generators another one if available,
// everything else the first.
#pragma once

#include <string>
#include <vector>

#include "spec/pipeline_spec.h"

namespace batchplane::app {

struct CorePlan {
  std::vector<int> cores;  // all usable cores, ascending unless the user ordered them
  int control_core = 0;    // control and monitoring threads
  int generator_core = 0;  // default for generators: not the control core if possible
};

// Cores of this process, or those of `--cores`. Throws ConfigError for an unavailable one.
CorePlan plan_cores(const std::string& cores_option);
// Assigns cores to workers without one, from the last core down and the control core last of all; generators
// then get the last remaining core.
// Makes the default worker when there is none.
void assign_workers(PipelineSpec& spec, CorePlan& plan);

// Pins the calling thread to the control core and, if wanted, gives it priority over other threads there.
// False when it does not get the priority.
bool enter_control_core(const CorePlan& plan, bool wants_priority);

}  // namespace batchplane::app
