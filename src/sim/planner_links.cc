// SPDX-License-Identifier: BSD-3-Clause
#include "sim/planner_links.h"

#include <algorithm>
#include <ranges>

namespace batchplane::sim {
namespace {

constexpr double kBitsPerByte = 8;

double fills_at_pps(uint64_t limit_bps, uint64_t bytes, uint64_t in_pkts) {
  if (limit_bps == 0 || bytes == 0) return PlannedLinks::kNoLimit;
  return static_cast<double>(limit_bps) / (kBitsPerByte * share_of(bytes, in_pkts));
}

Scheduler::Metered sum_of(const Scheduler& scheduler) {
  Scheduler::Metered sum;
  for (uint32_t f = 0; f < scheduler.n_flows(); ++f) {
    const Scheduler::Metered& flow = scheduler.flow(f).metered;
    sum.pkts += flow.pkts;
    sum.bytes += flow.bytes;
    sum.wire_bytes += flow.wire_bytes;
  }
  return sum;
}

}  // namespace

PlannedLinks::PlannedLinks(const Spec& spec, const Simulation& simulation)
    : paths_(simulation.graph().paths.get()), passed_(simulation.model().flows.size()) {
  for (const auto& module : simulation.graph().modules) {
    const bool is_link = module->kind == kSchedulerKind && module->ring == 0;
    if (!is_link || module->queue == nullptr || module->queue->meter() == nullptr) continue;
    links_.push_back({module->name, &spec.schedulers.at(module->name), module->queue->meter()});
  }
}

void PlannedLinks::begin_period() {
  for (const Link& link : links_) link.scheduler->begin_metering();
}

bool PlannedLinks::look() {
  bool any = false;
  for (const Link& link : links_) {
    link.scheduler->take_promises([&](uint16_t state, uint32_t number) {
      for (const uint32_t f : paths_->flows_of(state)) {
        if (f >= passed_.size()) continue;
        const auto at = std::ranges::find(passed_[f], &link, &Passed::link);
        if (at == passed_[f].end()) {
          passed_[f].push_back({&link, number});
        } else if (link.scheduler->flow(number).bound.total_ns() > at->flow().bound.total_ns()) {
          at->number = number;
        } else {
          continue;
        }
        any = true;
      }
    });
  }
  return any;
}

PlannedLinks::Wait PlannedLinks::wait_of(uint32_t flow) const {
  Wait wait;
  for (const Passed& passed : passed_[flow]) {
    const egress::Bound& bound = passed.flow().bound;
    wait.links += (wait.links.empty() ? "" : ", ") + passed.link->name;
    wait.has_bound = wait.has_bound && bound.has_one();
    wait.bound_ns += bound.has_one() ? bound.total_ns() : 0;
  }
  return wait;
}

// Of the link, and what ceilings there are below it.
PlannedLinks::Limit PlannedLinks::tightest(const Link& link, uint64_t in_pkts) {
  Limit least;
  const auto offer = [&](bool is_node, uint32_t number, uint64_t limit_bps, uint64_t bytes) {
    const double pps = fills_at_pps(limit_bps, bytes, in_pkts);
    if (pps < least.most_pps) least = {is_node, number, limit_bps, pps};
  };
  offer(false, 0, link.spec->rate_bps, sum_of(*link.scheduler).wire_bytes);
  if (link.spec->discipline == "calendar") {
    for (const auto& [number, params] : link.spec->flows) {
      offer(true, number, params.pace_bps, link.scheduler->flow(number).metered.bytes);
    }
  }
  if (link.spec->discipline != "tree") return least;
  std::vector<uint64_t> bytes(link.spec->tree.nodes());
  for (uint32_t f = 0; f < link.scheduler->n_flows(); ++f) {
    bytes[f] = link.scheduler->flow(f).metered.wire_bytes;
  }
  for (const egress::PlacedNode& node : std::views::reverse(link.spec->nodes)) {
    if (node.parent < bytes.size()) bytes[node.parent] += bytes[node.number];
    offer(true, node.number, node.params.ceil_bps, bytes[node.number]);
  }
  return least;
}

double PlannedLinks::most_pps(uint64_t in_pkts) const {
  double most = kNoLimit;
  for (const Link& link : links_) most = std::min(most, tightest(link, in_pkts).most_pps);
  return most;
}

bool PlannedLinks::is_beyond_share(uint32_t flow, uint64_t in_pkts, double rate_pps) const {
  return std::ranges::any_of(passed_[flow], [&](const Passed& passed) {
    const Scheduler::Flow& mine = passed.flow();
    const double sends_bps = kBitsPerByte * share_of(mine.metered.bytes, in_pkts) * rate_pps;
    // The planned rate is exact to a packet of the period.
    return mine.bound.has_one() && mine.bound.share_bps > 0 &&
           sends_bps > 1.001 * mine.bound.share_bps;
  });
}

List PlannedLinks::value(uint64_t in_pkts, double rate_pps) const {
  List rows;
  for (const Link& link : links_) {
    const Scheduler::Metered sum = sum_of(*link.scheduler);
    const Limit limit = tightest(link, in_pkts);
    const bool has_limit = limit.most_pps < kNoLimit;
    rows.emplace_back(Dict{{"link", link.name},
                           {"discipline", link.spec->discipline},
                           {"rate_bps", link.spec->rate_bps},
                           {"share", share_of(sum.pkts, in_pkts)},
                           {"wire_bytes_per_pkt", share_of(sum.wire_bytes, sum.pkts)},
                           {"limited_by_node", limit.is_node ? Value(limit.number) : Value()},
                           {"limit_bps", has_limit ? Value(limit.limit_bps) : Value()},
                           {"most_pps", has_limit ? Value(limit.most_pps) : Value()},
                           {"load", has_limit ? rate_pps / limit.most_pps : 0.0}});
  }
  return rows;
}

}  // namespace batchplane::sim
