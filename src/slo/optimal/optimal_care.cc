// SPDX-License-Identifier: BSD-3-Clause
// optimal_care.cc - what late packets say: limits that come earlier, triggers that come down, and
// how long they stay there.
#include <algorithm>
#include <cmath>

#include "slo/optimal/optimal.h"

namespace batchplane::slo {
namespace {
constexpr double kEnoughAllowed = 10;  // late packets that a period may have
constexpr double kMaxOfFew = 1.5;
constexpr double kLateSigmas = 3;         // of the number of late packets
constexpr double kLateTogether = 8;       // of them in a batch
constexpr double kReserveShare = 0.9;     // of the late packets that the target allows
constexpr double kIrregularShare = 0.25;  // the same below saturation
constexpr double kMaxReserve = 0.15;      // of the SLO
constexpr double kReserveDecay = 0.95;    // a period
constexpr double kCareStep = 0.02;        // of the SLO, when as many are late as may be
constexpr double kMaxCare = 0.3;          // of the SLO
constexpr uint32_t kMinPatience = 20;     // periods
constexpr uint32_t kMaxPatience = 5000;
constexpr double kMaxSlowCare = 0.3;     // of the SLO
constexpr double kSlowViolated = 0.004;  // of periods
constexpr double kStepShare = 0.3;       // of what one of them says of what they ask for
}  // namespace

bool Optimal::passes(uint32_t f, uint32_t t) const {
  const Program& program = view_.program();
  const ProgramFlow& row = program.flows[f];
  const auto* tasks = program.flow_tasks.data();
  return std::find(tasks + row.tasks_begin, tasks + row.tasks_end, t) != tasks + row.tasks_end;
}

// Packets that were late all the same, more than a part of those that may be: limits come earlier
// by what they were late, until none are.
void Optimal::reserve(const exec::FlowPeriod& period, uint32_t f, bool was_for_slo) {
  const double allowed = 1 - std::clamp(settings_.percentile, 0.0, 0.999);
  const double slo_ns = flows_[f].slo_ns;
  double& reserve_ns = flows_[f].reserve_ns;
  const auto pkts = static_cast<double>(period.pkts);
  const auto late = static_cast<double>(period.late_pkts);
  // Late packets come by the batch: next period's may be so many more by chance.
  const double chance = kLateSigmas * std::sqrt(late * kLateTogether);
  flows_[f].lateness =
      was_for_slo && pkts > 0 ? (late + chance) / std::max(1.0, allowed * pkts) : 0;
  // Of few packets one that is late says little: it must not cost the flows beside it their
  // batches.
  if (allowed * pkts < kEnoughAllowed) {
    const double seen = was_for_slo ? late / std::max(1.0, allowed * pkts) : 0;
    flows_[f].lateness = std::min(seen, kMaxOfFew);
  }
  const bool counts = !is_slow(f);
  if (counts && late > (is_saturated(f) ? kReserveShare : kIrregularShare) * allowed * pkts) {
    const double late_ns = std::max(0.0, static_cast<double>(period.delay_max_ns) - slo_ns);
    reserve_ns += late_ns / 2;
  } else {
    reserve_ns *= kReserveDecay;
  }
  reserve_ns = std::min(reserve_ns, kMaxReserve * slo_ns);
  bound_ns_[f] = bound_of(f);
}

double Optimal::bound_of(uint32_t f) const {
  const auto extra_ns = static_cast<double>(settings_.turnaround_extra_ns);
  return flows_[f].slo_ns - flows_[f].reserve_ns - extra_ns;
}

bool Optimal::is_slow(uint32_t f) const {
  const Program& program = view_.program();
  const ProgramFlow& row = program.flows[f];
  for (uint32_t i = row.tasks_begin; i < row.tasks_end; ++i) {
    if (view_.is_slow(program.flow_tasks[i])) return true;
  }
  return false;
}

// At saturation, buffers that reach their age limits together delay each other, and go on in step:
// late packets beget late packets. Triggers come down until buffers fill well before, at once; less
// is tried after a while, four times as long after each try that failed, and sooner again where
// tries go well.
void Optimal::take_care_of(uint32_t t, double lateness) {
  Care& care = cares_[t];
  if (lateness > 1) {
    care.share = std::min(care.share + kCareStep * lateness * lateness, kMaxCare);
    const bool is_failed_try = care.left == 0;  // late again at once is none
    care.left = care.patience;
    if (is_failed_try) care.patience = std::min(4 * care.patience, kMaxPatience);
    care.quiet = 0;
  } else if (care.left > 0) {
    --care.left;
  } else {
    care.share *= kReserveDecay;
    if (++care.quiet >= care.patience) {
      care.patience = std::max(care.patience / 4, kMinPatience);
      care.quiet = 0;
    }
  }
}

// A machine that was slow for a moment says nothing of the model. What would have kept the promises
// is kept back from now on, where that is little enough, and given back so slowly that a part of
// kSlowViolated of the periods may break them: more would be paid for than is needed, less would
// break them too often.
void Optimal::allow_for_slow(uint32_t t, double lateness, double over) {
  Care& care = cares_[t];
  care.slow_share = std::max(0.0, care.slow_share - kSlowViolated * care.slow_step);
  if (!view_.is_slow(t) || lateness <= 1 || over <= 0) return;
  care.slow_step += (care.slow_step > 0 ? kStepShare : 1) * (over - care.slow_step);
  care.slow_share = std::min(care.slow_share + over, kMaxSlowCare);
}

// What a slow moment made smaller may come back at once: to what kept the promises before it.
void Optimal::note_kept(uint32_t t, double lateness) {
  for (uint32_t h = 0; h < heads_.size(); ++h) {
    if (view_.program().modules[h].task != t) continue;
    const auto current = static_cast<uint32_t>(view_.current()[h]);
    uint32_t& kept = heads_[h].kept_pkts;
    kept = lateness > 1 ? 0 : std::max(kept, current);
  }
}

void Optimal::take_care() {
  const Program& program = view_.program();
  std::ranges::fill(care_ns_, 0.0);
  for (uint32_t t = 0; t < cares_.size(); ++t) {
    Care& care = cares_[t];
    const ProgramTask& task = program.tasks[t];
    bool is_other = false;
    double lateness = 0;
    double over = 0;  // of the SLO, that a percentile exceeded it by
    for (uint32_t f = 0; f < flows_.size(); ++f) {
      const FlowMemory& flow = flows_[f];
      if (!passes(f, t)) continue;
      lateness = std::max(lateness, flow.lateness);
      is_other |= flow.has_other_slo;
      if (flow.slo_ns > 0) over = std::max(over, flow.measured_ns / flow.slo_ns - 1);
    }
    const bool is_new = task.is_saturated != care.is_saturated;
    care.is_saturated = task.is_saturated;
    if (is_other) {
      care = {.patience = kMinPatience, .is_saturated = task.is_saturated};
      note_kept(t, kMaxOfFew);
    } else if (is_new || !task.is_saturated) {
      // What was learnt at saturation holds when it comes back, but for no longer than at first.
      care.patience = care.left = kMinPatience;
    } else {
      if (!view_.is_slow(t)) {
        take_care_of(t, lateness);
        note_kept(t, lateness);
      }
      allow_for_slow(t, lateness, over);
    }
    if (!task.is_saturated) continue;
    for (uint32_t f = 0; f < flows_.size(); ++f) {
      if (bound_ns_[f] <= 0 || !passes(f, t)) continue;
      const double share = std::min(care.share + care.slow_share, kMaxCare);
      care_ns_[f] = std::max(care_ns_[f], share * flows_[f].slo_ns);
    }
  }
}

}  // namespace batchplane::slo
