// SPDX-License-Identifier: BSD-3-Clause
#include "slo/papers/period_state.h"

#include <algorithm>
#include <cmath>

namespace batchplane::slo {
namespace {

constexpr double kMinRate = 1e-9;  // one packet a second, in packets per ns
// A buffer that is in use stays so up to this much above the bound: estimates move a little.
constexpr double kBoundHysteresis = 1.1;

// Packets that reached a module. Its buffer may hold some back, and counts arrivals only while it
// buffers: the larger of the two counts covers the whole period.
double reached_pkts(const exec::ModulePeriod& module) {
  return static_cast<double>(std::max(module.pkts, module.arrived_pkts));
}

double mean_batch(uint64_t pkts, uint64_t batches) {
  return batches == 0 ? 0 : static_cast<double>(pkts) / static_cast<double>(batches);
}

void visit(const Topology& topology, uint32_t segment, std::vector<bool>& is_seen,
           std::vector<uint32_t>& order) {
  if (is_seen[segment]) return;
  is_seen[segment] = true;
  for (const uint32_t behind : topology.next[segment]) visit(topology, behind, is_seen, order);
  order.push_back(segment);
}

// Costs of a segment's own members. Each member with traffic adds its whole cost per batch, and its
// cost per packet times the share of the head's packets that reach it: at most all of them, also
// where branches meet again.
void add_member_costs(const Topology& topology, const Snapshot& snapshot, uint32_t s,
                      SegmentPeriod& segment) {
  const double head_pkts = reached_pkts(snapshot.modules[topology.segments[s].head]);
  for (const uint32_t member : topology.segments[s].members) {
    const exec::ModulePeriod& module = snapshot.modules[member];
    const double share = head_pkts > 0 ? std::min(1.0, reached_pkts(module) / head_pkts) : 1.0;
    if (share <= 0) continue;
    segment.cost_per_batch_ns += cost_line(module).cost_per_batch_ns;
    segment.cost_per_pkt_ns += share * cost_line(module).cost_per_pkt_ns;
  }
}

void add_absorbed_costs(const Topology& topology, const MeasureOptions& options, PeriodState& state,
                        uint32_t s) {
  SegmentPeriod& segment = state.segments[s];
  for (const uint32_t behind : topology.next[s]) {
    const SegmentPeriod& other = state.segments[behind];
    const bool is_absorbed = !other.is_controllable ||
                             (options.absorb == Absorb::kUnbuffered && other.old_trigger_pkts == 0);
    if (!is_absorbed) continue;
    const double share = segment.rate_pkts_per_ns > 0
                             ? std::min(1.0, other.rate_pkts_per_ns / segment.rate_pkts_per_ns)
                             : 1.0;
    if (share <= 0) continue;
    segment.cost_per_batch_ns += other.cost_per_batch_ns;
    segment.cost_per_pkt_ns += share * other.cost_per_pkt_ns;
  }
}

bool is_controllable(const SegmentPeriod& segment, const Settings& settings) {
  const double sum_ns = segment.cost_per_batch_ns + segment.cost_per_pkt_ns;
  if (sum_ns <= 0) return false;
  const double factor = segment.old_trigger_pkts > 0 ? kBoundHysteresis : 1.0;
  return segment.cost_per_pkt_ns / sum_ns <= settings.controllable_bound * factor;
}

void measure_buffer(const Topology& topology, const Settings& settings, const Snapshot& snapshot,
                    uint32_t s, SegmentPeriod& segment) {
  const exec::ModulePeriod& head = snapshot.modules[topology.segments[s].head];
  const uint32_t limit_pkts = topology.model.batch_limit_pkts;
  segment.old_trigger_pkts = head.trigger_pkts;
  segment.trigger_pkts = std::min(head.trigger_pkts, limit_pkts);
  if (snapshot.period_ns > 0) {
    segment.rate_pkts_per_ns = reached_pkts(head) / static_cast<double>(snapshot.period_ns);
  }
  if (segment.rate_pkts_per_ns <= kMinRate) segment.rate_pkts_per_ns = 0;
  segment.arriving_pkts = head.arrived_batches > 0
                              ? mean_batch(head.arrived_pkts, head.arrived_batches)
                              : mean_batch(head.pkts, head.batches);
  const double least = std::floor(segment.arriving_pkts) + settings.pull_pkts;
  segment.min_pkts = static_cast<uint32_t>(std::clamp<double>(least, 0, limit_pkts));
}

void measure_delays(const Snapshot& snapshot, const exec::ModulePeriod& head,
                    SegmentPeriod& segment) {
  if (segment.rate_pkts_per_ns <= 0) return;
  segment.delay_per_pkt_ns = 1 / segment.rate_pkts_per_ns + segment.cost_per_pkt_ns;
  if (head.batches == 0) return;
  const double between_ns =
      static_cast<double>(snapshot.period_ns) / static_cast<double>(head.batches);
  segment.delay_ns =
      between_ns + segment.cost_per_batch_ns + segment.cost_per_pkt_ns * segment.trigger_pkts;
}

FlowNow measure_flow(const Settings& settings, const exec::FlowPeriod& flow, bool keeps_margin) {
  FlowNow now;
  now.delay_ns = static_cast<double>(flow.delay_ns);
  if (flow.slo_ns == 0) return now;
  now.slo_ns = static_cast<double>(flow.slo_ns);
  now.slack_ns = now.slo_ns - now.delay_ns;
  now.tolerance_ns = settings.tolerance * now.slo_ns;
  now.margin_ns = keeps_margin ? now.tolerance_ns : 0;
  return now;
}

}  // namespace

Topology::Topology(const Model& of)
    : model(of), segments(segments_of(of)), next(next_segments(of, segments)) {
  const std::vector<uint32_t> segment_of_head = segment_of_heads(model, segments);
  std::vector<bool> is_seen(segments.size(), false);
  for (uint32_t s = 0; s < segments.size(); ++s) visit(*this, s, is_seen, deepest_first);
  flows_through.resize(segments.size());
  for (uint32_t f = 0; f < model.flows.size(); ++f) {
    segments_on.emplace_back();
    tasks_on.emplace_back();
    for (const uint32_t module : model.flows[f].path) {
      std::vector<uint32_t>& tasks = tasks_on.back();
      const uint32_t task = model.modules[module].task;
      if (std::ranges::find(tasks, task) == tasks.end()) tasks.push_back(task);
      const uint32_t s = segment_of_head[module];
      if (s == kNoSegment) continue;
      segments_on.back().push_back(s);
      flows_through[s].push_back(f);
    }
  }
}

double PeriodState::headroom_ns(const Topology& topology, uint32_t segment) const {
  double min_ns = kNoLimit;
  for (const uint32_t f : topology.flows_through[segment]) {
    min_ns = std::min(min_ns, flows[f].headroom_ns());
  }
  return min_ns;
}

bool PeriodState::has_frozen_flow(const Topology& topology, uint32_t segment) const {
  return std::ranges::any_of(topology.flows_through[segment],
                             [this](uint32_t f) { return flows[f].is_frozen; });
}

void PeriodState::set_trigger(uint32_t segment, uint32_t trigger_pkts, const char* reason) {
  segments[segment].trigger_pkts = trigger_pkts;
  segments[segment].reason = reason;
  segments[segment].is_frozen = true;
}

void PeriodState::set_trigger_and_slack(const Topology& topology, uint32_t segment,
                                        uint32_t trigger_pkts, const char* reason) {
  const double change_pkts =
      static_cast<double>(trigger_pkts) - static_cast<double>(segments[segment].trigger_pkts);
  for (const uint32_t f : topology.flows_through[segment]) {
    flows[f].slack_ns -= change_pkts * segments[segment].delay_per_pkt_ns;
  }
  set_trigger(segment, trigger_pkts, reason);
}

PeriodState measure(const Topology& topology, const Settings& settings, const Snapshot& snapshot,
                    const MeasureOptions& options) {
  PeriodState state;
  state.segments.resize(topology.segments.size());
  for (const uint32_t s : topology.deepest_first) {
    SegmentPeriod& segment = state.segments[s];
    measure_buffer(topology, settings, snapshot, s, segment);
    add_member_costs(topology, snapshot, s, segment);
    add_absorbed_costs(topology, options, state, s);
    segment.is_controllable = is_controllable(segment, settings);
  }
  for (uint32_t s = 0; s < state.segments.size(); ++s) {
    SegmentPeriod& segment = state.segments[s];
    segment.cost_per_batch_ns *= options.cost_growth;
    segment.cost_per_pkt_ns *= options.cost_growth;
    measure_delays(snapshot, snapshot.modules[topology.segments[s].head], segment);
    if (segment.is_controllable) continue;
    if (segment.rate_pkts_per_ns > 0 && segment.trigger_pkts > 0) {
      state.set_trigger(s, 0, "no_gain");
    }
    segment.is_frozen = true;
  }
  for (const exec::FlowPeriod& flow : snapshot.flows) {
    state.flows.push_back(measure_flow(settings, flow, options.keeps_margin));
  }
  return state;
}

}  // namespace batchplane::slo
