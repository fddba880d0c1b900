// SPDX-License-Identifier: BSD-3-Clause
#include "slo/papers/phases.h"

#include <algorithm>
#include <cmath>

namespace batchplane::slo {
namespace {

bool is_almost_full(const Topology& topology, const Settings& settings,
                    const SegmentPeriod& segment) {
  return segment.arriving_pkts >= settings.push_ratio * topology.model.batch_limit_pkts;
}

// Whether recovery may touch the buffer.
bool may_shrink(const SegmentPeriod& segment) {
  return !segment.is_frozen && segment.trigger_pkts > 0 && segment.rate_pkts_per_ns > 0;
}

std::vector<uint32_t> slowest_first(const Topology& topology, const PeriodState& state,
                                    uint32_t flow) {
  std::vector<uint32_t> order = topology.segments_on[flow];
  std::ranges::stable_sort(order, [&state](uint32_t a, uint32_t b) {
    return state.segments[a].delay_ns > state.segments[b].delay_ns;
  });
  return order;
}

}  // namespace

void push(const Topology& topology, const Settings& settings, PeriodState& state) {
  for (uint32_t s = 0; s < state.segments.size(); ++s) {
    const SegmentPeriod& segment = state.segments[s];
    if (segment.is_frozen || segment.trigger_pkts == 0) continue;
    if (is_almost_full(topology, settings, segment)) state.set_trigger(s, 0, "push");
  }
}

void recover(const Topology& topology, PeriodState& state) {
  for (uint32_t f = 0; f < state.flows.size(); ++f) {
    FlowNow& flow = state.flows[f];
    if (flow.slack_ns >= 0) continue;
    flow.is_frozen = true;
    for (const uint32_t s : slowest_first(topology, state, f)) {
      if (flow.slack_ns >= 0) break;
      const SegmentPeriod& segment = state.segments[s];
      if (!may_shrink(segment)) continue;
      const double missing_pkts = std::floor(-flow.slack_ns / segment.delay_per_pkt_ns) + 1;
      const double spare_pkts =
          static_cast<double>(segment.trigger_pkts) - static_cast<double>(segment.min_pkts);
      const uint32_t rest_pkts = missing_pkts < spare_pkts
                                     ? segment.trigger_pkts - static_cast<uint32_t>(missing_pkts)
                                     : 0;
      state.set_trigger_and_slack(topology, s, rest_pkts, "recover");
    }
  }
}

void recover_by_bypass(const Topology& topology, PeriodState& state) {
  for (uint32_t f = 0; f < state.flows.size(); ++f) {
    FlowNow& flow = state.flows[f];
    if (flow.delay_ns <= flow.slo_ns) continue;
    flow.is_frozen = true;
    for (const uint32_t s : topology.segments_on[f]) {
      if (may_shrink(state.segments[s])) state.set_trigger_and_slack(topology, s, 0, "recover");
    }
  }
}

void pull(const Topology& topology, const Settings& settings, PullTo to, PeriodState& state) {
  for (uint32_t s = 0; s < state.segments.size(); ++s) {
    const SegmentPeriod& segment = state.segments[s];
    if (segment.is_frozen || segment.trigger_pkts != 0 || segment.rate_pkts_per_ns <= 0) continue;
    if (is_almost_full(topology, settings, segment)) continue;
    if (state.has_frozen_flow(topology, s)) continue;
    const uint32_t wanted_pkts =
        to == PullTo::kFull ? topology.model.batch_limit_pkts : segment.min_pkts;
    if (wanted_pkts * segment.delay_per_pkt_ns >= state.headroom_ns(topology, s)) continue;
    state.set_trigger_and_slack(topology, s, wanted_pkts, "pull");
  }
}

}  // namespace batchplane::slo
