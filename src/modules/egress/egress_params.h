// SPDX-License-Identifier: BSD-3-Clause
// egress_params.h - what the egress scheduler may be told in a pipeline.
#pragma once

#include <string>
#include <vector>

#include "core/module/args.h"
#include "modules/egress/egress_scheduler.h"

namespace batchplane {

std::vector<ParamSpec> egress_params();
EgressSettings egress_settings(const Args& args);
// For a simulation (docs/simulator.md).
Dict egress_numbers(const EgressSettings& settings);
// Throws ConfigError for a rate that no link can have.
uint64_t checked_egress_rate(uint64_t rate_bps, const std::string& where);

}  // namespace batchplane
