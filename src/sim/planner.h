// SPDX-License-Identifier: BSD-3-Clause
// planner.h - predicts what a pipeline will carry before it runs: a controller steps over periods
// of a saturated simulation until it settles.
//
// With `optimal`, triggers, rates and multipliers are those of its program; docs/model.md says what
// such a period leaves out. If a packet scheduler's link carries less than the core, the controller
// settles once more at the link's rate.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "base/value.h"
#include "sim/spec.h"
#include "slo/model/controller.h"

namespace batchplane::sim {

struct PlanRequest {
  std::string controller = "optimal";
  slo::Settings settings;
  std::map<std::string, uint64_t> slo_ns;  // by flow, overriding the pipeline's; 0 = none
  // Merges a branch away: packets for this gate of this module go to its siblings in turn.
  std::optional<std::pair<std::string, uint32_t>> merged;
};

// Returns plain values: see docs/planning.md. Throws ConfigError for unknown names.
Value plan(const Spec& spec, const PlanRequest& request);

}  // namespace batchplane::sim
