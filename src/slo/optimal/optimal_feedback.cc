// SPDX-License-Identifier: BSD-3-Clause
// optimal_feedback.cc - what measured delays and releases say about the model: bias, reserves,
// care, triggers out of reach.
#include <algorithm>
#include <cmath>
#include <utility>

#include "exec/percentiles.h"
#include "slo/optimal/optimal.h"

namespace batchplane::slo {
namespace {
constexpr double kBiasShare = 0.3;  // of what one period says
constexpr double kMaxBias = 0.25;   // of the SLO
constexpr double kFullShare = 0.8;  // of releases: below, limits hide how long filling takes
constexpr double kCapBelow = 0.5;   // share of full releases
constexpr double kUncapAbove = 0.9;
constexpr uint64_t kMinReleases = 16;     // of a buffer, for its causes to say anything
constexpr double kRateMoved = 0.2;        // a cap was for another rate
constexpr double kMaxExplained = 1.5;     // of what bias answers already
constexpr uint32_t kFirstSteps = 3;       // of a controller: it converges
constexpr double kMinHole = 0.05;         // of the SLO, on average: shorter ones delay nothing
constexpr double kForgetInBacklog = 0.9;  // of what late packets taught, a period
constexpr double kOutsideFactor = 2;      // measured over modelled delay: more is waiting outside
}  // namespace

// The model at the triggers in force, with the spread of runs that was seen.
void Optimal::evaluate_seen() {
  Program& program = view_.program();
  for (uint32_t t = 0; t < program.tasks.size(); ++t) {
    seen_scale_[t] = std::exchange(program.tasks[t].spread_scale, view_.spread_seen(t));
  }
  evaluate(program, view_.current(), model_now_);
  for (uint32_t t = 0; t < program.tasks.size(); ++t)
    program.tasks[t].spread_scale = seen_scale_[t];
}

// Packets that were inside while the machine held a worker up say nothing of triggers: of those
// that were late as many are left out as one hole may catch, its flow's share of two fills of the
// ring and what its buffers hold. The percentile is that of the others.
void Optimal::leave_out_held_up(const Snapshot& snapshot) {
  const Program& program = view_.program();
  without_held_up_ = snapshot.flows;
  for (uint32_t f = 0; f < flows_.size(); ++f) {
    exec::FlowPeriod& period = without_held_up_[f];
    if (period.slo_ns == 0 || period.late_pkts == 0) continue;
    double caught = 0;
    const ProgramFlow& row = program.flows[f];
    for (uint32_t i = row.tasks_begin; i < row.tasks_end; ++i) {
      const exec::TaskPeriod& task = snapshot.tasks[program.flow_tasks[i]];
      const auto gaps = static_cast<double>(task.gaps);
      if (static_cast<double>(task.gap_ns) < kMinHole * static_cast<double>(period.slo_ns) * gaps)
        continue;
      double inside = 2.0 * static_cast<double>(settings_.ring_pkts) *
                      static_cast<double>(period.pkts) /
                      std::max(1.0, static_cast<double>(task.in_pkts));
      for (uint32_t j = row.modules_begin; j < row.modules_end; ++j) {
        inside += view_.current()[program.flow_modules[j]];
      }
      caught += gaps * inside;
    }
    const auto left_out = std::min(period.late_pkts, static_cast<uint64_t>(caught));
    if (left_out == 0) continue;
    const double part = 1 - static_cast<double>(left_out) / static_cast<double>(period.pkts);
    if (settings_.percentile > 0 && settings_.percentile < 1) {
      const double wanted_pkts = settings_.percentile * part * static_cast<double>(period.pkts);
      const double ratio = exec::SloBuckets::ratio_above(wanted_pkts, period.slo_buckets);
      // Coarser than what is told, which it may not exceed.
      period.delay_ns = static_cast<uint64_t>(std::min(ratio * static_cast<double>(period.slo_ns),
                                                       static_cast<double>(period.delay_ns)));
    }
    period.pkts -= left_out;
    period.late_pkts -= left_out;
    if (period.late_pkts == 0) period.delay_max_ns = std::min(period.delay_max_ns, period.slo_ns);
  }
}

// Measured percentile against the model's, where filling was not cut short by an age limit and
// enough packets left.
void Optimal::correct_bias(const Snapshot& snapshot) {
  Program& program = view_.program();
  evaluate_seen();
  leave_out_held_up(snapshot);
  for (uint32_t f = 0; f < flows_.size(); ++f) {
    const exec::FlowPeriod& period = without_held_up_[f];
    FlowMemory& flow = flows_[f];
    const auto slo_ns = static_cast<double>(period.slo_ns);
    if (period.pkts > 0 && flow.is_saturated != is_saturated(f)) {
      flow.is_saturated = !flow.is_saturated;
      std::swap(flow.bias, flow.other_bias);
    }
    if (slo_ns != flow.slo_ns)
      flow.bias.ns = std::clamp(flow.bias.ns, -kMaxBias * slo_ns, kMaxBias * slo_ns);
    const bool was_for_slo = has_decided_ && slo_ns == flow.slo_ns;
    flow.slo_ns = slo_ns_[f] = slo_ns;
    flow.has_other_slo = !was_for_slo;
    flow.lateness = 0;
    bound_ns_[f] = 0;
    const bool has_enough =
        exec::has_percentile(period.pkts, std::min(settings_.percentile, 0.999));
    flow.measured_ns = has_enough ? static_cast<double>(period.delay_ns) : 0;
    is_backlogged_[f] = is_waiting_outside(f);
    flow.seen_turnaround_ns = 0;
    const bool is_rest =
        std::exchange(flow.was_backlogged, is_backlogged_[f]) && period.late_pkts > 0;
    flow.is_excused = is_backlogged_[f] || is_rest || is_freed_[f] || period.egress.is_beyond_share;
    if (slo_ns == 0) continue;
    if (is_backlogged_[f]) {
      bound_ns_[f] = slo_ns;
      forget_in_backlog(f);
    } else if (flow.is_excused) {
      bound_ns_[f] = bound_of(f);
    } else {
      reserve(period, f, was_for_slo);
      learn_bias(snapshot, f);
      flow.seen_turnaround_ns = turnaround_of(model_now_, f);
    }
    bound_ns_[f] = std::max(0.0, bound_ns_[f] - view_.egress_most_ns(f));
    if (period.egress.is_beyond_share) bound_ns_[f] = 0;
    flow.free_budget_ns = program.flows[f].budget_ns;
    program.flows[f].budget_ns -= flow.bias.ns;
  }
}

void Optimal::learn_bias(const Snapshot& snapshot, uint32_t f) {
  const Program& program = view_.program();
  FlowMemory& flow = flows_[f];
  uint64_t full = 0;
  uint64_t all = 0;
  const ProgramFlow& row = program.flows[f];
  for (uint32_t i = row.modules_begin; i < row.modules_end; ++i) {
    const uint32_t m = view_.segments()[program.flow_modules[i]].head;
    const auto& causes = snapshot.modules[m].causes;
    full += causes[static_cast<uint32_t>(exec::Cause::kFull)].firings;
    for (const auto& cause : causes) all += cause.firings;
  }
  const bool is_censored = static_cast<double>(full) < kFullShare * static_cast<double>(all);
  const double extra_ns = static_cast<double>(settings_.turnaround_extra_ns);
  const double error_ns = flow.measured_ns - extra_ns - model_now_.delay_ns[f];
  // What was learnt without buffers says little of what they do: the first period with them
  // counts whole, however it began.
  const bool is_first =
      is_saturated(f) && (!flow.bias.is_known || (all > 0 && !flow.bias.is_of_held));
  const bool was_quiet = was_settled_ || (!has_decided_ && is_saturated(f));
  const bool is_above = is_saturated(f) && error_ns > flow.bias.ns;
  if (flow.measured_ns <= 0 || is_slow(f) || !(is_above || (was_quiet && !is_censored))) return;
  // What was late before anything was known of it is answered by what is learnt from it.
  if (is_first && all > 0 && steps_ < kFirstSteps) flow.lateness = 0;
  // Too many late packets leave no time for smoothing; what is then known of the model is no
  // reason for care as well.
  const bool is_late = error_ns > flow.bias.ns && flow.lateness > 1;
  if (is_late) flow.lateness = std::min(flow.lateness, kMaxExplained);
  flow.bias.ns += (is_first || is_late ? 1 : kBiasShare) * (error_ns - flow.bias.ns);
  flow.bias.is_known = true;
  flow.bias.is_of_held |= all > 0;
  flow.bias.ns = std::clamp(flow.bias.ns, -kMaxBias * flow.slo_ns, kMaxBias * flow.slo_ns);
}

// Nothing confirms any more what costs rate, and too low a rate is what keeps a backlog.
void Optimal::forget_in_backlog(uint32_t f) {
  FlowMemory& flow = flows_[f];
  if (flow.bias.ns > 0) flow.bias.ns *= kForgetInBacklog;
  flow.reserve_ns *= kForgetInBacklog;
}

double Optimal::turnaround_of(const Evaluation& at, uint32_t f) const {
  const Program& program = view_.program();
  double turnaround_ns = 0;
  for (uint32_t i = program.flows[f].tasks_begin; i < program.flows[f].tasks_end; ++i) {
    turnaround_ns += at.turnaround_ns[program.flow_tasks[i]];
  }
  return turnaround_ns;
}

// Most of what the model is wrong by is where in its own run a packet leaves, so less of it is left
// where runs get shorter.
void Optimal::scale_bias(const Evaluation& at) {
  for (uint32_t f = 0; f < flows_.size(); ++f) {
    const FlowMemory& flow = flows_[f];
    if (flow.bias.ns >= 0 || flow.slo_ns <= 0 || flow.seen_turnaround_ns <= 0) continue;
    if (!is_saturated(f)) continue;
    const double scale = std::min(1.0, turnaround_of(at, f) / flow.seen_turnaround_ns);
    view_.program().flows[f].budget_ns = flow.free_budget_ns - scale * flow.bias.ns;
  }
}

// More came than could be served: packets are late before they are polled. Releasing them at once
// would only make batches small, and the backlog grow; nothing is learnt of the model from their
// delays.
bool Optimal::is_waiting_outside(uint32_t f) const {
  const double measured_ns = flows_[f].measured_ns;
  return is_saturated(f) && flows_[f].slo_ns > 0 && measured_ns > flows_[f].slo_ns &&
         measured_ns > kOutsideFactor * model_now_.delay_ns[f];
}

bool Optimal::is_saturated(uint32_t f) const {
  const Program& program = view_.program();
  const ProgramFlow& row = program.flows[f];
  for (uint32_t i = row.tasks_begin; i < row.tasks_end; ++i) {
    if (program.tasks[program.flow_tasks[i]].is_saturated) return true;
  }
  return false;
}

// A trigger that age releases beat most of the time is out of reach: the mean batch is what there
// is. Not at saturation: there smaller batches make turnaround longer, that leaves limits less
// time, and batches shrink further.
void Optimal::cap_unreached(const Snapshot& snapshot) {
  Program& program = view_.program();
  for (uint32_t h = 0; h < heads_.size(); ++h) {
    const exec::ModulePeriod& period = snapshot.modules[view_.segments()[h].head];
    HeadMemory& head = heads_[h];
    const auto& full = period.causes[static_cast<uint32_t>(exec::Cause::kFull)];
    const auto& aged = period.causes[static_cast<uint32_t>(exec::Cause::kAge)];
    const uint64_t releases = full.firings + aged.firings;
    const double rate =
        rate_of(program, program.modules[h], model_now_.task_pkt_ns[program.modules[h].task]);
    const uint32_t limit = model_.batch_limit_pkts;
    const bool is_steady = std::abs(rate - head.rate) <= kRateMoved * head.rate;
    const bool is_saturated = program.tasks[program.modules[h].task].is_saturated;
    if (!is_steady || is_saturated) head.cap_pkts = limit;
    head.rate = rate;
    if (is_steady && !is_saturated && was_settled_ && releases >= kMinReleases) {
      const double share = static_cast<double>(full.firings) / static_cast<double>(releases);
      if (share < kCapBelow) {
        const double mean =
            static_cast<double>(full.pkts + aged.pkts) / static_cast<double>(releases);
        head.cap_pkts = std::clamp<uint32_t>(static_cast<uint32_t>(std::lround(mean)), 1, limit);
      } else if (share > kUncapAbove && head.cap_pkts < limit) {
        head.cap_pkts = std::min(limit, head.cap_pkts + std::max(1U, head.cap_pkts / 4));
      }
    }
    program.modules[h].max_pkts = std::min(program.modules[h].max_pkts, head.cap_pkts);
  }
}

}  // namespace batchplane::slo
