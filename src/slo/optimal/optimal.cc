// SPDX-License-Identifier: BSD-3-Clause
#include "slo/optimal/optimal.h"

#include <algorithm>
#include <cmath>

#include "exec/promise.h"
#include "slo/optimal/optimal_age.h"

namespace batchplane::slo {
namespace {
constexpr double kKeepWithin = 0.005;  // of the best load: what is in force stays
constexpr double kStayMargin = 0.25;   // of a margin, that what is in force may use
constexpr double kWorthAgain = 0.03;   // of a load: beyond, what failed is mended, not taken back
constexpr double kOtherTraffic = 0.05;  // change of what it costs
constexpr double kIdleLoad = 0.85;     // without buffers: above, they are worth having
constexpr double kQueueLoad = 0.7;     // above, a queue may come up any time
constexpr double kOutsideFactor = 2;   // measured over modelled delay: more is waiting outside
constexpr double kMinHole = 0.05;      // of the SLO, on average: shorter holes delay nothing
constexpr double kOftenCut = 0.1;      // share of releases by age
constexpr double kLimitLower = 0.01;   // relative change of an age limit that is worth a change
constexpr double kLimitHigher = 0.05;
}  // namespace

std::unique_ptr<Controller> make_optimal(const Model& model, const Settings& settings) {
  return std::make_unique<Optimal>(model, settings);
}

Optimal::Optimal(const Model& model, const Settings& settings)
    : model_(model),
      settings_(settings),
      view_(model, settings_),
      load_(model, settings_),
      rings_(model),
      margin_(settings_),
      flows_(model.flows.size()),
      chosen_(view_.segments().size(), 0),
      limits_ns_(view_.segments().size(), exec::kStrandingAge),
      bounds_ns_(model.flows.size(), 0),
      is_unbounded_(model.flows.size(), false) {
  for (const exec::ControlTask& task : model.tasks) joint_.worker_of_task.push_back(task.worker);
  solver_.prepare(view_.program());
  outer_solver_.prepare(view_.program());
}

// How the flow's packets were held in the period.
FlowDelay::How Optimal::how(const Snapshot& snapshot, uint32_t f) const {
  const Program& program = view_.program();
  const ProgramFlow& row = program.flows[f];
  FlowDelay::How how;
  double aged = 0;
  double all = 0;
  for (uint32_t i = row.modules_begin; i < row.modules_end; ++i) {
    const uint32_t h = program.flow_modules[i];
    how.holds |= view_.current()[h] > 0;
    const auto& causes = snapshot.modules[view_.segments()[h].head].causes;
    aged += static_cast<double>(causes[static_cast<uint32_t>(exec::Cause::kAge)].firings);
    for (const exec::CauseCount& cause : causes) all += static_cast<double>(cause.firings);
  }
  how.is_cut = aged > kOftenCut * all;
  return how;
}

// Packets that were inside while the machine held a worker up are late whatever the triggers: for
// each hole the flow's share of two fills of the ring, and what its buffers hold. More of them than
// may be late: the period says nothing of triggers.
bool Optimal::is_held_up(const Snapshot& snapshot, uint32_t f) const {
  const Program& program = view_.program();
  const ProgramFlow& row = program.flows[f];
  const exec::FlowPeriod& period = snapshot.flows[f];
  double caught_pkts = 0;
  for (uint32_t i = row.tasks_begin; i < row.tasks_end; ++i) {
    const exec::TaskPeriod& task = snapshot.tasks[program.flow_tasks[i]];
    const auto gaps = static_cast<double>(task.gaps);
    const double least_ns = kMinHole * static_cast<double>(period.slo_ns) * gaps;
    if (static_cast<double>(task.gap_ns) < least_ns) continue;
    const double share = static_cast<double>(period.pkts) /
                         std::max(1.0, static_cast<double>(task.in_pkts));
    double inside_pkts = 2.0 * static_cast<double>(settings_.ring_pkts) * share;
    for (uint32_t j = row.modules_begin; j < row.modules_end; ++j) {
      inside_pkts += view_.current()[program.flow_modules[j]];
    }
    caught_pkts += gaps * inside_pkts;
  }
  return caught_pkts > exec::allowed_late_pkts(period.pkts, settings_.percentile);
}

// How far the model is off at the triggers in force, with rings as they were.
void Optimal::learn(const Snapshot& snapshot) {
  Program& program = view_.program();
  joint_.visits = load_.visits();
  joint_.spared_ns = load_.spared_ns();
  joint_.offered_pkts_per_ns = load_.is_saturated() ? 0 : load_.offered_pkts_per_ns();
  for (uint32_t t = 0; t < program.tasks.size(); ++t) {
    program.tasks[t].runs_waited = 2 + load_.left_pkts(t) / program.tasks[t].run_pkts;
  }
  rings_.update(load_, program);
  wait_in_rings(load_.rate_pkts_per_ns());
  set_rate(joint_, load_.rate_pkts_per_ns(), program);
  evaluate(program, view_.current(), in_force_);
  for (uint32_t f = 0; f < flows_.size(); ++f) {
    Flow& flow = flows_[f];
    const exec::FlowPeriod& period = snapshot.flows[f];
    const double modelled_ns = in_force_.delay_ns[f] + flow.ring_ns + view_.egress_took_ns(f) +
                               static_cast<double>(settings_.turnaround_extra_ns);
    flow.delay.set_slo(period.slo_ns);
    flow.is_beyond_share = period.egress.is_beyond_share;
    const auto measured_ns = static_cast<double>(period.delay_ns);
    const bool was_waiting = flow.is_waiting;
    flow.is_waiting = load_.is_saturated() && period.slo_ns > 0 &&
                      measured_ns > static_cast<double>(period.slo_ns) &&
                      measured_ns > kOutsideFactor * modelled_ns;
    const bool is_rest = was_waiting && period.late_pkts > 0;
    flow.is_excused = flow.is_waiting || is_rest || flow.is_beyond_share || rings_.is_fresh() ||
                      is_held_up(snapshot, f);
    if (flow.is_waiting) flow.delay.forget();
    if (flow.is_excused) continue;
    flow.delay.learn(period, modelled_ns, how(snapshot, f), settings_.percentile);
  }
  learn_margin();
}

void Optimal::learn_margin() {
  Margin::Seen seen{.has_moved = has_moved_, .was_used = true};
  for (const Flow& flow : flows_) {
    if (flow.delay.slo_ns() <= 0) continue;
    ++seen.flows;
    seen.is_late |= flow.delay.is_late();
    seen.was_used &= flow.stretch <= 0;
    if (!flow.delay.error()) continue;
    ++seen.errors;
    seen.error += std::abs(*flow.delay.error());
  }
  if (seen.errors > 0) seen.error /= seen.errors;
  margin_.learn(seen);
}

// Other traffic, by what it costs without batches: what failed before may not now.
bool Optimal::is_other_traffic() {
  const Program& program = view_.program();
  const bool is_first = weights_ns_.empty();
  double work_ns = 0;
  for (uint32_t h = 0; h < program.modules.size(); ++h) {
    const ProgramModule& module = program.modules[h];
    if (is_first) weights_ns_.push_back(module.cost_per_batch_ns + module.cost_per_pkt_ns);
    work_ns += module.share * weights_ns_[h];
  }
  if (!is_first && std::abs(work_ns - work_ns_) <= kOtherTraffic * work_ns_) return false;
  work_ns_ = work_ns;
  return true;
}

// Of the triggers in force, as far as the period says anything of them.
void Optimal::observe() {
  bool is_other = is_other_traffic();
  bool is_excused = false;
  bool is_kept = true;
  for (const Flow& flow : flows_) {
    is_other |= flow.delay.has_other_slo();
    is_excused |= flow.is_excused;
    is_kept &= !flow.delay.is_late();
  }
  if (is_other) tries_.forget();
  if (is_excused) {
    tries_.skip();
  } else {
    tries_.observe(view_.current(), is_kept, bottleneck_ns(joint_, in_force_));
  }
}

bool Optimal::keeps_budget(const Evaluation& at, uint32_t f) const {
  const FlowDelay& delay = flows_[f].delay;
  const double margin_ns = kStayMargin * margin_.value() * delay.slo_ns() / delay.ratio();
  return at.delay_ns[f] <= view_.program().flows[f].budget_ns + margin_ns;
}

bool Optimal::keep_budgets(const Evaluation& at) const {
  for (uint32_t f = 0; f < flows_.size(); ++f) {
    if (!keeps_budget(at, f)) return false;
  }
  return true;
}

// Where others collect than those that were chosen, arrivals behind them are others, too.
void Optimal::evaluate_at(const std::vector<double>& triggers_pkts, Evaluation& out) {
  const std::vector<uint32_t> triggers(triggers_pkts.begin(), triggers_pkts.end());
  view_.predict_arrivals(triggers);
  evaluate(view_.program(), triggers_pkts, out);
}

// What is in force, but where it cuts arriving batches or a flow does not keep its budget: what that
// passes is set anew.
void Optimal::mix(std::vector<double>& triggers_pkts) const {
  const Program& program = view_.program();
  for (uint32_t h = 0; h < triggers_pkts.size(); ++h) {
    const ProgramModule& module = program.modules[h];
    const double q = triggers_pkts[h];
    if ((q > 0 && !is_holding(module, q)) || q > module.max_pkts) triggers_pkts[h] = chosen_[h];
  }
  for (uint32_t f = 0; f < flows_.size(); ++f) {
    if (keeps_budget(trial_, f)) continue;
    for (uint32_t i = program.flows[f].modules_begin; i < program.flows[f].modules_end; ++i) {
      triggers_pkts[program.flow_modules[i]] = chosen_[program.flow_modules[i]];
    }
  }
}

// Instead of what was solved.
void Optimal::take(const std::vector<uint32_t>& triggers_pkts) {
  chosen_ = triggers_pkts;
  view_.predict_arrivals(chosen_);
  as_real_.assign(chosen_.begin(), chosen_.end());
  evaluate(view_.program(), as_real_, at_);
}

// Triggers move for what they gain, or where a budget is not kept; a part of the margin is there so
// that noise in the counts moves nothing. Where moves failed before, what is in force and is kept stays for a
// while.
void Optimal::keep_what_fits() {
  const std::vector<bool>& is_out = found_.solution.is_infeasible;
  if (std::ranges::find(is_out, true) != is_out.end()) return;
  const double best = cost_of(at_);
  if (tries_.has_failed() && tries_.kept_ns() < (1 + kWorthAgain) * best) {
    take(tries_.kept_pkts());
    return;
  }
  std::vector<double> kept = view_.current();
  evaluate_at(kept, trial_);
  const double now = cost_of(trial_);
  if (tries_.may_try() || !keep_budgets(trial_)) {
    mix(kept);
    if (kept != view_.current()) evaluate_at(kept, trial_);
    const bool gains = cost_of(trial_) > (1 + kKeepWithin) * best;
    if (gains || !keep_budgets(trial_)) kept.assign(chosen_.begin(), chosen_.end());
  }
  take({kept.begin(), kept.end()});
  if (kept != view_.current() && cost_of(at_) < now) tries_.begin();
}

// A controller that begins while others' triggers hold packets looks for one period at what a
// packet takes without: no profile knows what holding costs here.
bool Optimal::looks_without() const {
  return !has_decided_ && load_.is_saturated() &&
         std::ranges::any_of(view_.current(), [](double pkts) { return pkts > 0; });
}

// An idle core that fires its buffers at once collects nothing in them: what is held costs more
// than it saves, as long as the load fits without.
void Optimal::bypass_where_idle() {
  if (!settings_.releases_when_idle || load_.is_saturated()) return;
  const Program& program = view_.program();
  as_real_.assign(chosen_.size(), 0);
  evaluate(program, as_real_, trial_);
  for (uint32_t h = 0; h < chosen_.size(); ++h) {
    const ProgramTask& task = program.tasks[program.modules[h].task];
    const double load = trial_.task_pkt_ns[program.modules[h].task] * task.rate_pkts_per_ns;
    if (load <= kIdleLoad) chosen_[h] = 0;
  }
  as_real_.assign(chosen_.begin(), chosen_.end());
  evaluate(program, as_real_, at_);
}

void Optimal::limit_ages() {
  Program& program = view_.program();
  reserve(at_);
  for (uint32_t f = 0; f < flows_.size(); ++f) {
    // What cannot be kept now bounds nothing.
    is_unbounded_[f] = is_unbounded_[f] || found_.solution.is_infeasible[f];
  }
  // An age counts from where a packet was put into the ring: its wait there is a part of it.
  for (uint32_t t = 0; t < program.tasks.size(); ++t) {
    ProgramTask& task = program.tasks[t];
    task.runs_waited = std::max(task.runs_waited, 1 + rings_.left_pkts(t) / task.run_pkts);
    task.is_saturated = joint_.offered_pkts_per_ns <= 0;
    // Limits that cut batches short wherever a queue comes up make it longer, and then cut all.
    const double load = at_.task_pkt_ns[t] * task.rate_pkts_per_ns;
    const bool is_at_risk = !task.is_saturated && load > kQueueLoad;
    task.queue_ns =
        is_at_risk ? static_cast<double>(settings_.ring_pkts) * at_.task_pkt_ns[t] : 0;
  }
  as_real_.assign(chosen_.begin(), chosen_.end());
  evaluate(program, as_real_, at_);
  age_limits(view_, at_, bounds_ns_, is_unbounded_, chosen_, limits_ns_);
  if (load_.window_pkts() == 0) return;
  // What is held together comes together: an age limit is for packets that never come.
  double least_ns = kNoBudgetNs;
  for (const Flow& flow : flows_) {
    if (flow.delay.slo_ns() > 0) least_ns = std::min(least_ns, flow.delay.slo_ns());
  }
  const bool has_slo = least_ns < kNoBudgetNs;
  std::ranges::fill(limits_ns_, has_slo ? static_cast<uint64_t>(least_ns) : exec::kStrandingAge);
}

void Optimal::change(const Snapshot& snapshot, Decision& decision) {
  for (uint32_t h = 0; h < chosen_.size(); ++h) {
    const uint32_t m = view_.segments()[h].head;
    const exec::ModulePeriod& period = snapshot.modules[m];
    const uint32_t old = period.trigger_pkts;
    const uint32_t now = chosen_[h];
    // A bypassed buffer holds nothing: its limit is set when it holds again.
    if (now == 0) limits_ns_[h] = exec::kStrandingAge;
    const auto limit = static_cast<double>(limits_ns_[h]);
    const auto old_limit = static_cast<double>(period.age_limit_ns);
    const bool moves_limit = limit < old_limit * (1 - kLimitLower) ||
                             limit > old_limit * (1 + kLimitHigher) ||
                             (limit > 0) != (old_limit > 0);
    if (now == old && (now == 0 || !moves_limit)) continue;
    const char* reason = "age";
    if (now != old) {
      reason = old == 0 ? "hold" : now == 0 ? "bypass" : now > old ? "raise" : "lower";
    }
    decision.changes.push_back({m, now, limits_ns_[h], reason});
  }
  rings_.decide(decision);
  has_moved_ = std::ranges::any_of(decision.changes, [&](const exec::BufferChange& change) {
    return change.trigger_pkts != snapshot.modules[change.module].trigger_pkts;
  });
}

bool Optimal::is_lull(const Snapshot& snapshot) const {
  bool is_lull = has_decided_ && load_.is_lull() && load_.window_pkts() == 0;
  for (uint32_t f = 0; f < flows_.size(); ++f) {
    const exec::FlowPeriod& period = snapshot.flows[f];
    is_lull &= static_cast<double>(period.slo_ns) == flows_[f].delay.slo_ns();
    is_lull &= !is_late_beyond_chance(period, settings_.percentile);
  }
  return is_lull;
}

Decision Optimal::step(const Snapshot& snapshot) {
  Decision decision;
  view_.update(snapshot);
  const bool any = load_.update(snapshot, view_);
  if (!any || is_lull(snapshot)) {
    // What was chosen stays for when more comes.
    if (has_decided_) judge(snapshot, decision);
    return decision;
  }
  learn(snapshot);
  observe();
  solve();
  if (looks_without()) {
    take(std::vector<uint32_t>(chosen_.size(), 0));
  } else {
    keep_what_fits();
    bypass_where_idle();
  }
  limit_ages();
  judge(snapshot, decision);
  change(snapshot, decision);
  has_decided_ = true;
  return decision;
}

}  // namespace batchplane::slo
