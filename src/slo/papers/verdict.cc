// SPDX-License-Identifier: BSD-3-Clause
#include "slo/verdict.h"

#include <algorithm>
#include <cmath>

#include "slo/flow_delay.h"

namespace batchplane::slo {
namespace {

using exec::FlowState;
using exec::FlowVerdict;

double sane(double value) { return std::isfinite(value) && value > 0 ? value : 0; }

double service_at(const Snapshot& snapshot, uint32_t module, double batch_pkts) {
  if (module >= snapshot.modules.size()) return 0;
  const exec::ModuleCost& cost = snapshot.modules[module].cost;
  return sane(cost.cost_per_batch_ns) + sane(cost.cost_per_pkt_ns) * batch_pkts;
}

// What no controller can go below: each module runs once, for one packet.
double least_service_ns(const Snapshot& snapshot, const std::vector<uint32_t>& path) {
  double sum_ns = 0;
  for (const uint32_t module : path) sum_ns += service_at(snapshot, module, 1);
  return sum_ns;
}

bool has_buffers(const Topology& topology, const PeriodState& state, uint32_t flow) {
  return std::ranges::any_of(topology.segments_on[flow], [&state](uint32_t s) {
    return state.segments[s].trigger_pkts > 0 || state.segments[s].old_trigger_pkts > 0;
  });
}

void judge_broken(const Topology& topology, const Snapshot& snapshot, const PeriodState& state,
                  uint32_t flow, FlowVerdict& verdict) {
  const double least_ns = least_service_ns(snapshot, topology.model.flows[flow].path);
  if (least_ns > state.flows[flow].slo_ns) {
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
    if (module >= snapshot.modules.size() || snapshot.modules[module].batches == 0) continue;
    const exec::ModulePeriod& now = snapshot.modules[module];
    sum_ns += service_at(snapshot, module,
                         static_cast<double>(now.pkts) / static_cast<double>(now.batches));
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
    if (task >= snapshot.tasks.size()) continue;
    sum_ns += static_cast<double>(snapshot.tasks[task].run_p99_ns);
  }
  return sum_ns;
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
    if (f < snapshot.flows.size() && is_slo_broken(snapshot.flows[f], settings.percentile)) {
      judge_broken(topology, snapshot, state, f, verdict);
    }
  }
  return verdicts;
}

}  // namespace batchplane::slo
