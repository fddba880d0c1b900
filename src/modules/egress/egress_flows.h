// SPDX-License-Identifier: BSD-3-Clause
// egress_flows.h - parses the flows of an egress scheduler.
#pragma once

#include <map>
#include <string>

#include "base/value.h"
#include "core/module/args.h"
#include "egress/discipline/discipline.h"
#include "modules/egress/flow_number.h"

namespace batchplane {

inline constexpr uint32_t kMaxEgressFlows = 1U << 20;

// Half of the scheduler's maximum: deleted flows keep their weight until their packets have left.
inline constexpr uint64_t kMaxDeclaredWeightSum = egress::kMaxWeightSum / 2;
// Throws ConfigError above kMaxDeclaredWeightSum.
void check_weight_sum(uint64_t weight_sum, const std::string& where);

// Flow number -> parameters.
using EgressFlows = std::map<uint32_t, egress::FlowParams>;

FlowNumbers flow_numbers(const Args& args);
// Context for parsing entries.
struct EgressFlowRules {
  explicit EgressFlowRules(const Args& args);
  FlowNumbers numbers;
  egress::FlowParams otherwise;  // defaults
  bool has_times = false;        // calendar: entries may set delay_us and jitter_us
};
// Parses one entry {flow, weight, lmax_bytes, limit_pkts, delay_us, jitter_us, rate_bps}. Throws
// ConfigError.
std::pair<uint32_t, egress::FlowParams> parse_egress_flow(const Value& item,
                                                          const EgressFlowRules& rules,
                                                          const std::string& where);
// Parses the whole list; flow 0 always exists, and so do those of connections.
EgressFlows parse_egress_flows(const Args& args);
Value egress_flow_value(uint32_t flow, const egress::FlowParams& params);

}  // namespace batchplane
