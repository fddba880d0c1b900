// SPDX-License-Identifier: BSD-3-Clause
#include "slo/optimal/optimal.h"

#include <algorithm>
#include <cmath>

#include "exec/promise.h"

namespace batchplane::slo {
namespace {
constexpr uint32_t kFirstRounds = 3;         // of triggers and arrivals that follow from them
constexpr uint32_t kLaterRounds = 2;         // the next period goes on
constexpr double kKeepWithin = 0.01;         // of the best load: what is in force stays
constexpr double kNoise = 0.05;              // of a budget, and of a task's time per packet
constexpr uint32_t kFewStepsUnsolved = 8;    // after triggers have moved
constexpr uint32_t kMaxStepsUnsolved = 128;  // twice as many each time that they do not
constexpr double kFarBehind = 0.05;          // of a load
constexpr uint32_t kOuterEvery = 32;         // solves
constexpr double kIdleLoad = 0.85;           // without buffers: above, they are worth having
constexpr double kLimitLower = 0.01;  // relative change of an age limit that is worth a change
constexpr double kLimitHigher = 0.05;
constexpr uint32_t kMaxLulls = 50;      // periods of two loads at once: then they are the load
constexpr uint32_t kMinRaise = 2;       // packets a step, of a trigger at saturation
constexpr uint32_t kRaiseFraction = 8;  // and one in so many of it
constexpr uint64_t kFewLate = 8;        // packets: what one batch may be
}  // namespace

std::unique_ptr<Controller> make_optimal(const Model& model, const Settings& settings) {
  return std::make_unique<Optimal>(model, settings);
}

Optimal::Optimal(const Model& model, const Settings& settings)
    : model_(model),
      settings_(settings),
      view_(model, settings_),
      chosen_(view_.segments().size(), 0),
      limits_ns_(view_.segments().size(), exec::kStrandingAge),
      slo_ns_(model.flows.size(), 0),
      bound_ns_(model.flows.size(), 0),
      seen_scale_(model.tasks.size(), 1),
      is_left_out_(model.flows.size(), false),
      is_backlogged_(model.flows.size(), false),
      is_freed_(model.flows.size(), false),
      overloads_(model.tasks.size()),
      care_ns_(model.flows.size(), 0),
      cares_(model.tasks.size()),
      times_(model.tasks.size()),
      flows_(model.flows.size()),
      heads_(view_.segments().size()),
      max_unsolved_(kFewStepsUnsolved) {
  solver_.prepare(view_.program());
  outer_solver_.prepare(view_.program());
  overload_solver_.prepare(view_.program());
  for (HeadMemory& head : heads_) head.cap_pkts = model.batch_limit_pkts;
}

// Input that comes and goes within periods, or that a period has none of: what was chosen at
// saturation stays, for when it comes back. Age limits keep the promises meanwhile.
bool Optimal::is_lull(const Snapshot& snapshot) {
  bool leaves_out = has_decided_ && view_.is_lull(snapshot);
  bool any = false;
  for (const exec::TaskPeriod& task : snapshot.tasks) any |= task.in_pkts > 0;
  for (uint32_t f = 0; leaves_out && f < flows_.size(); ++f) {
    leaves_out = static_cast<double>(snapshot.flows[f].slo_ns) == flows_[f].slo_ns;
  }
  for (uint32_t h = 0; leaves_out && h < chosen_.size(); ++h) {
    leaves_out = snapshot.modules[view_.segments()[h].head].trigger_pkts == chosen_[h];
  }
  if (!leaves_out) lulls_ = 0;
  return leaves_out && !(any && ++lulls_ > kMaxLulls);
}

void Optimal::note_gaps(const Snapshot& snapshot) {
  const bool any = std::ranges::any_of(snapshot.tasks, [](const auto& t) { return t.gaps > 0; });
  since_gap_ = any ? 0 : std::min(since_gap_ + 1, kGapsCount);
}

bool Optimal::is_late_by_more_than_a_batch(const Snapshot& snapshot) const {
  return std::ranges::any_of(snapshot.flows, [&](const exec::FlowPeriod& flow) {
    return flow.late_pkts > kFewLate && exec::is_slo_broken(flow, settings_.percentile);
  });
}

// Whether what was chosen is in force, keeps all budgets, and nothing that it was chosen by has
// moved by more than noise: then the same would be chosen again, or something so close to it that
// it would not be put into force.
bool Optimal::is_still_solved() {
  const Program& program = view_.program();
  if (!has_decided_ || is_rising_ || steps_since_solved_ >= max_unsolved_ ||
      solved_delay_ns_.empty() || std::ranges::find(is_left_out_, true) != is_left_out_.end() ||
      !std::ranges::equal(chosen_, view_.current())) {
    return false;
  }
  evaluate(program, view_.current(), model_now_);
  reserve_for_ages(view_, model_now_, bound_ns_, care_ns_, is_backlogged_, chosen_);
  evaluate_delays(program, model_now_);
  for (size_t t = 0; t < program.tasks.size(); ++t) {
    if (std::abs(model_now_.task_pkt_ns[t] - solved_pkt_ns_[t]) > kNoise * solved_pkt_ns_[t]) {
      return false;
    }
  }
  for (size_t f = 0; f < flows_.size(); ++f) {
    const double budget_ns = program.flows[f].budget_ns;
    if (budget_ns == kNoBudgetNs && solved_budget_ns_[f] == kNoBudgetNs) continue;
    const double max_ns = kNoise * solved_budget_ns_[f];
    // Of few packets the rate, and with it what filling takes, is known less well.
    const auto pkts = static_cast<double>(std::max<uint64_t>(1, without_held_up_[f].pkts));
    const double chance_ns = solved_budget_ns_[f] / std::sqrt(pkts);
    if (!(std::abs(budget_ns - solved_budget_ns_[f]) <= max_ns) ||
        std::abs(model_now_.delay_ns[f] - solved_delay_ns_[f]) > max_ns + chance_ns ||
        model_now_.delay_ns[f] > budget_ns + settings_.tolerance / 2 * slo_ns_[f]) {
      return false;
    }
  }
  for (uint32_t h = 0; h < chosen_.size(); ++h) {
    const ProgramModule& module = program.modules[h];
    if (chosen_[h] > module.max_pkts) return false;
    if (chosen_[h] > 0 && !is_holding(module, chosen_[h])) return false;
  }
  return true;
}

// Triggers; where batches collected upstream arrive larger downstream, again with those.
void Optimal::solve_with(Solver& solver, uint32_t rounds) {
  for (uint32_t round = 0; round < rounds; ++round) {
    as_real_.assign(chosen_.begin(), chosen_.end());
    evaluate(view_.program(), as_real_, model_chosen_);
    scale_bias(model_chosen_);
    reserve_for_ages(view_, model_chosen_, bound_ns_, care_ns_, is_backlogged_, chosen_);
    chosen_ = solver.solve(view_.program()).triggers_pkts;
    const bool has_moved = view_.predict_arrivals(chosen_);
    if (!has_moved && rounds == kLaterRounds) break;
  }
  // Arrivals may have outgrown a trigger: no batch is cut.
  for (uint32_t h = 0; h < chosen_.size(); ++h) {
    if (!is_holding(view_.program().modules[h], chosen_[h])) chosen_[h] = 0;
  }
  solution_ = solver.solution();
  as_real_.assign(chosen_.begin(), chosen_.end());
  evaluate(view_.program(), as_real_, model_chosen_);
}

// Outer buffers alone were far behind when they were tried last, and nothing is missed with all of
// them: they need not be tried each time.
bool Optimal::may_do_without_nested() {
  const bool any_misses =
      std::ranges::find(solution_.is_infeasible, true) != solution_.is_infeasible.end();
  if (any_misses || outer_load_ <= (1 + kFarBehind) * model_chosen_.load) return true;
  return ++solves_without_outer_ >= kOuterEvery;
}

// What is collected upstream arrives larger behind, which the program does not know while it
// chooses: buffers behind others may look worth their delay though the first ones alone would do.
void Optimal::try_without_nested() {
  other_chosen_ = chosen_;
  other_solution_ = solution_;
  const double load = model_chosen_.load;
  view_.allow_nested(false);
  for (uint32_t h = 0; h < chosen_.size(); ++h) {
    if (view_.program().modules[h].max_pkts == 0) chosen_[h] = 0;
  }
  view_.predict_arrivals(chosen_);
  solve_with(outer_solver_, kLaterRounds);
  view_.allow_nested(true);
  evaluate(view_.program(), as_real_, model_chosen_);
  const auto misses = [](const Solution& solution) {
    return std::ranges::count(solution.is_infeasible, true);
  };
  solves_without_outer_ = 0;
  outer_load_ = model_chosen_.load;
  const auto mine = misses(solution_);
  const auto others = misses(other_solution_);
  if (mine < others || (mine == others && model_chosen_.load < load)) return;
  std::swap(chosen_, other_chosen_);
  std::swap(solution_, other_solution_);
  view_.predict_arrivals(chosen_);
  // Budgets follow what was chosen, too.
  as_real_.assign(chosen_.begin(), chosen_.end());
  evaluate(view_.program(), as_real_, model_chosen_);
  scale_bias(model_chosen_);
  reserve_for_ages(view_, model_chosen_, bound_ns_, care_ns_, is_backlogged_, chosen_);
  evaluate_delays(view_.program(), model_chosen_);
}

void Optimal::solve() {
  if (has_decided_) view_.predict_arrivals(chosen_);
  if (is_still_solved()) {
    ++steps_since_solved_;
    std::swap(model_chosen_, model_now_);
    return;
  }
  steps_since_solved_ = 0;
  const bool goes_on =
      has_decided_ || view_.has_nested();  // nested: outer ones follow in this step
  solve_with(solver_, goes_on ? kLaterRounds : kFirstRounds);
  if (view_.has_nested() && may_do_without_nested()) try_without_nested();
  is_left_out_ = solution_.is_infeasible;
  keep_what_fits();
  const bool stays = std::ranges::equal(chosen_, view_.current());
  max_unsolved_ = stays ? std::min(2 * max_unsolved_, kMaxStepsUnsolved) : kFewStepsUnsolved;
  solved_delay_ns_ = model_chosen_.delay_ns;
  solved_pkt_ns_ = model_chosen_.task_pkt_ns;
  solved_budget_ns_.resize(flows_.size());
  for (size_t f = 0; f < flows_.size(); ++f) {
    solved_budget_ns_[f] = view_.program().flows[f].budget_ns;
  }
}

// Where others collect than those that were chosen, arrivals behind them are others, too.
void Optimal::evaluate_with_arrivals(const std::vector<double>& triggers_pkts) {
  bool has_same = true;
  for (uint32_t h = 0; h < chosen_.size(); ++h) {
    has_same &= (triggers_pkts[h] > 0) == (chosen_[h] > 0);
  }
  other_chosen_.assign(triggers_pkts.begin(), triggers_pkts.end());
  if (!has_same) view_.predict_arrivals(other_chosen_);
  evaluate(view_.program(), triggers_pkts, model_now_);
}

// What is in force stays where it keeps all budgets (half the margin is there for this) at nearly
// the best load: then noise in the counts changes nothing. Where a flow does not keep its own, what
// it passes is set anew.
bool Optimal::fits_as_it_is() {
  const Program& program = view_.program();
  const auto is_within = [&](size_t f) {
    const double margin_ns = settings_.tolerance / 2 * slo_ns_[f];
    return slo_ns_[f] <= 0 || model_now_.delay_ns[f] <= program.flows[f].budget_ns + margin_ns;
  };
  evaluate_with_arrivals(view_.current());
  std::vector<double>& mixed = mixed_;
  mixed = view_.current();
  for (uint32_t h = 0; h < mixed.size(); ++h) {
    const ProgramModule& module = program.modules[h];
    const bool cuts = mixed[h] > 0 && !is_holding(module, mixed[h]);
    if (cuts || mixed[h] > module.max_pkts) mixed[h] = chosen_[h];
  }
  for (size_t f = 0; f < flows_.size(); ++f) {
    if (is_within(f)) continue;
    for (uint32_t i = program.flows[f].modules_begin; i < program.flows[f].modules_end; ++i) {
      const uint32_t h = program.flow_modules[i];
      mixed[h] = chosen_[h];
    }
  }
  if (mixed != view_.current()) evaluate_with_arrivals(mixed);
  for (size_t f = 0; f < flows_.size(); ++f) {
    if (!is_within(f)) return false;
  }
  return model_now_.load <= (1 + kKeepWithin) * model_chosen_.load;
}

void Optimal::keep_what_fits() {
  if (!has_decided_ || std::ranges::find(is_left_out_, true) != is_left_out_.end()) return;
  const bool fits = fits_as_it_is();
  if (fits) {
    chosen_ = other_chosen_;
    std::swap(model_chosen_, model_now_);
  }
  view_.predict_arrivals(chosen_);
}

// At saturation packets are late by the batch as soon as buffers reach their age limits. Where the
// machine takes time away, what a step finds worth more is tried a little at a time, so that the
// first late packets say where to stop.
void Optimal::raise_gently() {
  const Program& program = view_.program();
  is_rising_ = false;
  if (!has_decided_ || !is_disturbed()) return;
  for (const FlowMemory& flow : flows_) {
    if (flow.has_other_slo) return;
  }
  for (uint32_t h = 0; h < chosen_.size(); ++h) {
    const auto current = static_cast<uint32_t>(view_.current()[h]);
    if (current == 0 || !program.tasks[program.modules[h].task].is_saturated) continue;
    const uint32_t gently = current + std::max(kMinRaise, current / kRaiseFraction);
    const uint32_t most = std::max(gently, heads_[h].kept_pkts);
    if (chosen_[h] <= most) continue;
    chosen_[h] = most;
    is_rising_ = true;
  }
  if (!is_rising_) return;
  as_real_.assign(chosen_.begin(), chosen_.end());
  evaluate(program, as_real_, model_chosen_);
}

// An idle core that fires its buffers at once collects nothing in them: what is held costs more
// than it saves, as long as the load fits without.
void Optimal::bypass_where_idle() {
  if (!settings_.releases_when_idle) return;
  const Program& program = view_.program();
  as_real_.assign(chosen_.size(), 0);
  evaluate(program, as_real_, model_now_);
  bool any = false;
  for (uint32_t h = 0; h < chosen_.size(); ++h) {
    const uint32_t t = program.modules[h].task;
    const double load = model_now_.task_pkt_ns[t] * program.tasks[t].rate_pkts_per_ns;
    if (program.tasks[t].is_saturated || load > kIdleLoad || chosen_[h] == 0) continue;
    chosen_[h] = 0;
    any = true;
  }
  if (!any) return;
  as_real_.assign(chosen_.begin(), chosen_.end());
  evaluate(program, as_real_, model_chosen_);
}

void Optimal::limit_ages() {
  // What cannot be kept now bounds nothing.
  unbounded_ = is_left_out_;
  leave_time_for_queues();
  for (size_t f = 0; f < unbounded_.size(); ++f) unbounded_[f] = unbounded_[f] || is_backlogged_[f];
  age_limits(view_, model_chosen_, bound_ns_, unbounded_, chosen_, limits_ns_);
  // What was measured was measured with its limits.
  const bool is_measured = guard_.choice() == RateGuard::Choice::kMeasured;
  if (is_measured && guard_.best() != nullptr) limits_ns_ = guard_.best()->limits_ns;
}

void Optimal::change(const Snapshot& snapshot, Decision& decision) {
  for (uint32_t h = 0; h < chosen_.size(); ++h) {
    const uint32_t m = view_.segments()[h].head;
    const exec::ModulePeriod& period = snapshot.modules[m];
    const uint32_t old = period.trigger_pkts;
    const uint32_t now = chosen_[h];
    HeadMemory& head = heads_[h];
    const auto limit = static_cast<double>(limits_ns_[h]);
    const auto old_limit = static_cast<double>(head.age_limit_ns);
    const bool moves_limit = limit < old_limit * (1 - kLimitLower) ||
                             limit > old_limit * (1 + kLimitHigher) ||
                             (limit > 0) != (old_limit > 0) ||
                             (old_limit > 0 && period.age_limit_ns != head.age_limit_ns);
    head.trigger_pkts = now;
    if (now == old && (now == 0 || !moves_limit)) continue;
    const char* reason = "age";
    if (now != old)
      reason = old == 0 ? "hold" : now == 0 ? "bypass" : now > old ? "raise" : "lower";
    if (guard_.choice() == RateGuard::Choice::kMeasured) reason = "measured";
    if (guard_.choice() == RateGuard::Choice::kProbe) reason = "probe";
    if (guard_.choice() == RateGuard::Choice::kRetreat) reason = "retreat";
    // A bypassed buffer holds nothing: its limit is set when it holds again.
    if (now > 0) head.age_limit_ns = limits_ns_[h];
    if (now == 0) head.age_limit_ns = exec::kStrandingAge;
    decision.changes.push_back({m, now, now > 0 ? limits_ns_[h] : exec::kStrandingAge, reason});
  }
}

void Optimal::remember(const Snapshot& snapshot, const Decision& decision) {
  was_settled_ = true;
  for (const exec::BufferChange& change : decision.changes) {
    was_settled_ &= change.trigger_pkts == snapshot.modules[change.module].trigger_pkts;
  }
  has_decided_ = true;
  ++steps_;
  has_changed_ |= !decision.changes.empty();
}

Decision Optimal::step(const Snapshot& snapshot) {
  Decision decision;
  const bool is_between = is_lull(snapshot);
  if (is_between && !is_late_by_more_than_a_batch(snapshot)) {
    judge(snapshot, decision);
    return decision;
  }
  note_gaps(snapshot);
  view_.count(snapshot);
  note_overload(snapshot);
  learn_holding(snapshot);
  view_.weigh(snapshot, is_between);
  correct_bias(snapshot);
  take_care();
  cap_unreached(snapshot);
  observe_rate(snapshot);
  if (waits_for_whole_period(snapshot)) {
    judge(snapshot, decision);
    return decision;
  }
  if (!look_without(snapshot)) {
    solve();
    if (carry_first()) {
      guard_.set_aside();
    } else {
      raise_gently();
      bypass_where_idle();
      guard_rate();
    }
  }
  expect_holding();
  limit_ages();
  judge(snapshot, decision);
  change(snapshot, decision);
  remember(snapshot, decision);
  return decision;
}

}  // namespace batchplane::slo
