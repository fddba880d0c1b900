// SPDX-License-Identifier: BSD-3-Clause
#include "sim/scheduler_spec.h"

#include <algorithm>

#include "sim/spec_fields.h"

namespace batchplane::sim {
namespace {

constexpr double kMost = 4294967295.0;
constexpr uint32_t kMostFlows = 1U << 20;

uint32_t small(const Value& from, const char* key, uint32_t fallback, const std::string& where,
               double most = kMost) {
  return static_cast<uint32_t>(number(from, key, fallback, where, most));
}

egress::FlowParams flow_params(const Value& flow, const std::string& where) {
  egress::FlowParams params;
  params.weight = small(flow, "weight", params.weight, where);
  params.lmax_bytes = small(flow, "lmax_bytes", params.lmax_bytes, where);
  params.limit_pkts = small(flow, "limit_pkts", params.limit_pkts, where);
  params.delay_us = small(flow, "delay_us", 0, where);
  params.jitter_us = small(flow, "jitter_us", 0, where);
  params.pace_bps = whole(flow, "rate_bps", 0, where);
  return params;
}

egress::NodeParams node_params(const Value& node, const std::string& where) {
  egress::NodeParams params;
  params.min_rate_bps = whole(node, "min_rate_bps", 0, where);
  params.ceil_bps = whole(node, "ceil_bps", 0, where);
  params.burst_bytes = small(node, "burst_bytes", 0, where);
  params.weight = small(node, "weight", 1, where);
  params.priority = static_cast<uint8_t>(small(node, "priority", 0, where, 255));
  params.queue = static_cast<egress::LeafQueue>(
      choice(node, "queue", {"fifo", "codel", "fq_codel", "pie"}, where));
  params.limit_bytes = small(node, "limit_bytes", params.limit_bytes, where);
  return params;
}

void read_nodes(const Value& value, SchedulerSpec& spec, const std::string& where) {
  egress::TreeCapacity& tree = spec.tree;
  tree.leaves = spec.capacity.flows;
  tree.pkts = spec.capacity.pkts;
  tree.inner_nodes = small(value, "inner_nodes", 1, where, kMostFlows);
  tree.connections = small(value, "connections", 0, where);
  tree.codel.target_ns = whole(value, "codel_target_ns", tree.codel.target_ns, where);
  tree.codel.interval_ns = whole(value, "codel_interval_ns", tree.codel.interval_ns, where);
  tree.pie_target_ns = whole(value, "pie_target_ns", tree.pie_target_ns, where);
  tree.catch_up_ns = whole(value, "catch_up_ns", tree.catch_up_ns, where);
  tree.lmax_bytes = small(value, "lmax_bytes", tree.lmax_bytes, where);
  tree.framing = spec.framing;
  if (value["nodes"].is_null()) return;
  for (const Value& node : value["nodes"].as_list()) {
    const std::string at = where + ".nodes[" + std::to_string(spec.nodes.size()) + "]";
    spec.nodes.push_back({.number = small(node, "number", 0, at),
                          .parent = small(node, "parent", 0, at),
                          .params = node_params(node, at)});
    const bool has_rates = spec.nodes.back().params.has_rates();
    if (has_rates && spec.nodes.back().number < tree.leaves) ++tree.shaped_leaves;
  }
}

}  // namespace

SchedulerSpec parse_scheduler(const Value& value, const std::string& where) {
  SchedulerSpec spec;
  spec.discipline = text(value, "discipline", spec.discipline);
  spec.rate_bps = whole(value, "rate_bps", 0, where);
  const Value& overhead = value["overhead_bytes"];
  if (!overhead.is_null()) spec.framing.overhead_bytes = static_cast<int32_t>(overhead.as_int());
  spec.framing.min_bytes = static_cast<int32_t>(small(value, "min_frame_bytes", 1, where, 1000));
  spec.framing.cells =
      static_cast<egress::Cells>(choice(value, "cells", {"none", "atm", "ptm"}, where));
  spec.capacity = {small(value, "max_flows", 1, where, kMostFlows),
                   small(value, "total_limit_pkts", 16384, where)};
  spec.mailbox_pkts = small(value, "mailbox_pkts", spec.mailbox_pkts, where);
  if (!value["flows"].is_null()) {
    for (const Value& flow : value["flows"].as_list()) {
      const std::string at = where + ".flows[" + std::to_string(spec.flows.size()) + "]";
      spec.flows.emplace_back(small(flow, "flow", 0, at), flow_params(flow, at));
      spec.capacity.flows = std::max(spec.capacity.flows, spec.flows.back().first + 1);
    }
  }
  read_nodes(value, spec, where);
  return spec;
}

}  // namespace batchplane::sim
