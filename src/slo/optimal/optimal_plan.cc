// SPDX-License-Identifier: BSD-3-Clause
// optimal_plan.cc - triggers and ring credits for the offered load: with every SLO kept or, if that
// does not carry the load, with the SLOs stretched as little as possible.
//
// solve:       with the ring credit in force, or with another one.
// carry:       with SLOs as they are, without margins, or stretched.
// plan:        from the highest rate, or the one offered; first buffers alone, too (plan_nested).
// solve_with:  triggers, rates and arrivals in turn.
#include <algorithm>
#include <cmath>
#include <utility>

#include "slo/optimal/optimal.h"

namespace batchplane::slo {
namespace {
constexpr uint32_t kMaxPlans = 3;   // rounds of triggers, and of the rates and arrivals that follow
constexpr double kSameRate = 0.01;  // relative change of the rate that ends the rounds
constexpr double kWorthAnother = 1.02;  // factor gained; for less, ring credits do not change
// Of the time a flow may take: still kept, as rounds are not exact.
constexpr double kAlmost = 1.02;
constexpr uint32_t kManyLate = 4;     // periods in a row
constexpr double kFullLoad = 1.0;     // load of the busiest worker
constexpr double kDrainLoad = 0.995;  // of the best rate: the most that draining may use
// Factors on the SLOs, without margins.
constexpr double kStretches[] = {1, 1.05, 1.1, 1.2, 1.35, 1.5, 2, 3, 5, 10, 30};
}  // namespace

void Optimal::wait_in_rings(double rate_pkts_per_ns) {
  rings_.set_rate(rate_pkts_per_ns);
  const Program& program = view_.program();
  for (size_t f = 0; f < flows_.size(); ++f) {
    flows_[f].ring_ns = 0;
    for (uint32_t i = program.flows[f].tasks_begin; i < program.flows[f].tasks_end; ++i) {
      flows_[f].ring_ns += rings_.wait_ns(program.flow_tasks[i]);
    }
  }
}

// Number of runs between a packet's arrival and the end of its own run. If the whole load is
// carried, each poll empties the ring.
void Optimal::wait_for_runs(bool is_all_carried) {
  std::vector<ProgramTask>& tasks = view_.program().tasks;
  for (uint32_t t = 0; t < tasks.size(); ++t) {
    const double left_pkts = is_all_carried ? 0 : load_.left_pkts(t);
    tasks[t].runs_waited = 2 + left_pkts / tasks[t].run_pkts;
  }
}

double Optimal::may_take_ns(uint32_t f) const {
  const FlowDelay& delay = flows_[f].delay;
  if (stretch_ > 0) return delay.slo_ns() * stretch_;
  // Below saturation larger batches gain only idle time: not worth the risk of coming closer.
  const bool may_come_closer = load_.is_saturated() && !flows_[f].is_excused;
  return margin_.most_ns(delay.slo_ns(), may_come_closer ? delay.usual_ns() : 0);
}

void Optimal::set_budgets(double rate_pkts_per_ns) {
  wait_in_rings(rate_pkts_per_ns);
  for (uint32_t f = 0; f < flows_.size(); ++f) {
    const Flow& flow = flows_[f];
    ProgramFlow& row = view_.program().flows[f];
    row.least_turnaround_ns = 0;
    row.budget_ns = kNoBudgetNs;
    if (flow.delay.slo_ns() <= 0 || flow.is_beyond_share) continue;
    row.budget_ns =
        (may_take_ns(f) - view_.egress_beyond_mean_ns(f)) / flow.delay.ratio() - beside_ns(f);
  }
}

// In a closed loop a held packet waits for packets that it would have waited behind: the delay is
// window / rate, whatever the fills. Two buffers on one path would wait for each other's packets,
// so the window is held in one place, where a batch costs most.
void Optimal::close_loop() {
  if (load_.window_pkts() == 0) return;
  Program& program = view_.program();
  std::vector<bool> may_hold(program.modules.size(), false);
  for (ProgramFlow& flow : program.flows) {
    flow.budget_ns = kNoBudgetNs;
    const auto begin = program.flow_modules.begin() + flow.modules_begin;
    const auto end = program.flow_modules.begin() + flow.modules_end;
    const auto dearest = std::max_element(begin, end, [&](uint32_t a, uint32_t b) {
      return program.modules[a].cost_per_batch_ns < program.modules[b].cost_per_batch_ns;
    });
    if (dearest != end) may_hold[*dearest] = true;
  }
  for (size_t v = 0; v < program.modules.size(); ++v) {
    const uint32_t most_pkts = may_hold[v] ? load_.window_pkts() : 0;
    program.modules[v].max_pkts = std::min(program.modules[v].max_pkts, most_pkts);
  }
}

// The highest rate for the batches that arrive now, whatever is late: full batches where they pay.
double Optimal::best_rate() {
  const Program& program = view_.program();
  Triggers full;
  for (const ProgramModule& module : program.modules) {
    full.push_back(holding_pays(program, module, module.max_pkts) ? module.max_pkts : 0);
  }
  evaluate(program, full, trial_);
  return 1 / std::max(1e-9, bottleneck_ns(joint_, trial_));
}

// Starts from the last solution of this search.
void Optimal::solve_with(Search& search, double rate_pkts_per_ns) {
  Program& program = view_.program();
  double rate = rate_pkts_per_ns;
  chosen_ = search.chosen;
  for (uint32_t h = 0; h < chosen_.size(); ++h) {
    if (program.modules[h].max_pkts == 0) chosen_[h] = 0;
  }
  view_.predict_arrivals(chosen_);
  for (uint32_t round = 0; round < kMaxPlans; ++round) {
    set_rate(joint_, rate, program);
    evaluate(program, chosen_, trial_);
    set_budgets(rate);
    reserve(trial_);
    close_loop();
    found_ = solve_joint(joint_, rate, program, search.solver);
    const bool is_same = chosen_ == found_.solution.triggers_pkts;
    chosen_ = found_.solution.triggers_pkts;
    const bool has_moved = view_.predict_arrivals(chosen_);
    const double last = std::exchange(rate, found_.rate_pkts_per_ns);
    const bool is_same_rate = std::abs(rate - last) <= kSameRate * last;
    // A new rate alone changes only the waits in rings.
    if (!has_moved && (is_same_rate || (is_same && !rings_.any()))) break;
  }
  search.chosen = chosen_;
  // Arrivals may have outgrown a trigger: bypassed then, so that no batch is cut.
  for (uint32_t h = 0; h < chosen_.size(); ++h) {
    if (!is_holding(program.modules[h], chosen_[h])) chosen_[h] = 0;
  }
  found_.solution.triggers_pkts = chosen_;
  evaluate(program, chosen_, at_);
}

// The quantity that the best triggers minimise: the load, or at saturation the busiest worker's
// time.
double Optimal::cost_of(const Evaluation& at) const {
  return joint_.offered_pkts_per_ns > 0 ? at.load : bottleneck_ns(joint_, at);
}

// The program at the plan's rate and weights, and its triggers.
void Optimal::adopt_plan() {
  set_rate(joint_, found_.rate_pkts_per_ns, view_.program());
  set_weights(found_.weights, view_.program());
  take(found_.solution.triggers_pkts);
  set_budgets(found_.rate_pkts_per_ns);
  reserve(at_);
  close_loop();
  evaluate_delays(view_.program(), at_);
}

// Takes back a plan that had been given up for another one.
void Optimal::restore(JointSolution found) {
  found_ = std::move(found);
  adopt_plan();
}

// Takes these triggers at the rate of the plan, though it had others. They leave out no flow.
void Optimal::adopt_triggers(Triggers triggers_pkts) {
  found_.solution.triggers_pkts = std::move(triggers_pkts);
  found_.solution.is_infeasible.assign(flows_.size(), false);
  adopt_plan();
}

// The first buffers alone, full where that pays: nothing else that they could do costs less. So this settles
// it if the plan costs no more or, at saturation, if they are in time. False if the first buffers have to be
// planned.
bool Optimal::is_settled_by_full_outer() {
  const bool is_known = joint_.offered_pkts_per_ns > 0;
  if (is_known) {
    // Where some triggers do not carry the load, plans are compared at different rates.
    evaluate_at(Triggers(chosen_.size(), 0), trial_);
    view_.predict_arrivals(chosen_);
    if (!carries(trial_)) return false;
  }
  const auto cheapest = view_.cheapest_outer();
  if (!cheapest || std::ranges::all_of(*cheapest, [](double pkts) { return pkts == 0; })) {
    return false;
  }
  evaluate(view_.program(), *cheapest, trial_);
  const bool is_kept = found_.solution.n_left_out() == 0;
  const bool is_settled = is_kept && cost_of(trial_) >= cost_of(at_);
  if (is_settled || is_known) {
    view_.predict_arrivals(chosen_);
    return is_settled;
  }
  const double outer_ns = bottleneck_ns(joint_, trial_);
  JointSolution mine = found_;
  found_.rate_pkts_per_ns = 1 / std::max(1e-9, outer_ns);
  std::ranges::fill(found_.solution.prices, 0.0);  // no budget limits it
  adopt_triggers(*cheapest);
  if (keep_budgets(at_)) return true;
  restore(std::move(mine));
  return false;
}

// Batches collected upstream arrive larger behind, which the program ignores while it chooses. So
// buffers behind others may look worth their delay though the first ones alone would do: plans with
// these alone, too, and keeps the better plan.
void Optimal::plan_nested(double rate_pkts_per_ns) {
  if (is_settled_by_full_outer()) return;
  const double cost = cost_of(at_);
  JointSolution both = std::move(found_);
  view_.allow_nested(false);
  solve_with(outer_, rate_pkts_per_ns);
  view_.allow_nested(true);
  evaluate(view_.program(), chosen_, at_);
  const size_t misses = found_.solution.n_left_out();
  const size_t both_miss = both.solution.n_left_out();
  if (misses < both_miss || (misses == both_miss && cost_of(at_) < cost)) return;
  restore(std::move(both));
}

// At saturation starts from the highest rate, where rings and fills take least.
void Optimal::plan(uint32_t credit_batches) {
  const double offered = joint_.offered_pkts_per_ns;
  wait_for_runs(offered > 0);
  rings_.set_credit(credit_batches);
  const double rate = offered > 0 ? offered : best_rate();
  solve_with(all_, rate);
  if (view_.has_nested()) plan_nested(rate);
}

bool Optimal::carries(const Evaluation& at) const {
  return bottleneck_ns(joint_, at) * joint_.offered_pkts_per_ns <= kFullLoad;
}

// Whether all arrivals were carried and no flow was late, whatever the model says.
bool Optimal::is_fine_as_it_is() const {
  const bool is_kept = std::ranges::all_of(flows_, [](const Flow& flow) {
    const FlowDelay& delay = flow.delay;
    return !flow.is_excused && !delay.has_other_slo() && !delay.is_late() &&
           (delay.slo_ns() <= 0 || delay.measured_ns() <= delay.slo_ns());
  });
  return is_kept && carries(in_force_);
}

// Packets that are not carried wait outside and make everything ever later. So where no triggers
// carry the whole load within the SLOs, flows are late by as little as the load allows. Where no
// triggers carry it at all, the packets that are carried are in time.
void Optimal::carry() {
  const double offered = load_.offered_pkts_per_ns();
  joint_.offered_pkts_per_ns = offered;
  if (offered > 0 && load_.drain_pkts_per_ns() > 0) {
    joint_.offered_pkts_per_ns =
        std::min(offered + load_.drain_pkts_per_ns(), std::max(offered, kDrainLoad * best_rate()));
  }
  plan_stretched(0);
  if (carries(at_)) return give_up_margins();
  if (is_fine_as_it_is()) {
    // At the rate that is carried, not at the lower rate of the plan.
    joint_.offered_pkts_per_ns = found_.rate_pkts_per_ns = offered;
    return adopt_triggers(view_.current());
  }
  if (joint_.offered_pkts_per_ns <= best_rate()) {
    for (const double stretch : kStretches) {
      plan_stretched(stretch);
      if (carries(at_)) return;
    }
  }
  joint_.offered_pkts_per_ns = 0;
  plan_stretched(0);
  give_up_margins();
}

// Tries without margins before it leaves a flow out: there may be triggers that keep its SLO. Those in force
// do not, if they were late.
void Optimal::give_up_margins() {
  if (found_.solution.n_left_out() == 0) return;
  JointSolution mine = found_;
  plan_stretched(1);
  if (found_.solution.n_left_out() < mine.solution.n_left_out() && !stays_late()) return;
  stretch_ = 0;
  restore(std::move(mine));
}

void Optimal::plan_stretched(double stretch) {
  stretch_ = stretch;
  plan(rings_.in_force());
}

// Modelled over allowed delay, of the flow nearest to its SLO or farthest past it.
double Optimal::lateness() const {
  double worst = 0;
  for (uint32_t f = 0; f < flows_.size(); ++f) {
    const FlowDelay& delay = flows_[f].delay;
    if (delay.slo_ns() <= 0) continue;
    const double takes_ns =
        delay.ratio() * (at_.delay_ns[f] + beside_ns(f)) + view_.egress_beyond_mean_ns(f);
    worst = std::max(worst, takes_ns / std::max(1.0, may_take_ns(f)));
  }
  return worst;
}

// An SLO was broken, and the plan leaves everything as it is.
bool Optimal::stays_late() const { return is_any_late() && chosen_ == view_.current(); }

// With this ring credit: no triggers help, or those that should have not.
bool Optimal::is_stuck() const { return stays_late() || late_in_a_row_ >= kManyLate; }

bool Optimal::is_any_late() const {
  return std::ranges::any_of(flows_, [](const Flow& flow) { return flow.delay.is_late(); });
}

// A credit in vain goes back together with the triggers that were in force with the one before.
bool Optimal::take_credit_back() {
  const auto back = rings_.way_back(!is_any_late(), is_stuck(), load_.rate_pkts_per_ns());
  if (!back) return false;
  rings_.set_credit(back->credit_batches);
  adopt_triggers(back->triggers_pkts);
  return true;
}

// Plans with another credit; false where the plan at hand is no worse.
bool Optimal::gains_with(uint32_t other) {
  const uint32_t mine_credit = rings_.in_force();
  const double mine_late = lateness();
  const double least_pps =
      kWorthAnother * found_.rate_pkts_per_ns * (1 - rings_.waste(mine_credit));
  const bool was_met = (mine_late <= kAlmost && !is_stuck()) || is_fine_as_it_is();
  if (was_met && best_rate() * (1 - rings_.waste(other)) <= least_pps) return false;
  plan(other);
  const double late = lateness();
  const bool is_faster = found_.rate_pkts_per_ns * (1 - rings_.waste(other)) > least_pps;
  const bool is_met = late <= kAlmost;
  const bool is_later_still = !is_met && kWorthAnother * late >= mine_late;
  if (was_met ? !is_met || !is_faster : is_later_still) return false;
  if (is_fine_as_it_is()) {
    rings_.leave({mine_credit, view_.current(), load_.rate_pkts_per_ns()});
  }
  return true;
}

void Optimal::solve() {
  carry();
  // What teaches nothing about triggers teaches nothing about credits.
  if (is_any_excused() || take_credit_back()) return;
  const uint32_t other = rings_.other_to_look_at(load_.is_saturated(), is_stuck());
  if (other == 0) return;
  JointSolution mine = found_;
  // Credits are compared with margins kept: without any, the larger one may seem to keep all SLOs, too. But
  // where the load is known and not carried so, a credit that keeps SLOs does not carry it either.
  const double stretch = stretch_;
  if (joint_.offered_pkts_per_ns <= 0) stretch_ = 0;
  if (gains_with(other)) return;
  stretch_ = stretch;
  rings_.set_credit(rings_.in_force());
  restore(std::move(mine));
}

}  // namespace batchplane::slo
