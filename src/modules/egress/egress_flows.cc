// SPDX-License-Identifier: BSD-3-Clause
#include "modules/egress/egress_flows.h"

#include "egress/discipline/pace.h"
#include "modules/common/item_syntax.h"
#include "modules/egress/egress_scheduler.h"

namespace batchplane {

void check_weight_sum(uint64_t weight_sum, const std::string& where) {
  if (weight_sum <= kMaxDeclaredWeightSum) return;
  throw ConfigError("the weights add up to more than " + std::to_string(kMaxDeclaredWeightSum),
                    where, "scale them down");
}

FlowNumbers flow_numbers(const Args& args) {
  return {.max_flows = args.u32("max_flows"), .inner_vlans = args.u32("inner_vlans")};
}

EgressFlowRules::EgressFlowRules(const Args& args)
    : numbers(flow_numbers(args)),
      otherwise{
          .weight = 1, .lmax_bytes = args.u32("lmax_bytes"), .limit_pkts = args.u32("limit_pkts")},
      has_times(args.string("discipline") == kCalendarDiscipline) {}

std::pair<uint32_t, egress::FlowParams> parse_egress_flow(const Value& item,
                                                          const EgressFlowRules& rules,
                                                          const std::string& where) {
  constexpr const char* kTimes[] = {"delay_us", "jitter_us", "rate_bps"};
  check_keys(item, {"flow", "weight", "lmax_bytes", "limit_pkts", kTimes[0], kTimes[1], kTimes[2]},
             where);
  for (const char* key : kTimes) {
    if (!item.has(key) || rules.has_times) continue;
    throw ConfigError("only with discipline: calendar do packets have times of their own",
                      where + "." + key, "remove it, or change the discipline");
  }
  if (!item.has("flow")) throw ConfigError("'flow' is missing", where, "its number");
  const uint32_t flow = rules.numbers.parse(item["flow"], where + ".flow");
  const auto under = [&](const char* key, int64_t most, uint32_t missing) {
    return static_cast<uint32_t>(int_under(item, key, 1, most, missing, where));
  };
  // At most 10 s, since entry times wrap after a minute.
  const auto time = [&](const char* key) {
    return static_cast<uint32_t>(int_under(item, key, 0, 10'000'000, 0, where));
  };
  return {flow,
          {.weight = under("weight", egress::kMaxWeight, rules.otherwise.weight),
           .lmax_bytes = under("lmax_bytes", egress::kMaxPktBytes, rules.otherwise.lmax_bytes),
           .limit_pkts = under("limit_pkts", 1 << 20, rules.otherwise.limit_pkts),
           .delay_us = time("delay_us"),
           .jitter_us = time("jitter_us"),
           .pace_bps = static_cast<uint64_t>(
               int_under(item, "rate_bps", egress::kMinPaceBps, egress::kMaxPaceBps, 0, where))}};
}

EgressFlows parse_egress_flows(const Args& args) {
  const EgressFlowRules rules(args);
  EgressFlows flows{{0, rules.otherwise}};
  if (args.string("flow_by") == "hash") {
    for (uint32_t flow = 1; flow < args.u32("hash_flows"); ++flow) flows[flow] = rules.otherwise;
  }
  std::map<uint32_t, size_t> seen;
  const List& list = args.list("flows");
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string where = args.where() + ".flows[" + std::to_string(i) + "]";
    const auto [flow, params] = parse_egress_flow(list[i], rules, where);
    if (const auto [first, is_new] = seen.emplace(flow, i); !is_new) {
      throw ConfigError("flow " + std::to_string(flow) + " is there twice", where,
                        "see flows[" + std::to_string(first->second) + "]");
    }
    flows[flow] = params;
  }
  uint64_t weight_sum = 0;
  for (const auto& [flow, params] : flows) weight_sum += params.weight;
  check_weight_sum(weight_sum, args.where() + ".flows");
  return flows;
}

Value egress_flow_value(uint32_t flow, const egress::FlowParams& params) {
  Dict value{{"flow", flow},
             {"weight", params.weight},
             {"lmax_bytes", params.lmax_bytes},
             {"limit_pkts", params.limit_pkts}};
  if (params.delay_us != 0) value["delay_us"] = params.delay_us;
  if (params.jitter_us != 0) value["jitter_us"] = params.jitter_us;
  if (params.pace_bps != 0) value["rate_bps"] = params.pace_bps;
  return value;
}

}  // namespace batchplane
