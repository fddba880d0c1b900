// SPDX-License-Identifier: BSD-3-Clause
// problem_value.h - problems as plain values, as used by Python and pipelines.
#pragma once

#include "base/value.h"
#include "placement/plant.h"

namespace batchplane::placement {

// {devices: {gpu: {off_w, idle_w, active_w}}, apps: {dpi: {policy, rate_pps, pkt_bytes, budget_ns, value,
// laws: {gpu: {batch_ns, pkt_ns, byte_ns, length_ns, max_batch_pkts}}}}, slowdown: [{app, on, beside, on_other, factor}],
// watt_cap, most_utilisation}. Throws ConfigError with the key below `where`.
[[nodiscard]] Problem problem_from(const Value& value, const std::string& where);
// Throws ConfigError for other words.
[[nodiscard]] Policy policy_from(const std::string& word, const std::string& where);
// {problem..., changes: [{at_ns, app, rate_pps, policy, device, is_up, watt_cap}], duration_ns, period_ns,
// is_random, seed}
[[nodiscard]] PlantSpec plant_from(const Value& value, const std::string& where);

// {app: {device: {share, batch_pkts}}}, as plan_value() writes it; applications left out are not
// served. Throws ConfigError.
[[nodiscard]] Plan plan_from(const Value& value, const Problem& problem, const std::string& where);

[[nodiscard]] Value plan_value(const Problem& problem, const Plan& plan);
[[nodiscard]] Value outcome_value(const Problem& problem, const Outcome& outcome);

}  // namespace batchplane::placement
