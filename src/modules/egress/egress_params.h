// SPDX-License-Identifier: BSD-3-Clause
// egress_params.h - parameters of the egress scheduler.
#pragma once

#include <string>
#include <vector>

#include "core/module/args.h"
#include "modules/egress/egress_scheduler.h"

namespace batchplane {

std::vector<ParamSpec> egress_params();
EgressSettings egress_settings(const Args& args);
// For the simulator (docs/simulator.md).
Dict egress_numbers(const EgressSettings& settings);
// Throws ConfigError for a rate out of range.
uint64_t checked_egress_rate(uint64_t rate_bps, const std::string& where);

}  // namespace batchplane
