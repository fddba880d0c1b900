// SPDX-License-Identifier: BSD-3-Clause
#include "slo/papers/baseline.h"

#include <cmath>

#include "slo/papers/verdict.h"

namespace batchplane::slo {
namespace {

// Relative change of an age limit; smaller ones are not worth a command to the worker.
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
  add_verdicts(verdicts_);
  decision.flows = verdicts_;
  snapshot_ = snapshot;
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
  if (state_.segments[s].trigger_pkts == 0) return false;
  if (!is_first_step_ && !chooses_ages()) return false;
  const auto resolved = [this](uint64_t limit_ns) {
    return limit_ns == exec::kStrandingAge ? settings_.stranding_limit_ns : limit_ns;
  };
  return is_other_age(resolved(age_ns), resolved(snapshot.modules[module].age_limit_ns));
}

Explanation Baseline::explain() const {
  if (is_first_step_) return {};
  return explain_period(topology_, settings_, snapshot_, state_, verdicts_, "");
}

}  // namespace batchplane::slo
