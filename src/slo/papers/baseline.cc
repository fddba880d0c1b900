// SPDX-License-Identifier: BSD-3-Clause
#include "slo/baseline.h"

#include <cmath>

#include "slo/verdict.h"

namespace batchplane::slo {
namespace {

// Of an age limit: smaller changes are not worth a command to the worker.
constexpr double kAgeDeadBand = 0.02;

bool is_other_age(uint64_t wanted_ns, uint64_t found_ns) {
  const auto wanted = static_cast<double>(wanted_ns);
  return std::abs(wanted - static_cast<double>(found_ns)) > kAgeDeadBand * wanted;
}

}  // namespace

Decision Baseline::step(const Snapshot& snapshot) {
  state_ = measure(topology_, settings_, snapshot, next_options());
  decide(snapshot, state_);
  Decision decision;
  for (uint32_t s = 0; s < state_.segments.size(); ++s) add_change(snapshot, s, decision);
  verdicts_ = judge(topology_, settings_, snapshot, state_);
  decision.flows = verdicts_;
  is_first_step_ = false;
  return decision;
}

void Baseline::add_change(const Snapshot& snapshot, uint32_t s, Decision& decision) const {
  const SegmentPeriod& segment = state_.segments[s];
  const uint32_t module = topology_.segments[s].head;
  const uint64_t age_ns =
      segment.trigger_pkts > 0 ? age_limit_ns(snapshot, state_, s) : exec::kStrandingAge;
  const bool is_trigger_new = segment.trigger_pkts != segment.old_trigger_pkts;
  if (!is_trigger_new && !is_age_new(snapshot, s, age_ns)) return;
  const char* reason = segment.reason;
  if (reason[0] == '\0') reason = is_trigger_new ? "limit" : "age";
  decision.changes.push_back({module, segment.trigger_pkts, age_ns, reason});
}

// The first step also replaces age limits that another controller may have left behind.
bool Baseline::is_age_new(const Snapshot& snapshot, uint32_t s, uint64_t age_ns) const {
  const uint32_t module = topology_.segments[s].head;
  if (state_.segments[s].trigger_pkts == 0 || module >= snapshot.modules.size()) return false;
  if (!is_first_step_ && !chooses_ages()) return false;
  const auto resolved = [this](uint64_t limit_ns) {
    return limit_ns == exec::kStrandingAge ? settings_.stranding_limit_ns : limit_ns;
  };
  return is_other_age(resolved(age_ns), resolved(snapshot.modules[module].age_limit_ns));
}

Value Baseline::explain() const {
  List flows;
  for (size_t f = 0; f < verdicts_.size(); ++f) {
    const exec::FlowVerdict& verdict = verdicts_[f];
    flows.emplace_back(Dict{{"name", topology_.model.flows[f].name},
                            {"state", exec::kFlowStateNames[static_cast<size_t>(verdict.state)]},
                            {"delay_ns", state_.flows[f].delay_ns},
                            {"slack_ns", verdict.slack_ns},
                            {"turnaround_ns", verdict.turnaround_ns},
                            {"fill_ns", verdict.fill_ns},
                            {"service_ns", verdict.service_ns},
                            {"hint", verdict.hint}});
  }
  List modules;
  for (size_t s = 0; s < state_.segments.size(); ++s) {
    const SegmentPeriod& segment = state_.segments[s];
    modules.emplace_back(Dict{{"name", topology_.model.modules[topology_.segments[s].head].name},
                              {"trigger_pkts", segment.trigger_pkts},
                              {"arriving_pkts", segment.arriving_pkts},
                              {"rate_pps", segment.rate_pkts_per_ns * 1e9},
                              {"delay_per_pkt_ns", segment.delay_per_pkt_ns},
                              {"cost_per_batch_ns", segment.cost_per_batch_ns},
                              {"cost_per_pkt_ns", segment.cost_per_pkt_ns},
                              {"is_controllable", segment.is_controllable},
                              {"reason", segment.reason}});
  }
  return Dict{{"controller", name_}, {"flows", std::move(flows)}, {"modules", std::move(modules)}};
}

}  // namespace batchplane::slo
