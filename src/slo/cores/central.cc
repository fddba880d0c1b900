// SPDX-License-Identifier: BSD-3-Clause
#include "slo/cores/central.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "exec/promise.h"
#include "slo/optimal/optimal_age.h"

namespace batchplane::slo {
namespace {

constexpr double kSaturatedIdle = 0.02;  // idle share of the busiest worker
constexpr double kStep = 0.3;            // of a ratio towards the measured one
constexpr double kMinRatio = 0.5;
constexpr double kMaxRatio = 3;
constexpr uint64_t kFewPkts = 100;     // of a flow in a period: fewer say little of a percentile
constexpr double kKeepWithin = 0.002;  // of a rate: triggers move for no less
constexpr double kSameRate = 0.01;     // rounds of a step end there
constexpr uint32_t kMaxSolves = 3;
// One batch that is being put in beside one that is being taken out.
constexpr uint32_t kUsualCredit = 2;
constexpr uint32_t kMostCredit = Central::kMaxCreditBatches;
constexpr double kWorthAnother = 1.02;  // of a rate: rings change for no less
constexpr double kAlmost = 1.02;        // of what a flow may take: rounds of a step end near it
constexpr uint32_t kDwellPeriods = 4;   // until another credit is looked at
constexpr uint32_t kMostDwellPeriods = 4096;
constexpr double kForgotten = 0.999;  // of a loss, each period in which another credit is in force
// Kept back of an SLO after a period in which it was broken; given back so slowly that one period in
// 250 may be.
constexpr double kCareUp = 0.02;
constexpr double kCareDown = kCareUp / 249;
constexpr double kMaxCare = 0.4;

}  // namespace

Central::Central(const Model& model, const Settings& settings)
    : model_(model),
      settings_(settings),
      view_(model, settings_),
      flows_(model.flows.size()),
      bounds_ns_(model.flows.size()),
      is_fed_(model.tasks.size()),
      holds_back_(model.tasks.size()),
      is_full_(model.tasks.size()),
      input_pkts_(model.tasks.size()),
      ring_pkts_(model.tasks.size()),
      ring_ns_(model.tasks.size()),
      age_ns_(view_.segments().size(), exec::kStrandingAge),
      triggers_(view_.segments().size(), 0) {
  for (size_t t = 0; t < model.tasks.size(); ++t) {
    is_fed_[t] = std::ranges::any_of(
        model.tasks[t].inputs, [&](uint32_t input) { return !model.modules[input].has_buffer; });
  }
  for (const exec::ControlInput& input : model.inputs) {
    if (input.holds_back) holds_back_[input.task] = true;
  }
  for (const exec::ControlTask& task : model.tasks) joint_.worker_of_task.push_back(task.worker);
  solver_.prepare(view_.program());
}

// What joins the tasks in this period. False: nothing came.
bool Central::join(const Snapshot& snapshot) {
  const auto entered = static_cast<double>(exec::entered_pkts(model_, snapshot));
  if (entered <= 0 || snapshot.period_ns == 0) return false;
  double offered = 0;
  bool is_waiting = false;  // more comes than is taken
  window_pkts_ = 0;
  for (size_t i = 0; i < std::min(model_.inputs.size(), snapshot.inputs.size()); ++i) {
    if (model_.inputs[i].is_queue) continue;
    const exec::InputPeriod& input = snapshot.inputs[i];
    offered += static_cast<double>(input.offered_pkts);
    is_waiting |= input.lost_pkts != 0 || input.backlog_pkts != 0;
    window_pkts_ += model_.inputs[i].window_pkts;
  }
  const auto period_ns = static_cast<double>(snapshot.period_ns);
  rate_pkts_per_ns_ = entered / period_ns;
  joint_.visits.assign(model_.tasks.size(), 0);
  least_idle_ = 1;
  for (size_t t = 0; t < model_.tasks.size(); ++t) {
    const exec::TaskPeriod& task = snapshot.tasks[t];
    joint_.visits[t] = static_cast<double>(task.in_pkts) / entered;
    const auto idle = static_cast<double>(task.idle_ns);
    const double all = idle + static_cast<double>(task.busy_ns);
    is_full_[t] = all > 0 && idle < kSaturatedIdle * all;
    // A worker that takes whatever is there may always be busy, and still carry more at a time.
    is_waiting |=
        is_fed_[t] && task.in_pkts != 0 && view_.is_input_full(snapshot, static_cast<uint32_t>(t));
    if (all > 0) least_idle_ = std::min(least_idle_, idle / all);
  }
  is_saturated_ = window_pkts_ != 0 || is_waiting;
  joint_.offered_pkts_per_ns = is_saturated_ ? 0 : std::max(offered, entered) / period_ns;
  return true;
}

// Which rings never are empty: those before a worker that is always busy, and where it holds its
// feeders back, those before them.
void Central::count_rings(const Snapshot& snapshot) {
  std::ranges::fill(input_pkts_, 0.0);
  for (ProgramTask& task : view_.program().tasks) task.runs_waited = 2;
  for (size_t i = 0; is_saturated_ && i < std::min(model_.inputs.size(), snapshot.inputs.size());
       ++i) {
    const exec::ControlInput& input = model_.inputs[i];
    if (input.is_queue) continue;
    input_pkts_[input.task] = std::max(input_pkts_[input.task], snapshot.inputs[i].fill_mean_pkts);
  }
  const Program& program = view_.program();
  for (const ProgramFlow& flow : program.flows) {
    bool holds_back = false;
    for (uint32_t i = flow.tasks_end; i-- > flow.tasks_begin;) {
      const uint32_t task = program.flow_tasks[i];
      if (holds_back) is_full_[task] = true;
      holds_back = is_full_[task] && holds_back_[task];
    }
  }
}

// What packets wait there is a term of its own: the credit decides it, and the rate at which the
// ring is emptied.
void Central::set_credit(uint32_t batches) {
  credit_batches_ = batches;
  ring_pkts_ = input_pkts_;
  for (const exec::ControlInput& input : model_.inputs) {
    if (!input.is_queue) continue;
    const uint32_t credit_pkts = credit_of(input);
    const uint32_t waiting_pkts = credit_pkts - std::min(credit_pkts, model_.batch_limit_pkts);
    if (is_full_[input.task]) ring_pkts_[input.task] = waiting_pkts;
  }
}

uint32_t Central::credit_of(const exec::ControlInput& input) const {
  return std::min(input.size_pkts, credit_batches_ * model_.batch_limit_pkts);
}

void Central::wait_in_rings(double rate_pkts_per_ns) {
  for (size_t t = 0; t < ring_ns_.size(); ++t) {
    const double rate = joint_.visits[t] * rate_pkts_per_ns;
    ring_ns_[t] = rate > 0 ? ring_pkts_[t] / rate : 0;
  }
  const Program& program = view_.program();
  for (size_t f = 0; f < flows_.size(); ++f) {
    flows_[f].ring_ns = 0;
    for (uint32_t i = program.flows[f].tasks_begin; i < program.flows[f].tasks_end; ++i) {
      flows_[f].ring_ns += ring_ns_[program.flow_tasks[i]];
    }
  }
}

// How far the model is off at the triggers in force, with rings as they were: not in a period that
// began with others.
void Central::learn(const Snapshot& snapshot) {
  set_credit(std::max(credit_in_force_, 1U));
  if (!is_fresh_ && is_saturated_) {
    for (double& waste : waste_) waste *= kForgotten;
    waste_[credit_in_force_] += kStep * (least_idle_ - waste_[credit_in_force_]);
  }
  wait_in_rings(rate_pkts_per_ns_);
  set_rate(joint_, rate_pkts_per_ns_, view_.program());
  evaluate(view_.program(), view_.current(), in_force_);
  for (uint32_t f = 0; f < flows_.size(); ++f) {
    const exec::FlowPeriod& period = snapshot.flows[f];
    Flow& flow = flows_[f];
    flow.slo_ns = static_cast<double>(period.slo_ns);
    flow.measured_ns = static_cast<double>(period.delay_ns);
    const double modelled_ns = in_force_.delay_ns[f] + flow.ring_ns + view_.egress_took_ns(f);
    if (!is_fresh_ && exec::is_slo_broken(period, settings_.percentile)) {
      flow.care = std::min(kMaxCare, flow.care + kCareUp);
    } else {
      flow.care = std::max(0.0, flow.care - kCareDown);
    }
    if (is_fresh_ || period.pkts < kFewPkts || period.slo_ns == 0 || modelled_ns <= 0) continue;
    const double ratio = std::clamp(flow.measured_ns / modelled_ns, kMinRatio, kMaxRatio);
    flow.ratio += kStep * (ratio - flow.ratio);
  }
}

void Central::set_budgets(double rate_pkts_per_ns) {
  wait_in_rings(rate_pkts_per_ns);
  for (uint32_t f = 0; f < flows_.size(); ++f) {
    const Flow& flow = flows_[f];
    if (flow.slo_ns <= 0) continue;
    double& budget_ns = view_.program().flows[f].budget_ns;
    // A flow that sends more than its share of a link waits there anyway.
    if (budget_ns == kNoBudgetNs) continue;
    const double may_take_ns = flow.slo_ns * (1 - settings_.tolerance - flow.care);
    budget_ns =
        (may_take_ns - view_.egress_ns(f)) / flow.ratio - flow.ring_ns - view_.egress_took_ns(f);
  }
}

// In a closed loop packets that are held wait for those that they would have waited behind: a
// delay is the window over the rate, whatever the fills. Two buffers on one way would wait for
// packets of each other: the window is held together where a batch costs most.
void Central::close_loop() {
  if (window_pkts_ == 0) return;
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
    const uint32_t most_pkts = may_hold[v] ? window_pkts_ : 0;
    program.modules[v].max_pkts = std::min(program.modules[v].max_pkts, most_pkts);
  }
}

// How many batches a ring may hold: the fewer, the less packets wait, and the more workers wait for
// each other. What they lose by that is measured; of credits that were never tried it is taken as
// nothing, so that the next larger and the next smaller one are tried where the model sees a gain.
void Central::solve() {
  const bool has_rings = is_saturated_ && !model_.legs.all.empty();
  const uint32_t now = has_rings && credit_in_force_ != 0 ? credit_in_force_ : kUsualCredit;
  solve_at_credit(now);
  // What a credit is worth shows in a few periods; then the two beside it are looked at in turn.
  ++credit_periods_;
  if (!is_saturated_) dwell_periods_ = kDwellPeriods;
  if (!has_rings || credit_periods_ < dwell_periods_) return;
  const uint32_t other = credit_periods_ % 2 == 0 ? now / 2 : now * 2;
  if (other == 0 || other > kMostCredit) return;
  const JointSolution mine = found_;
  const double mine_late = lateness();
  const double least_pps = kWorthAnother * mine.rate_pkts_per_ns * (1 - waste_[now]);
  solve_at_credit(other);
  const double late = lateness();
  const bool is_faster = found_.rate_pkts_per_ns * (1 - waste_[other]) > least_pps;
  const bool is_met = late <= kAlmost;
  const bool was_met = mine_late <= kAlmost;
  if (is_met && (!was_met || is_faster)) return;
  if (!is_met && !was_met && kWorthAnother * late < mine_late) return;
  set_credit(now);
  set_budgets(mine.rate_pkts_per_ns);
  set_rate(joint_, mine.rate_pkts_per_ns, view_.program());
  (void)view_.predict_arrivals(mine.solution.triggers_pkts);
  found_ = mine;
}

// Of the flow that is nearest to its SLO, or the farthest past it: modelled delay over what it may
// take.
double Central::lateness() const {
  double worst = 0;
  for (uint32_t f = 0; f < flows_.size(); ++f) {
    const Flow& flow = flows_[f];
    if (flow.slo_ns <= 0) continue;
    const double may_take_ns = flow.slo_ns * (1 - settings_.tolerance - flow.care);
    const double takes_ns =
        flow.ratio * (found_.solution.model.delay_ns[f] + flow.ring_ns + view_.egress_took_ns(f)) +
        view_.egress_ns(f);
    worst = std::max(worst, takes_ns / std::max(1.0, may_take_ns));
  }
  return worst;
}

// From the highest rate that any triggers have, at which rings and fills take least: down to one at
// which what is left of the budgets buys no more.
void Central::solve_at_credit(uint32_t credit_batches) {
  set_credit(credit_batches);
  Program& program = view_.program();
  double rate = rate_pkts_per_ns_;
  if (is_saturated_) {
    std::vector<double> largest;
    for (const ProgramModule& module : program.modules) largest.push_back(module.max_pkts);
    evaluate(program, largest, trial_);
    rate = 1 / std::max(1e-9, bottleneck_ns(joint_, trial_));
  }
  for (uint32_t i = 0; i < kMaxSolves; ++i) {
    set_budgets(rate);
    close_loop();
    found_ = solve_joint(joint_, rate, program, solver_);
    const bool has_moved = view_.predict_arrivals(found_.solution.triggers_pkts);
    const double last = std::exchange(rate, found_.rate_pkts_per_ns);
    if (!has_moved && std::abs(rate - last) <= kSameRate * last) break;
  }
}

void Central::limit_ages() {
  // An age counts from where a packet was put into the ring: its wait there is a part of it.
  Program& program = view_.program();
  for (size_t t = 0; t < program.tasks.size(); ++t) {
    ProgramTask& task = program.tasks[t];
    task.runs_waited = std::max(2.0, 1 + ring_pkts_[t] / task.run_pkts);
  }
  const std::vector<uint32_t>& triggers = found_.solution.triggers_pkts;
  evaluate(program, {triggers.begin(), triggers.end()}, trial_);
  for (ProgramTask& task : program.tasks) task.is_saturated = is_saturated_;
  for (uint32_t f = 0; f < flows_.size(); ++f) {
    bounds_ns_[f] = std::max(0.0, flows_[f].slo_ns - view_.egress_most_ns(f));
  }
  age_limits(view_, trial_, bounds_ns_, found_.solution.is_infeasible,
             found_.solution.triggers_pkts, age_ns_);
  if (window_pkts_ == 0) return;
  // What is held together comes together: an age limit is for packets that never come.
  double least_ns = kNoBudgetNs;
  for (const Flow& flow : flows_) {
    if (flow.slo_ns > 0) least_ns = std::min(least_ns, flow.slo_ns);
  }
  const bool has_slo = least_ns < kNoBudgetNs;
  std::ranges::fill(age_ns_, has_slo ? static_cast<uint64_t>(least_ns) : exec::kStrandingAge);
}

// Not for a gain within what counts fluctuate by, while the triggers in force keep the budgets.
bool Central::is_worth_moving() const {
  for (size_t f = 0; f < flows_.size(); ++f) {
    if (in_force_.delay_ns[f] > view_.program().flows[f].budget_ns) return true;
  }
  const double now_ns = bottleneck_ns(joint_, in_force_);
  const double then_ns = bottleneck_ns(joint_, found_.solution.model);
  return std::abs(then_ns - now_ns) > kKeepWithin * now_ns;
}

void Central::change(const Snapshot& snapshot, Decision& decision) {
  const bool is_worth = is_worth_moving();
  for (size_t h = 0; h < view_.segments().size(); ++h) {
    const uint32_t m = view_.segments()[h].head;
    const exec::ModulePeriod& now = snapshot.modules[m];
    triggers_[h] = is_worth ? found_.solution.triggers_pkts[h] : now.trigger_pkts;
    const uint64_t age_ns = triggers_[h] > 0 ? age_ns_[h] : exec::kStrandingAge;
    const bool is_new = triggers_[h] != now.trigger_pkts;
    if (!is_new && (triggers_[h] == 0 || age_ns == now.age_limit_ns)) continue;
    const char* const reason = !is_new                           ? "age"
                               : triggers_[h] > now.trigger_pkts ? "raise"
                                                                 : "lower";
    decision.changes.push_back({m, triggers_[h], age_ns, reason});
  }
  for (const exec::ControlInput& input : model_.inputs) {
    if (credit_batches_ != credit_in_force_ && input.is_queue) {
      decision.credits.push_back({input.module, credit_of(input)});
    }
  }
  is_fresh_ = credit_batches_ != credit_in_force_;
  if (!is_fresh_) return;
  // Longer after each change: what the model says of a credit and what comes of it may differ.
  credit_periods_ = 0;
  dwell_periods_ = std::min(2 * dwell_periods_, kMostDwellPeriods);
  credit_in_force_ = credit_batches_;
}

Decision Central::step(const Snapshot& snapshot) {
  Decision decision;
  view_.update(snapshot);
  if (!join(snapshot)) return decision;
  count_rings(snapshot);
  learn(snapshot);
  solve();
  limit_ages();
  change(snapshot, decision);
  judge(snapshot, decision);
  return decision;
}

std::unique_ptr<Controller> make_central(const Model& model, const Settings& settings) {
  return std::make_unique<Central>(model, settings);
}

}  // namespace batchplane::slo
