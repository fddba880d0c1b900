// SPDX-License-Identifier: BSD-3-Clause
// optimal_limits.cc - how old packets may get: what triggers leave room for, and the age limits that go with
// them (optimal_age.h has the laws).
#include <algorithm>

#include "slo/optimal/optimal.h"
#include "slo/optimal/optimal_age.h"

namespace batchplane::slo {
namespace {
constexpr double kQueueLoad = 0.7;   // load above which a queue may form at any time
constexpr double kQueuedRings = 30;  // of packets, where the load is carried beyond the SLOs
constexpr double kCutLoad = 0.95;    // of cut batches: carried whatever limits cut
}  // namespace

// How old packets may get in the task.
void Optimal::set_bounds() {
  const auto extra_ns = static_cast<double>(settings_.turnaround_extra_ns);
  for (uint32_t f = 0; f < flows_.size(); ++f) {
    const Flow& flow = flows_[f];
    const double slo_ns = flow.is_beyond_share ? 0 : flow.delay.slo_ns() * std::max(1.0, stretch_);
    const bool is_bound = slo_ns > 0 && !flow.is_waiting;
    bounds_ns_[f] = is_bound ? std::max(1.0, slo_ns - extra_ns - view_.egress_most_ns(f)) : 0;
  }
}

// Reserves the time that age limits take of each flow's budget, so that triggers are reached before
// limits.
void Optimal::reserve(const Evaluation& at) {
  set_bounds();
  // Below saturation arrivals are irregular, and limits are worth the batches that they cut.
  if (joint_.offered_pkts_per_ns > 0) return;
  reserve_for_ages(view_, at, bounds_ns_, chosen_);
}

// Load of the busiest worker with no batches where limits may cut them.
double Optimal::cut_load() {
  const Program& program = view_.program();
  Triggers cut = chosen_;
  for (uint32_t f = 0; f < flows_.size(); ++f) {
    if (bounds_ns_[f] == 0) continue;
    const ProgramFlow& flow = program.flows[f];
    for (uint32_t i = flow.modules_begin; i < flow.modules_end; ++i) {
      cut[program.flow_modules[i]] = 0;
    }
  }
  evaluate_at(cut, trial_);
  view_.predict_arrivals(chosen_);
  return bottleneck_ns(joint_, trial_) * joint_.offered_pkts_per_ns;
}

// Of its worker's time, with the chosen triggers.
double Optimal::load_of(uint32_t task) const {
  return at_.task_pkt_ns[task] * view_.program().tasks[task].rate_pkts_per_ns;
}

// Full rings of packets that age limits leave time for, where a queue may form.
double Optimal::queued_rings() {
  if (joint_.offered_pkts_per_ns <= 0) return 0;
  double most = 0;
  for (uint32_t t = 0; t < view_.program().tasks.size(); ++t) most = std::max(most, load_of(t));
  if (most <= kQueueLoad || cut_load() <= kCutLoad) return 0;
  // What waits outside makes the queue longer than the ring.
  return stretch_ > 1 ? kQueuedRings : 1;
}

double Optimal::least_slo_ns() const {
  double least_ns = kNoBudgetNs;
  for (const Flow& flow : flows_) {
    if (flow.delay.slo_ns() > 0) least_ns = std::min(least_ns, flow.delay.slo_ns());
  }
  return least_ns;
}

void Optimal::limit_ages() {
  Program& program = view_.program();
  set_bounds();
  for (uint32_t f = 0; f < flows_.size(); ++f) {
    // A flow whose SLO cannot be kept now bounds no limit.
    if (found_.solution.is_infeasible[f]) bounds_ns_[f] = 0;
  }
  const double rings = queued_rings();
  const double least_ns = least_slo_ns();
  // Age counts from entry into the ring, so it includes the wait there.
  for (uint32_t t = 0; t < program.tasks.size(); ++t) {
    ProgramTask& task = program.tasks[t];
    task.runs_waited = std::max(task.runs_waited, 1 + rings_.left_pkts(t) / task.run_pkts);
    // Limits that cut batches short whenever a queue forms make the queue longer, and then cut all
    // batches, if the load is more than is carried so.
    const double ring_ns = static_cast<double>(load_.ring_pkts()) * at_.task_pkt_ns[t];
    // What waits longer than an SLO is late anyway, so a ring that large need not be left time for.
    task.queue_ns = load_of(t) > kQueueLoad ? rings * std::min(ring_ns, least_ns) : 0;
  }
  evaluate(program, chosen_, trial_);
  const bool is_saturated = joint_.offered_pkts_per_ns <= 0;
  age_limits(view_, trial_, bounds_ns_, chosen_, is_saturated, limits_ns_);
  if (load_.window_pkts() == 0) return;
  // In a closed loop held packets arrive together: an age limit is only for packets that never
  // come.
  const bool has_slo = least_ns < kNoBudgetNs;
  std::ranges::fill(limits_ns_, has_slo ? static_cast<uint64_t>(least_ns) : exec::kStrandingAge);
}

}  // namespace batchplane::slo
