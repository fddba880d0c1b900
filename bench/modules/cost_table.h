// SPDX-License-Identifier: BSD-3-Clause
// cost_table.h - the measured cost law of each module configuration, as the JSON that others read.
//
// {"version": 2, "cpu", "lookup_path", "modules": [{"kind", "configuration", "configuration_hash",
//  "params", a cost law as costs files have it, "cost_per_batch_95_ns": [low, high],
//  "cost_per_pkt_95_ns": [..], "r_squared", "small_error_ratio", "left_out_error_ratio", "note"}]}
// The engine's own hop comes on top.
#pragma once

#include <string>
#include <vector>

#include "modules/rig.h"

namespace bench {

// 16 hex digits over kind and parameters: equal exactly when those are.
[[nodiscard]] std::string configuration_hash(const std::string& kind,
                                             const batchplane::Dict& params);
// The profile of each case, in the same order.
[[nodiscard]] std::string cost_table_json(
    const std::vector<ModuleCase>& cases,
    const std::vector<batchplane::profile::ModuleProfile>& profiles,
    const std::string& lookup_path);

}  // namespace bench
