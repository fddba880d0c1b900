// SPDX-License-Identifier: BSD-3-Clause
#include "modules/egress/egress_params.h"

#include <algorithm>

#include "egress/discipline/disciplines.h"
#include "modules/common/item_syntax.h"
#include "modules/egress/egress_flows.h"
#include "modules/egress/flow_rule.h"

namespace batchplane {
namespace {

// Of a tree: flows with rates of their own, as opposed to a parent's.
constexpr uint32_t kMaxShapedFlows = 1U << 17;

std::vector<std::string> discipline_names() {
  std::vector<std::string> names{egress::kDisciplineNames.begin(), egress::kDisciplineNames.end()};
  names.emplace_back(kTreeDiscipline);
  names.emplace_back(kCalendarDiscipline);
  return names;
}

ParamSpec count(const char* name, uint32_t default_value, double max, const char* help) {
  return {.name = name,
          .unit = "pkts",
          .default_value = default_value,
          .help = help,
          .min = 1,
          .max = max};
}

egress::Cells cells_of(const std::string& name) {
  if (name == "atm") return egress::Cells::kAtm;
  return name == "ptm" ? egress::Cells::kPtm : egress::Cells::kNoCells;
}

std::vector<ParamSpec> link_params() {
  return {{.name = "discipline",
           .type = ParamType::kString,
           .default_value = "qfq_plus",
           .help = "which flow is next",
           .choices = discipline_names()},
          {.name = "rate_bps",
           .type = ParamType::kInt,
           .unit = "bps",
           .default_value = 0,
           .help = "rate at which packets are released; 0 = as fast as the port takes them",
           .min = 0,
           .max = static_cast<double>(egress::Link::kMaxRateBps)},
          {.name = "overhead_bytes",
           .type = ParamType::kInt,
           .unit = "bytes",
           .default_value = 0,
           .help = "what each packet takes on the link besides; 24 on Ethernet",
           .min = -100,
           .max = 1000},
          {.name = "min_frame_bytes",
           .unit = "bytes",
           .default_value = 1,
           .help = "least that a packet takes with its overhead; 84 on Ethernet",
           .min = 1,
           .max = 1000},
          {.name = "cells",
           .type = ParamType::kString,
           .default_value = "none",
           .help = "cells that the link is cut into: atm (48 of 53 bytes), ptm (64 of 65)",
           .choices = {"none", "atm", "ptm"}}};
}

std::vector<ParamSpec> flow_params() {
  return {
      {.name = "flows",
       .type = ParamType::kList,
       .default_value = List{},
       .help = "{flow, weight, lmax_bytes, limit_pkts}; others belong to flow 0. With calendar "
               "{delay_us, jitter_us, rate_bps}, too; in a tree "
               "{flow, parent, min_rate_bps, ceil_bps, burst_bytes, weight, priority, "
               "limit_bytes, limit_us, queue}"},
      {.name = "weights",
       .type = ParamType::kString,
       .default_value = "given",
       .help = "auto: `batchplane` sets the least weights with which all SLOs hold, for traffic "
               "that generators say",
       .choices = {"given", "auto"}},
      {.name = "lmax_bytes",
       .unit = "bytes",
       .default_value = 1600,
       .help = "longest packet of a flow that says nothing else",
       .min = 64,
       .max = egress::kMaxPktBytes},
      count("limit_pkts", 1000, 1 << 20, "queue of a flow that says nothing else"),
      count("total_limit_pkts", 16384, 1 << 24, "queues of all flows together"),
      {.name = "max_flows",
       .default_value = 1024,
       .help = "flows have numbers below this",
       .min = 1,
       .max = kMaxEgressFlows},
      count("mailbox_pkts", 1024, 1 << 20, "what each worker may have handed over")};
}

std::vector<ParamSpec> tree_params() {
  return {
      {.name = "nodes",
       .type = ParamType::kList,
       .default_value = List{},
       .help = "of a tree, above flows: {node, parent, min_rate_bps, ceil_bps, "
               "burst_bytes, weight, priority}; without parent below the link"},
      {.name = "tree_file",
       .type = ParamType::kString,
       .default_value = "",
       .help = "CSV file with more nodes and flows; its first line names these columns"},
      {.name = "codel_target_us",
       .unit = "us",
       .default_value = 5000,
       .help = "of a tree's flows with queue: codel or fq_codel: waiting that is fine",
       .min = 1,
       .max = 1'000'000},
      {.name = "codel_interval_us",
       .unit = "us",
       .default_value = 100'000,
       .help = "and how long it may be more before packets are dropped: a round trip",
       .min = 10,
       .max = 10'000'000},
      {.name = "pie_target_us",
       .unit = "us",
       .default_value = 15'000,
       .help = "of a tree's flows with queue: pie: waiting that drops are to bring about",
       .min = 1,
       .max = 1'000'000},
      {.name = "catch_up_us",
       .unit = "us",
       .default_value = static_cast<int64_t>(egress::kCatchUpNs / 1000),
       .help = "of a tree: for how long minimum rates may catch up on service they missed; with "
               "less, others wait less",
       .min = static_cast<int64_t>(egress::kMinCatchUpNs / 1000),
       .max = static_cast<int64_t>(egress::kCatchUpNs / 1000)},
      {.name = "max_connections",
       .default_value = 65536,
       .help = "in all such queues together, that have packets",
       .min = 1,
       .max = 1 << 24},
      {.name = "max_nodes",
       .default_value = 1024,
       .help = "of a tree, above flows",
       .min = 0,
       .max = kMaxEgressFlows},
      {.name = "overbook",
       .type = ParamType::kBool,
       .default_value = false,
       .help = "minimum rates may add up to more than a node or the link carries"}};
}

}  // namespace

std::vector<ParamSpec> egress_params() {
  return joined(joined(joined(link_params(), flow_rule_params()), flow_params()), tree_params());
}

EgressSettings egress_settings(const Args& args) {
  const uint32_t flows = args.u32("max_flows");
  return {.discipline = args.string("discipline"),
          .capacity = {flows, args.u32("total_limit_pkts")},
          .inner_nodes = args.u32("max_nodes") + 1,
          .shaped_flows = std::min(flows, kMaxShapedFlows),
          .lmax_bytes = args.u32("lmax_bytes"),
          .connections = args.u32("max_connections"),
          .codel = {.target_ns = uint64_t{args.u32("codel_target_us")} * 1000,
                    .interval_ns = uint64_t{args.u32("codel_interval_us")} * 1000},
          .pie_target_ns = uint64_t{args.u32("pie_target_us")} * 1000,
          .catch_up_ns = uint64_t{args.u32("catch_up_us")} * 1000,
          .rate_bps = checked_egress_rate(args.u64("rate_bps"), args.where() + ".rate_bps"),
          .framing = {.overhead_bytes = static_cast<int32_t>(args.integer("overhead_bytes")),
                      .min_bytes = static_cast<int32_t>(args.u32("min_frame_bytes")),
                      .cells = cells_of(args.string("cells"))}};
}

Dict egress_numbers(const EgressSettings& settings) {
  const char* const cells[] = {"none", "atm", "ptm"};
  return {{"discipline", settings.discipline},
          {"rate_bps", settings.rate_bps},
          {"overhead_bytes", int64_t{settings.framing.overhead_bytes}},
          {"min_frame_bytes", int64_t{settings.framing.min_bytes}},
          {"cells", cells[static_cast<size_t>(settings.framing.cells)]},
          {"max_flows", settings.capacity.flows},
          {"total_limit_pkts", settings.capacity.pkts},
          {"inner_nodes", settings.inner_nodes},
          {"connections", settings.connections},
          {"codel_target_ns", settings.codel.target_ns},
          {"codel_interval_ns", settings.codel.interval_ns},
          {"pie_target_ns", settings.pie_target_ns},
          {"catch_up_ns", settings.catch_up_ns},
          {"lmax_bytes", settings.lmax_bytes}};
}

uint64_t checked_egress_rate(uint64_t rate_bps, const std::string& where) {
  if (rate_bps != 0 && rate_bps < egress::Link::kMinRateBps) {
    throw ConfigError("a link of " + std::to_string(rate_bps) + " bit/s is too slow", where,
                      "at least " + std::to_string(egress::Link::kMinRateBps) + ", or 0 for none");
  }
  return rate_bps;
}

}  // namespace batchplane
