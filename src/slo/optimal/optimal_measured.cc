// SPDX-License-Identifier: BSD-3-Clause
// optimal_measured.cc - what was measured against what the model says: back to the fastest triggers
// known where the solved ones would be slower, and a little beyond them where delays leave room.
#include <algorithm>
#include <cmath>
#include <utility>

#include "exec/promise.h"
#include "slo/optimal/optimal.h"

namespace batchplane::slo {
namespace {
constexpr double kMaxIdleShare = 0.04;   // share of time: beyond, the rate is not made by triggers
constexpr uint32_t kFreeSteps = 3;       // of a controller: it converges
constexpr double kFewAllowed = 10;       // late packets of a period
constexpr double kCountedAllowed = 25;   // for chance to be known
constexpr double kLateABatch = 8;        // of them in a batch
constexpr double kRetreat = 0.85;        // of what is held, after a period that was late
constexpr double kRetreatAtRisk = 0.95;  // and after one that was not, by luck
constexpr double kWorthProbing = 0.01;   // of the load
constexpr uint32_t kProbeEvery = 8;      // steps, after one that found nothing

}  // namespace

// Of few packets one batch that is late says little.
bool Optimal::is_late_beyond_chance(const exec::FlowPeriod& period) const {
  if (!exec::is_slo_broken(period, settings_.percentile)) return false;
  const double allowed = exec::allowed_late_pkts(period.pkts, settings_.percentile);
  return settings_.percentile <= 0 || allowed >= kFewAllowed ||
         static_cast<double>(period.late_pkts) > allowed + std::sqrt(kLateABatch * allowed);
}

// What the period's triggers carried, and whether within all promises.
void Optimal::observe_rate(const Snapshot& snapshot) {
  const Program& program = view_.program();
  RateGuard::Period seen{.is_comparable = true, .is_kept = true};
  double in_pkts = 0;
  double busy_ns = 0;
  double idle_ns = 0;
  bool any_saturated = false;
  for (uint32_t t = 0; t < snapshot.tasks.size(); ++t) {
    const exec::TaskPeriod& task = snapshot.tasks[t];
    in_pkts += static_cast<double>(task.in_pkts);
    if (!program.tasks[t].is_saturated) continue;
    any_saturated = true;
    busy_ns += static_cast<double>(task.busy_ns);
    idle_ns += static_cast<double>(task.idle_ns);
    const auto gap_ns = std::min(task.gap_ns, snapshot.period_ns / 2);
    seen.rate +=
        static_cast<double>(task.in_pkts) / static_cast<double>(snapshot.period_ns - gap_ns);
  }
  // What is learnt of costs moves with the batches that it is learnt from; traffic does not.
  const bool latches = !guard_.has_points();
  if (latches) weights_ns_.clear();
  size_t m = 0;
  for (const exec::ModulePeriod& module : snapshot.modules) {
    const double cost_ns = cost_line(module).ns(1);
    if (latches) weights_ns_.push_back(cost_ns);
    const double share = static_cast<double>(module.pkts) / std::max(1.0, in_pkts);
    seen.work_ns += share * weights_ns_[m++];
    seen.costs_ns += share * cost_ns;
  }
  for (uint32_t f = 0; f < flows_.size(); ++f) {
    const exec::FlowPeriod& period = without_held_up_[f];
    seen.is_kept &= !is_late_beyond_chance(period);
    const double allowed = exec::allowed_late_pkts(period.pkts, settings_.percentile);
    const bool is_counted =
        period.slo_ns > 0 && allowed >= kCountedAllowed && settings_.percentile > 0;
    // Chance has holes in it, too: what they make late leaves less to triggers.
    const auto late = static_cast<double>(snapshot.flows[f].late_pkts);
    seen.late.push_back(is_counted ? late / allowed : 0);
    seen.chance.push_back(is_counted ? kLateABatch / allowed : 0);
    if (has_decided_) seen.has_other_slos |= flows_[f].has_other_slo;
    seen.is_excused |= flows_[f].is_excused;
  }
  for (uint32_t t = 0; t < snapshot.tasks.size(); ++t) seen.is_excused |= view_.is_slow(t);
  seen.is_comparable &= any_saturated && idle_ns <= kMaxIdleShare * (busy_ns + idle_ns);
  in_force_.resize(heads_.size());
  in_force_ns_.resize(heads_.size());
  for (uint32_t h = 0; h < heads_.size(); ++h) {
    in_force_[h] = static_cast<uint32_t>(view_.current()[h]);
    in_force_ns_[h] = heads_[h].age_limit_ns;
  }
  guard_.observe(seen, in_force_, in_force_ns_);
}

// Everything that belongs to a decision, for triggers that were not solved for.
void Optimal::choose(const std::vector<uint32_t>& triggers_pkts) {
  chosen_ = triggers_pkts;
  view_.predict_arrivals(chosen_);
  as_real_.assign(chosen_.begin(), chosen_.end());
  evaluate(view_.program(), as_real_, model_chosen_);
}

namespace {
double rate_at(const Program& program, const Evaluation& at) {
  double rate = 0;
  for (size_t t = 0; t < program.tasks.size(); ++t) {
    if (program.tasks[t].is_saturated && at.task_pkt_ns[t] > 0) rate += 1 / at.task_pkt_ns[t];
  }
  return rate;
}
}  // namespace

// Triggers around those of the last period, with budgets that are not the model's but what was
// measured there: a share of what delays left, all of what they were too long. The model only says
// what follows from there.
const std::vector<double>& Optimal::go_from_measured(double share) {
  Program& program = view_.program();
  kept_flows_ = program.flows;
  for (ProgramFlow& flow : program.flows) flow.holding_ns = 0;
  as_real_.assign(in_force_.begin(), in_force_.end());
  evaluate(program, as_real_, model_now_);
  for (size_t f = 0; f < flows_.size(); ++f) {
    double& budget_ns = program.flows[f].budget_ns;
    if (budget_ns == kNoBudgetNs) continue;
    const double measured_ns = flows_[f].measured_ns;
    const double room_ns =
        measured_ns > 0 ? slo_ns_[f] * (1 - settings_.tolerance) - measured_ns : 0;
    budget_ns = model_now_.delay_ns[f] + (room_ns > 0 ? share : 1) * room_ns;
  }
  const std::vector<double>& triggers = solver_.adjusted(program, in_force_, share > 0);
  program.flows = kept_flows_;
  evaluate(program, triggers, model_now_);
  return triggers;
}

// The fastest triggers, raised as far as a part of what measured delays leave: whatever the model
// thinks of these delays, by its slopes more would fit.
bool Optimal::probe() {
  if (steps_ < next_probe_) return false;
  const std::vector<double>& raised = go_from_measured(guard_.probe_share());
  if (model_now_.load > (1 - kWorthProbing) * model_chosen_.load) {
    next_probe_ = steps_ + kProbeEvery;
    return false;
  }
  moved_.assign(raised.begin(), raised.end());
  guard_.probe(moved_, rate_at(view_.program(), model_now_));
  choose(moved_);
  return true;
}

// A little less of what was in force, and was late, unless what is solved promises more: what
// measured delays demand, or where that leaves too little, a part of all that is held.
bool Optimal::retreat() {
  const Program& program = view_.program();
  const double solved = rate_at(program, model_chosen_);
  // While it learns most, and where nothing was late yet.
  const bool prefers_solved = steps_ < kFreeSteps || guard_.was_kept();
  const auto may_go = [&] {
    const double predicted = rate_at(program, model_now_);
    return moved_ != in_force_ && (!prefers_solved || predicted >= solved) &&
           guard_.retreat(moved_, predicted);
  };
  const std::vector<double>& lowered = go_from_measured(0);
  moved_.assign(lowered.begin(), lowered.end());
  bool goes = may_go();
  if (!goes) {
    const double part = guard_.was_kept() ? kRetreatAtRisk : kRetreat;
    for (size_t h = 0; h < in_force_.size(); ++h) {
      const ProgramModule& module = program.modules[h];
      const double a = module.arriving_pkts;
      const double lower = std::floor(a + part * (in_force_[h] - a));
      const bool holds = in_force_[h] > 0 && is_holding(module, lower);
      moved_[h] = holds ? static_cast<uint32_t>(lower) : 0;
    }
    as_real_.assign(moved_.begin(), moved_.end());
    evaluate(program, as_real_, model_now_);
    goes = may_go();
  }
  if (goes) choose(moved_);
  return goes;
}

// The model proposes; what was measured to be faster, within all promises, stays in force or comes
// back. Where even that leaves room, a little more is tried.
void Optimal::guard_rate() {
  const bool is_first = steps_ < kFreeSteps;
  // Where the machine takes time away, late packets say more of that than of triggers.
  if (!is_disturbed() && guard_.may_retreat() && retreat()) return;
  if (!guard_.accepts(chosen_, rate_at(view_.program(), model_chosen_), is_first)) {
    choose(guard_.best()->triggers_pkts);
    is_left_out_.assign(flows_.size(), false);
  }
  if (!is_disturbed() && !is_first && guard_.may_probe()) probe();
}

}  // namespace batchplane::slo
