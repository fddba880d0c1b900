// SPDX-License-Identifier: BSD-3-Clause
#include "slo/papers/verdict.h"

#include <algorithm>

#include "exec/promise.h"

namespace batchplane::slo {
namespace {

using exec::FlowState;
using exec::FlowVerdict;

// Least service time under any controller: each module runs once, for one packet.
double min_service_ns(const Snapshot& snapshot, const std::vector<uint32_t>& path) {
  double sum_ns = 0;
  for (const uint32_t module : path) sum_ns += cost_line(snapshot.modules[module]).ns(1);
  return sum_ns;
}

bool has_buffers(const Topology& topology, const PeriodState& state, uint32_t flow) {
  return std::ranges::any_of(topology.segments_on[flow], [&state](uint32_t s) {
    return state.segments[s].trigger_pkts > 0 || state.segments[s].old_trigger_pkts > 0;
  });
}

void judge_broken(const Topology& topology, const Snapshot& snapshot, const PeriodState& state,
                  uint32_t flow, FlowVerdict& verdict) {
  const double min_ns = min_service_ns(snapshot, topology.model.flows[flow].path);
  if (min_ns > state.flows[flow].slo_ns) {
    verdict.state = FlowState::kInherent;
    verdict.hint = "its modules alone take longer: loosen the SLO or shorten the path";
  } else if (has_buffers(topology, state, flow)) {
    verdict.state = FlowState::kViolating;
  } else {
    verdict.state = FlowState::kInfeasible;
    verdict.hint =
        "late with every buffer on its path bypassed: loosen the SLO, lower the load, or move "
        "other flows to another core";
  }
}

}  // namespace

double service_ns(const Snapshot& snapshot, const std::vector<uint32_t>& path) {
  double sum_ns = 0;
  for (const uint32_t module : path) {
    const exec::ModulePeriod& now = snapshot.modules[module];
    if (now.batches == 0) continue;
    sum_ns += cost_line(now).ns(static_cast<double>(now.pkts) / static_cast<double>(now.batches));
  }
  return sum_ns;
}

double fill_ns(const Topology& topology, const PeriodState& state, uint32_t flow) {
  double sum_ns = 0;
  for (const uint32_t s : topology.segments_on[flow]) {
    const SegmentPeriod& segment = state.segments[s];
    if (segment.rate_pkts_per_ns > 0) sum_ns += segment.trigger_pkts / segment.rate_pkts_per_ns;
  }
  return sum_ns;
}

double turnaround_ns(const Topology& topology, const Snapshot& snapshot, uint32_t flow) {
  double sum_ns = 0;
  for (const uint32_t task : topology.tasks_on[flow]) {
    sum_ns += static_cast<double>(snapshot.tasks[task].run_p99_ns);
  }
  return sum_ns;
}

namespace {

// The flow with the least headroom through a segment.
uint32_t binding_flow(const Topology& topology, const PeriodState& state, uint32_t s) {
  uint32_t found = ModuleExplanation::kNoFlow;
  double min_ns = kNoLimit;
  for (const uint32_t f : topology.flows_through[s]) {
    if (!state.flows[f].has_slo() || state.flows[f].headroom_ns() >= min_ns) continue;
    min_ns = state.flows[f].headroom_ns();
    found = f;
  }
  return found;
}

std::string why(const SegmentPeriod& segment, const char* rest) {
  if (segment.reason[0] != '\0') return segment.reason;
  if (segment.rate_pkts_per_ns <= 0) return "no traffic";
  if (*rest != '\0') return rest;
  if (!segment.is_controllable) return "bypassed: what it costs, it costs by the packet";
  return segment.trigger_pkts == 0 ? "bypassed: no flow has room for a buffer of use"
                                   : "kept: no phase asks for another trigger";
}

FlowExplanation explain_flow(const Topology& topology, const Settings& settings,
                             const PeriodState& state, const FlowVerdict& verdict, uint32_t f) {
  const FlowNow& now = state.flows[f];
  FlowExplanation told{.state = verdict.state,
                       .slo_ns = now.has_slo() ? now.slo_ns : 0,
                       .measured_ns = now.delay_ns,
                       .turnaround_ns = verdict.turnaround_ns,
                       .fill_ns = verdict.fill_ns,
                       .service_ns = verdict.service_ns,
                       .slack_ns = verdict.slack_ns,
                       .multiplier_pps_per_us = verdict.multiplier_pps_per_us,
                       .hint = verdict.hint,
                       .legs = verdict.legs};
  // Measured delay beyond the terms, so that all terms and the slack add up to the SLO.
  told.bias_ns = now.delay_ns - told.turnaround_ns - told.fill_ns - told.service_ns;
  told.margin_ns = told.slo_ns * settings.tolerance;
  for (const uint32_t s : topology.segments_on[f]) {
    const SegmentPeriod& segment = state.segments[s];
    const double batch_pkts = std::max<double>(segment.trigger_pkts, segment.arriving_pkts);
    told.modules.push_back(
        {topology.segments[s].head, segment.trigger_pkts,
         segment.rate_pkts_per_ns > 0 ? segment.trigger_pkts / segment.rate_pkts_per_ns : 0,
         segment.cost_per_batch_ns + segment.cost_per_pkt_ns * batch_pkts});
  }
  return told;
}

}  // namespace

Explanation explain_period(const Topology& topology, const Settings& settings,
                           const Snapshot& snapshot, const PeriodState& state,
                           const std::vector<FlowVerdict>& verdicts, const char* rest) {
  Explanation told;
  for (uint32_t f = 0; f < state.flows.size(); ++f) {
    told.flows.push_back(explain_flow(topology, settings, state, verdicts[f], f));
  }
  for (uint32_t s = 0; s < state.segments.size(); ++s) {
    const SegmentPeriod& segment = state.segments[s];
    const uint32_t module = topology.segments[s].head;
    told.modules.push_back({.module = module,
                            .trigger_pkts = segment.trigger_pkts,
                            .age_limit_ns = snapshot.modules[module].age_limit_ns,
                            .arriving_pkts = segment.arriving_pkts,
                            .cost_per_batch_ns = segment.cost_per_batch_ns,
                            .cost_per_pkt_ns = segment.cost_per_pkt_ns,
                            .why = why(segment, rest),
                            .binding_flow = binding_flow(topology, state, s)});
  }
  return told;
}

std::vector<FlowVerdict> judge(const Topology& topology, const Settings& settings,
                               const Snapshot& snapshot, const PeriodState& state) {
  std::vector<FlowVerdict> verdicts(state.flows.size());
  for (uint32_t f = 0; f < state.flows.size(); ++f) {
    FlowVerdict& verdict = verdicts[f];
    verdict.turnaround_ns = turnaround_ns(topology, snapshot, f);
    verdict.fill_ns = fill_ns(topology, state, f);
    verdict.service_ns = service_ns(snapshot, topology.model.flows[f].path);
    if (!state.flows[f].has_slo()) continue;
    verdict.slack_ns = state.flows[f].slo_ns - state.flows[f].delay_ns;
    verdict.state = FlowState::kMet;
    if (exec::is_slo_broken(snapshot.flows[f], settings.percentile)) {
      judge_broken(topology, snapshot, state, f, verdict);
    }
  }
  return verdicts;
}

}  // namespace batchplane::slo
