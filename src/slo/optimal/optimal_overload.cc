// SPDX-License-Identifier: BSD-3-Clause
// optimal_overload.cc - a core that is saturated with triggers too small for what comes stays so,
// and its runs are as long as they get. What comes is carried first; then it is known how much it
// is, runs are short, and promises may be kept that could not be at saturation.
#include <algorithm>

#include "slo/optimal/optimal.h"

namespace batchplane::slo {
namespace {
// By the model, whose costs may be a tenth too high: beyond, a plan is not even tried.
constexpr double kMaxLoad = 1.15;  // Overload::max_load as it begins
constexpr double kMinMaxLoad = 0.8;
constexpr double kDoubtful = 0.85;  // below, a plan did not fail for its load
constexpr double kAtRisk = 0.7;     // beyond, a queue may come up any time
constexpr double kLowered = 0.97;   // of a load that was too much
constexpr double kRaised = 0.03;    // what is tried beyond, later and later
constexpr double kHopeless = 2;     // of the SLO: so far from it short runs do not help
// Until a try: periods in a row that promises cannot be kept, those without holes for ten.
constexpr uint32_t kOutBefore = 50;
constexpr uint32_t kOutUndisturbed = 10;
constexpr uint32_t kDisturbedFor = 3;  // periods of a backlog that a disturbed machine explains
constexpr uint32_t kTries = 4;         // periods
constexpr uint32_t kMinTryWait = 50;   // periods, after tries that failed
constexpr uint32_t kMaxTryWait = 5000;
constexpr uint32_t kMinLoadWait = 300;     // periods until a load that was too much is tried
constexpr double kWorthStretching = 0.02;  // of the load
constexpr uint32_t kHopelessWait = 16;     // periods
constexpr double kStretches[] = {1.1, 1.2, 1.35, 1.5, 2, 3, 5};  // of the SLOs
}  // namespace

// Before the period is weighed: an input that is empty at times after all of it was carried says
// how much comes. When it never is any more, what was planned was too slow.
void Optimal::note_overload(const Snapshot& snapshot) {
  for (uint32_t t = 0; t < overloads_.size(); ++t) {
    Overload& overload = overloads_[t];
    const exec::TaskPeriod& period = snapshot.tasks[t];
    if (period.in_pkts == 0) {
      overload.backlogged = overload.out = 0;
      continue;
    }
    overload.is_full = view_.is_input_full(snapshot, t);
    const bool is_disturbed_now = period.gaps > 0 || view_.is_slow(t);
    overload.calm = is_disturbed_now ? 0 : std::min(overload.calm + 1, kCalmPeriods);
    if (overload.is_known && overload.is_full) {
      overload.is_known = false;
      if (!overload.is_disturbed() && overload.load > kDoubtful) plan_less(overload);
    } else if (overload.is_carrying && !overload.is_full) {
      overload.is_known = true;
      overload.tries = overload.left = overload.patience = 0;
    } else if (overload.is_known && overload.max_load < kMaxLoad && --overload.load_left == 0) {
      overload.max_load += kRaised;
      overload.load_left = overload.load_patience;
    }
    view_.take_rate_as_known(t, overload.is_known);
  }
}

void Optimal::plan_less(Overload& overload) {
  const double less = std::min(overload.max_load, kLowered * overload.load);
  overload.max_load = std::max(kMinMaxLoad, less);
  overload.load_patience = std::clamp(2 * overload.load_patience, kMinLoadWait, kMaxTryWait);
  overload.load_left = overload.load_patience;
}

// Other promises are kept or missed by other plans.
void Optimal::forget_failures(Overload& overload) {
  overload.max_load = kMaxLoad;
  overload.load_left = overload.load_patience = 0;
  overload.tries = overload.left = overload.patience = 0;
  overload.hopeless_left = 0;
}

// Whether a task's flows are freed of their promises, since none of its triggers would keep them,
// or all that leaves is late anyway.
bool Optimal::must_carry(uint32_t t) {
  const Program& program = view_.program();
  Overload& overload = overloads_[t];
  bool any_out = false;
  bool any_backlogged = false;
  for (uint32_t f = 0; f < flows_.size(); ++f) {
    if (!passes(f, t)) continue;
    if (flows_[f].has_other_slo) forget_failures(overload);
    // What is kept all the same needs no help.
    any_out |= is_left_out_[f] && is_late_beyond_chance(without_held_up_[f]) &&
               model_chosen_.delay_ns[f] < kHopeless * slo_ns_[f];
    any_backlogged |= is_backlogged_[f];
  }
  if (!program.tasks[t].is_saturated) overload.out = 0;
  if (!program.tasks[t].is_saturated || !overload.is_full) {
    overload.backlogged = 0;
    return false;
  }
  overload.backlogged = any_backlogged ? overload.backlogged + 1 : 0;
  // What a hole or a slow moment left waiting is gone soon.
  if (any_backlogged) return !overload.is_disturbed() || overload.backlogged > kDisturbedFor;
  if (!any_out) {
    overload.tries = overload.out = 0;
    return false;
  }
  overload.out += overload.is_disturbed() ? 1 : kOutUndisturbed;
  if (overload.out < kOutBefore) return false;
  if (overload.left > 0) {
    --overload.left;
    return false;
  }
  if (++overload.tries <= kTries) return true;
  // More comes than the core can carry at all, or as much as it takes.
  overload.tries = 0;
  overload.left = overload.patience = std::clamp(2 * overload.patience, kMinTryWait, kMaxTryWait);
  return false;
}

// Limits that cut batches short wherever a queue comes up make it longer, and then cut all of them.
void Optimal::leave_time_for_queues() {
  Program& program = view_.program();
  for (uint32_t t = 0; t < overloads_.size(); ++t) {
    const Overload& overload = overloads_[t];
    const bool is_at_risk = overload.is_known && overload.load > kAtRisk;
    program.tasks[t].queue_ns =
        is_at_risk ? static_cast<double>(settings_.ring_pkts) * model_chosen_.task_pkt_ns[t] : 0;
  }
}

bool Optimal::carry_first() {
  const Program& program = view_.program();
  is_freed_.assign(flows_.size(), false);
  bool any = false;
  for (uint32_t t = 0; t < overloads_.size(); ++t) {
    const ProgramTask& task = program.tasks[t];
    const double other_pkt_ns = task.other_run_ns / task.run_pkts;
    const bool is_unknown = overloads_[t].other_pkt_ns <= 0;
    if (overloads_[t].is_full && (is_unknown || !overloads_[t].is_disturbed())) {
      overloads_[t].other_pkt_ns = other_pkt_ns;
    }
    overloads_[t].is_carrying = must_carry(t);
    if (!overloads_[t].is_carrying) continue;
    any = true;
    for (uint32_t f = 0; f < flows_.size(); ++f) {
      if (is_left_out_[f] || is_backlogged_[f]) is_freed_[f] = is_freed_[f] || passes(f, t);
    }
  }
  if (!any) return stretch_budgets();
  solve_stretched(0);
  plans_too_much();
  return true;
}

// Other budgets for the flows that are freed, so many SLOs more; none at all with 0.
void Optimal::solve_stretched(double more) {
  Program& program = view_.program();
  kept_flows_ = program.flows;
  for (size_t f = 0; f < flows_.size(); ++f) {
    if (!is_freed_[f] || slo_ns_[f] <= 0) continue;
    ProgramFlow& flow = program.flows[f];
    flow.budget_ns = more > 0 ? kept_flows_[f].budget_ns + more * slo_ns_[f] : kNoBudgetNs;
    if (more <= 0) flow.holding_ns = 0;
  }
  const uint32_t rounds = view_.has_nested() ? 2 : 1;
  for (uint32_t round = 0; round < rounds; ++round) {
    chosen_ = overload_solver_.solve(program).triggers_pkts;
    view_.predict_arrivals(chosen_);
  }
  for (uint32_t h = 0; h < chosen_.size(); ++h) {
    if (!is_holding(program.modules[h], chosen_[h])) chosen_[h] = 0;
  }
  as_real_.assign(chosen_.begin(), chosen_.end());
  evaluate(program, as_real_, model_chosen_);
  program.flows = kept_flows_;
  solved_delay_ns_.clear();  // of another problem
}

// Runs get longer as the load grows, and what each costs is shared by more packets.
double Optimal::planned_load(uint32_t t) const {
  const ProgramTask& task = view_.program().tasks[t];
  const double spared_ns =
      std::max(0.0, task.other_run_ns / task.run_pkts - overloads_[t].other_pkt_ns);
  return (model_chosen_.task_pkt_ns[t] - spared_ns) * task.rate_pkts_per_ns;
}

// Of tasks of which is known what comes; their loads are noted.
bool Optimal::plans_too_much() {
  bool any = false;
  for (uint32_t t = 0; t < overloads_.size(); ++t) {
    Overload& overload = overloads_[t];
    if (!overload.is_known) continue;
    overload.load = planned_load(t);
    any |= overload.load > overload.max_load;
  }
  return any;
}

// Where what comes is known to be more than the promises allow to carry, all are late by the least
// that carries it: what is not carried waits outside, and makes everything late by ever more.
bool Optimal::stretch_budgets() {
  const Program& program = view_.program();
  if (!plans_too_much()) return false;
  bool any = false;
  for (uint32_t t = 0; t < overloads_.size(); ++t) {
    Overload& overload = overloads_[t];
    if (!overload.is_known || overload.load <= overload.max_load) continue;
    if (overload.hopeless_left > 0) {
      --overload.hopeless_left;
      continue;
    }
    any = true;
    for (uint32_t f = 0; f < flows_.size(); ++f) is_freed_[f] = is_freed_[f] || passes(f, t);
  }
  if (!any) return false;
  unstretched_ = chosen_;
  const double load_before = model_chosen_.load;
  double more = 0;
  for (const double stretch : kStretches) {
    more = stretch - 1;
    solve_stretched(more);
    if (!plans_too_much()) break;
  }
  if (plans_too_much() && !is_worth_stretching(load_before)) return false;
  for (uint32_t f = 0; f < flows_.size(); ++f) {
    const bool is_over = model_chosen_.delay_ns[f] > program.flows[f].budget_ns;
    is_freed_[f] = is_freed_[f] && slo_ns_[f] > 0 && is_over;
    if (is_freed_[f]) bound_ns_[f] += more * slo_ns_[f];
  }
  return true;
}

// Where not even the longest budgets carry what comes, they must carry more at least: else all
// would be late for nothing. What was solved comes back then.
bool Optimal::is_worth_stretching(double load_before) {
  if (model_chosen_.load <= (1 - kWorthStretching) * load_before) return true;
  choose(unstretched_);
  plans_too_much();
  is_freed_.assign(flows_.size(), false);
  for (Overload& overload : overloads_) {
    if (overload.is_known && overload.load > overload.max_load) {
      overload.hopeless_left = kHopelessWait;
    }
  }
  return false;
}

}  // namespace batchplane::slo
