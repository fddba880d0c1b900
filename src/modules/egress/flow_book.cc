// SPDX-License-Identifier: BSD-3-Clause
#include "modules/egress/flow_book.h"

#include <algorithm>
#include <set>

#include "modules/common/item_syntax.h"

namespace batchplane {
namespace {

std::string place(size_t i) { return "flows[" + std::to_string(i) + "]"; }

}  // namespace

FlowBook::FlowBook(const Args& args, uint32_t max_flows)
    : EgressBook(max_flows, max_flows), flows_(parse_egress_flows(args)), rules_(args) {
  for (const auto& [flow, params] : flows_) set_known(flow);
}

std::vector<FlowBook::Item> FlowBook::parse(const List& items, const char* verb) const {
  std::vector<Item> parsed;
  std::set<uint32_t> seen;
  for (size_t i = 0; i < items.size(); ++i) {
    parsed.push_back(parse_egress_flow(items[i], rules_, place(i)));
    if (!seen.insert(parsed.back().first).second) {
      throw ConfigError("flow " + std::to_string(parsed.back().first) + " is there twice", place(i),
                        std::string(verb) + " it once");
    }
  }
  return parsed;
}

void FlowBook::edit(const Value& args, bool must_exist) {
  const std::vector<Item> parsed =
      parse(items_under(args, "flows"), must_exist ? "replace" : "add");
  uint64_t weight_sum = 0;
  for (const auto& [flow, params] : flows_) weight_sum += params.weight;
  for (size_t i = 0; i < parsed.size(); ++i) {
    const auto& [flow, params] = parsed[i];
    if (must_exist != flows_.contains(flow)) {
      throw ConfigError(must_exist ? "there is no such flow" : "the flow exists", place(i),
                        must_exist ? "add it" : "replace it");
    }
    weight_sum += params.weight;
    if (must_exist) weight_sum -= flows_.at(flow).weight;
  }
  check_weight_sum(weight_sum, "flows");
  refuse_too_many(parsed.size());
  for (const auto& [flow, params] : parsed) {
    order({.number = flow, .flow = params});
    flows_[flow] = params;
  }
}

void FlowBook::remove(const Value& args) {
  const std::vector<Item> parsed = parse(items_under(args, "flows"), "delete");
  for (size_t i = 0; i < parsed.size(); ++i) {
    const uint32_t flow = parsed[i].first;
    if (flow != 0 && flows_.contains(flow)) continue;
    throw ConfigError(flow == 0 ? "flow 0 takes what no other flow has" : "there is no such flow",
                      place(i), "delete another");
  }
  refuse_too_many(parsed.size());
  for (const auto& [flow, params] : parsed) {
    flows_.erase(flow);
    order({.kind = EgressEdit::Kind::kRemove, .number = flow});
  }
}

void FlowBook::each_flow(const std::function<bool(uint32_t flow, Dict said)>& use) const {
  for (const auto& [flow, params] : flows_) {
    Dict said{{"weight", params.weight}};
    if (params.delay_us != 0) said["delay_us"] = params.delay_us;
    if (params.jitter_us != 0) said["jitter_us"] = params.jitter_us;
    if (params.pace_bps != 0) said["rate_bps"] = params.pace_bps;
    if (!use(flow, std::move(said))) return;
  }
}

std::vector<EgressNode> FlowBook::nodes() const {
  std::vector<EgressNode> all;
  for (const auto& [flow, params] : flows_) {
    all.push_back({.number = flow, .parent = max_flows(), .weight = params.weight});
  }
  all.push_back({.number = max_flows()});
  return all;
}

Dict FlowBook::saved_params() const {
  List list;
  for (const auto& [flow, params] : flows_) list.push_back(egress_flow_value(flow, params));
  return {{"flows", std::move(list)}};
}

std::vector<egress::Bound> FlowBook::bounds(const EgressSettings& settings) const {
  const egress::Crowd crowd = egress::crowd_of(flows_, settings.capacity.pkts);
  const egress::Server server{.rate_bps = settings.rate_bps, .framing = settings.framing};
  std::vector<egress::Bound> bounds(settings.capacity.flows,
                                    {.why_not = egress::NoBound::kNoShare});
  for (const auto& [flow, params] : flows_) {
    bounds[flow] = egress::bound_of(settings.discipline, params, crowd, server);
  }
  return bounds;
}

void FlowBook::take_over(EgressScheduler& scheduler, EgressBook& old) noexcept {
  leave_like(old);
  for (const auto& [flow, params] : static_cast<const FlowBook&>(old).flows_) {
    if (!flows_.contains(flow)) leave(flow);
  }
  configure_all(scheduler);
}

void FlowBook::configure_all(EgressScheduler& scheduler) const {
  for (const auto& [flow, params] : flows_) scheduler.edit({.number = flow, .flow = params});
}

}  // namespace batchplane
