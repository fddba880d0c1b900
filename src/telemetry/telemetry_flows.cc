// SPDX-License-Identifier: BSD-3-Clause
// telemetry_flows.cc - delays of flows with percentiles, and packets along the edges of the graph.
#include <algorithm>

#include "exec/percentiles.h"
#include "telemetry/telemetry.h"

namespace batchplane::telemetry {
namespace {

struct Percentile {
  const char* name;
  double p;
};
constexpr Percentile kPercentiles[] = {
    {"p50", 0.5}, {"p95", 0.95}, {"p99", 0.99}, {"p99.9", 0.999}};

Value flow_value(const exec::FlowSnapshot& flow, const std::vector<std::string>& path) {
  Dict percentiles;
  for (const auto& [name, p] : kPercentiles) {
    const auto delay = percentile_ns(flow.fine_buckets, p, flow.total.delay_max_ns);
    percentiles[name] = delay ? Value(*delay) : Value();
  }
  const uint64_t pkts = flow.total.pkts;
  return Dict{
      {"name", flow.name},
      {"path", List(path.begin(), path.end())},
      {"delay_slo_ns", flow.delay_slo_ns},
      {"pkts", pkts},
      {"late_pkts", flow.total.late_pkts},
      {"delay_mean_ns",
       pkts == 0 ? Value()
                 : Value(static_cast<double>(flow.total.delay_sum_ns) / static_cast<double>(pkts))},
      {"delay_max_ns", flow.total.delay_max_ns},
      {"percentiles_ns", std::move(percentiles)},
      {"slo_buckets", List(std::begin(flow.total.slo_buckets), std::end(flow.total.slo_buckets))}};
}

// Edges have no counters; an edge's packets are known where one of its ends has no other edge.
Value edge_pkts(const Snapshot& snapshot, const GraphFacts& facts, const GraphFacts::Edge& edge) {
  const auto n_into = std::ranges::count(facts.edges, edge.to, &GraphFacts::Edge::to);
  if (n_into == 1) {
    const exec::ModuleSnapshot& to = snapshot.modules[edge.to];
    return to.pkts + to.held_pkts;
  }
  const auto n_out = std::ranges::count(facts.edges, edge.from, &GraphFacts::Edge::from);
  if (n_out == 1 && !edge.is_drop && edge.leaves_input) return snapshot.modules[edge.from].pkts;
  return {};
}

}  // namespace

std::optional<uint64_t> percentile_ns(const std::vector<uint64_t>& fine_buckets, double p,
                                      uint64_t delay_max_ns) {
  uint64_t pkts = 0;
  for (const uint64_t here : fine_buckets) pkts += here;
  if (!exec::has_percentile(pkts, p)) return std::nullopt;
  exec::WantedPercentile wanted[] = {{p}};
  const auto pkts_at = [&](uint32_t b) { return fine_buckets[b]; };
  exec::find_percentiles(pkts, exec::FineBuckets::kCount, pkts_at, wanted);
  return exec::FineBuckets::upper_ns(wanted[0].bucket, delay_max_ns);
}

Value flows_value(const Snapshot& snapshot, const std::vector<std::vector<std::string>>& paths) {
  List flows;
  for (size_t f = 0; f < snapshot.flows.size(); ++f) {
    flows.push_back(
        flow_value(snapshot.flows[f], f < paths.size() ? paths[f] : std::vector<std::string>{}));
  }
  return flows;
}

Value graph_value(const Snapshot& snapshot, const GraphFacts& facts) {
  List nodes;
  for (const exec::ModuleSnapshot& module : snapshot.modules) {
    nodes.emplace_back(Dict{{"name", module.name},
                            {"kind", module.kind},
                            {"worker", module.worker},
                            {"trigger_pkts", module.trigger_pkts},
                            {"pkts", module.pkts}});
  }
  List edges;
  for (const GraphFacts::Edge& edge : facts.edges) {
    edges.emplace_back(Dict{{"from", snapshot.modules[edge.from].name},
                            {"gate", edge.gate},
                            {"to", snapshot.modules[edge.to].name},
                            {"pkts", edge_pkts(snapshot, facts, edge)}});
  }
  return Dict{{"nodes", std::move(nodes)}, {"edges", std::move(edges)}};
}

}  // namespace batchplane::telemetry
