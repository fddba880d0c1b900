// SPDX-License-Identifier: BSD-3-Clause
#include "slo/optimal/optimal.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace batchplane::slo {
namespace {
constexpr double kKeepWithin = 0.003;  // of the best load: within it the triggers in force stay
constexpr double kGainStep = 0.1;      // step of the noise of gains towards the last change
constexpr double kWorthAgain = 0.03;   // of a load: beyond, a failed move is mended, not taken back
constexpr double kLeftOut = 1.1;       // times the plan's delay, of a flow whose SLO nothing keeps
constexpr double kIdleLoad = 0.85;     // without buffers: above this load they are worth having
constexpr double kIdleAgain = 0.7;     // the same, where something is held: loads vary
constexpr uint32_t kMaxLulls = 50;     // periods in a row
constexpr double kLimitLower = 0.01;   // relative change of an age limit that is worth a command
constexpr double kLimitHigher = 0.05;  // the same upwards, where waiting for it breaks nothing
}  // namespace

std::unique_ptr<Controller> make_optimal(const Model& model, const Settings& settings) {
  return std::make_unique<Optimal>(model, settings);
}

Optimal::Optimal(const Model& model, const Settings& settings)
    : model_(model),
      settings_(settings),
      view_(model, settings_),
      alike_(view_.program()),
      load_(model),
      rings_(model, load_),
      margin_(settings_),
      flows_(model.flows.size()),
      chosen_(view_.program().modules.size(), 0),
      limits_ns_(chosen_.size(), exec::kStrandingAge),
      bounds_ns_(model.flows.size(), 0) {
  for (const exec::ControlTask& task : model.tasks) joint_.worker_of_task.push_back(task.worker);
  for (Search* search : {&all_, &outer_}) {
    search->solver.prepare(view_.program());
    search->chosen = chosen_;
  }
}

Decision Optimal::step(const Snapshot& snapshot) {
  Decision decision;
  view_.update(snapshot);
  alike_.find(snapshot, view_.program());
  for (uint32_t f = 0; f < flows_.size(); ++f) flows_[f].delay.begin(snapshot.flows[f].slo_ns);
  const bool any = load_.update(snapshot, view_);
  if (!any || passes_over_lull(snapshot)) {
    // The chosen triggers stay for when more packets come.
    if (has_decided_) judge(snapshot, decision);
    return decision;
  }
  learn(snapshot);
  observe(snapshot);
  solve();
  is_try_ = false;
  if (looks_without()) {
    rings_.set_credit(rings_.in_force());
    take(Triggers(chosen_.size(), 0));
  } else {
    keep_what_fits();
    bypass_where_idle();
  }
  limit_ages();
  judge(snapshot, decision);
  change(snapshot, decision);
  if (is_try_ && has_moved_) tries_.begin();
  for (Flow& flow : flows_) flow.delay.decided();
  has_decided_ = true;
  return decision;
}

// Whether the model keeps the flow within its budget, or no triggers could.
bool Optimal::keeps_budget(const Evaluation& at, uint32_t f) const {
  return found_.solution.is_infeasible[f] || at.delay_ns[f] <= view_.program().flows[f].budget_ns;
}

// Whether the flow keeps its SLO under the triggers in force, or is about as late as in the plan. Margins are
// for plans: what was measured may use them up. One period of noise is no reason to move.
bool Optimal::keeps_slo(const Evaluation& now, uint32_t f) const {
  const Flow& flow = flows_[f];
  if (flow.delay.slo_ns() <= 0) return true;
  if (found_.solution.is_infeasible[f]) {
    return now.delay_ns[f] <= kLeftOut * at_.delay_ns[f];
  }
  if (flow.is_excused || flow.delay.measured_ns() <= 0 || flow.delay.has_other_slo()) {
    return keeps_budget(now, f);
  }
  const double most_ns = flow.delay.slo_ns() * (stretch_ > 0 ? stretch_ : 1);
  const double delay_ns = std::min(flow.delay.measured_ns(), flow.delay.usual_ns());
  const bool is_late = stretch_ <= 1 && flow.delay.is_late();
  return !is_late && delay_ns + view_.egress_beyond_mean_ns(f) <= most_ns;
}

bool Optimal::keep_budgets(const Evaluation& at) const {
  for (uint32_t f = 0; f < flows_.size(); ++f) {
    if (!keeps_budget(at, f)) return false;
  }
  return true;
}

bool Optimal::keep_slos(const Evaluation& now) const {
  for (uint32_t f = 0; f < flows_.size(); ++f) {
    if (!keeps_slo(now, f)) return false;
  }
  return true;
}

// Evaluates triggers together with the arrivals that they cause: buffers upstream change the
// batches that arrive behind them.
void Optimal::evaluate_at(const Triggers& triggers_pkts, Evaluation& out) {
  view_.predict_arrivals(triggers_pkts);
  evaluate(view_.program(), triggers_pkts, out);
}

// Starts from the triggers in force, which are `now` in the plan's program. Where one is above what a buffer may
// hold, or a flow misses its SLO, the modules concerned get the new triggers, together with those that are alike.
void Optimal::mix(const Evaluation& now, Triggers& triggers_pkts) const {
  const Program& program = view_.program();
  for (uint32_t h = 0; h < triggers_pkts.size(); ++h) {
    if (triggers_pkts[h] > program.modules[h].max_pkts) triggers_pkts[h] = chosen_[h];
  }
  std::vector<bool> moves(flows_.size(), false);  // by the first of the flows that are alike
  for (uint32_t f = 0; f < flows_.size(); ++f) {
    if (!keeps_slo(now, f)) moves[alike_.flows()[f]] = true;
  }
  for (uint32_t f = 0; f < flows_.size(); ++f) {
    if (!moves[alike_.flows()[f]]) continue;
    for (uint32_t i = program.flows[f].modules_begin; i < program.flows[f].modules_end; ++i) {
      triggers_pkts[program.flow_modules[i]] = chosen_[program.flow_modules[i]];
    }
  }
}

// Takes these triggers instead of the solution.
void Optimal::take(Triggers triggers_pkts) {
  chosen_ = std::move(triggers_pkts);
  view_.predict_arrivals(chosen_);
  evaluate(view_.program(), chosen_, at_);
}

// What there is to gain changes from period to period though triggers rest, as laws are estimates. What
// slows everything is no part of it.
void Optimal::follow_gain(double gain) {
  const double last = std::exchange(last_gain_, gain);
  if (has_moved_ || !load_.is_saturated() || last <= 0) return;
  gain_noise_ += kGainStep * (std::abs(gain - last) - gain_noise_);
}

// Whether triggers should come back instead of the solution.
bool Optimal::should_come_back(const Kept::Point& back) const {
  const bool is_cheap = back.pkt_ns < (1 + kWorthAgain) * bottleneck_ns(joint_, at_);
  return is_cheap && (tries_.is_in_vain() || joint_.offered_pkts_per_ns <= 0);
}

// Triggers move where they gain, where an SLO is missed, or where they do not carry the load. Where moves
// failed before, triggers in force that do all that stay for a while.
void Optimal::keep_what_fits() {
  // Triggers solved for other ring credits come with those credits.
  if (rings_.is_changing()) return;
  const double best = cost_of(at_);
  if (const Kept::Point* back = tries_.way_back(); back != nullptr && should_come_back(*back)) {
    found_.solution.is_infeasible.assign(flows_.size(), false);  // these leave out no flow
    take(back->triggers_pkts);
    tries_.come_back();
    return;
  }
  Triggers kept = view_.current();
  evaluate_at(kept, trial_);
  const double now = cost_of(trial_);
  follow_gain(now / best);
  const bool stays = carries(trial_) && (tries_.is_back() || keep_slos(trial_));
  if (tries_.may_try() || !stays) {
    mix(trial_, kept);
    const bool is_mixed = kept != view_.current();
    if (is_mixed) evaluate_at(kept, trial_);
    const bool gains = cost_of(trial_) - best > std::max(kKeepWithin, gain_noise_) * best;
    if (gains || (is_mixed && !keep_budgets(trial_))) kept = chosen_;
  }
  take(std::move(kept));
  is_try_ = stays && cost_of(at_) < now && !tries_.has_failed();
}

// A controller that starts while another one's triggers hold packets runs without buffers for one
// period: this shows whether holding pays.
bool Optimal::looks_without() const {
  return !has_decided_ && load_.is_saturated() &&
         std::ranges::any_of(view_.current(), [](double pkts) { return pkts > 0; });
}

// An idle core that fires its buffers at once collects nothing in them: holding costs more than it saves, as
// long as the load fits without buffers. What a kernel's ports cost may jump from one period to the next, and
// laws take several to follow, so the measured load counts, too.
void Optimal::bypass_where_idle() {
  if (!settings_.releases_when_idle || load_.window_pkts() != 0) return;
  const Program& program = view_.program();
  std::vector<bool> holds(program.tasks.size());
  for (uint32_t h = 0; h < chosen_.size(); ++h) {
    if (view_.current()[h] > 0) holds[program.modules[h].task] = true;
  }
  evaluate_at(Triggers(chosen_.size(), 0), trial_);
  for (uint32_t h = 0; h < chosen_.size(); ++h) {
    const uint32_t t = program.modules[h].task;
    if (load_.is_saturated() && (holds[t] || !load_.has_long_gaps(t))) continue;
    double load = load_.work_share(t);
    if (holds[t]) load = std::max(load, trial_.task_pkt_ns[t] * program.tasks[t].rate_pkts_per_ns);
    if (load <= (holds[t] ? kIdleAgain : kIdleLoad)) chosen_[h] = 0;
  }
  take(chosen_);
}

namespace {
bool is_worth_a_command(double old_limit_ns, double limit_ns) {
  return limit_ns < old_limit_ns * (1 - kLimitLower) ||
         limit_ns > old_limit_ns * (1 + kLimitHigher);
}
}  // namespace

// A stage always collects. Where no flow asks for a limit, it keeps its own.
void Optimal::change_stage(const Snapshot& snapshot, uint32_t h, Decision& decision) {
  const Stages& stages = view_.stages();
  const uint32_t s = view_.stage_of(h);
  // In a closed loop larger batches only wait for packets that wait for them.
  if (!stages.is_decided(s) || load_.window_pkts() != 0) return;
  const exec::StagePeriod& now = snapshot.inputs[stages.input(s)].stage;
  const auto old_ns = static_cast<double>(now.age_limit_ns);
  const bool has_limit = limits_ns_[h] != exec::kStrandingAge;
  const double limit_ns =
      std::max(has_limit ? static_cast<double>(limits_ns_[h]) : stages.own_limit_ns(s),
               stages.least_limit_ns(s));
  limits_ns_[h] = static_cast<uint64_t>(limit_ns);
  const uint32_t batch_pkts = stages.batch_pkts(s, static_cast<uint32_t>(chosen_[h]));
  has_moved_ |= batch_pkts != now.batch_pkts;
  if (batch_pkts == now.batch_pkts && !is_worth_a_command(old_ns, limit_ns)) return;
  decision.stages.push_back({view_.module(h), batch_pkts, limits_ns_[h]});
}

void Optimal::change(const Snapshot& snapshot, Decision& decision) {
  // A period tells the limit that stands for kStrandingAge.
  const auto in_force_ns = [&](uint64_t limit_ns) {
    return static_cast<double>(limit_ns == exec::kStrandingAge ? settings_.stranding_limit_ns
                                                               : limit_ns);
  };
  has_moved_ = false;
  for (uint32_t h = 0; h < chosen_.size(); ++h) {
    if (view_.is_stage(h)) {
      change_stage(snapshot, h, decision);
      continue;
    }
    const uint32_t m = view_.module(h);
    const exec::ModulePeriod& period = snapshot.modules[m];
    const uint32_t old = period.trigger_pkts;
    const auto now = static_cast<uint32_t>(chosen_[h]);
    // A bypassed buffer holds nothing: its limit is set when it holds again.
    if (now == 0) limits_ns_[h] = exec::kStrandingAge;
    const double limit_ns = in_force_ns(limits_ns_[h]);
    const double old_ns = in_force_ns(period.age_limit_ns);
    if (now == old && (now == 0 || !is_worth_a_command(old_ns, limit_ns))) continue;
    const char* reason = "age";
    has_moved_ |= now != old;
    if (now != old) {
      reason = old == 0 ? "hold" : now == 0 ? "bypass" : now > old ? "raise" : "lower";
    }
    decision.changes.push_back({m, now, limits_ns_[h], reason});
  }
  rings_.decide(decision);
}

bool Optimal::passes_over_lull(const Snapshot& snapshot) {
  bool is_lull = has_decided_ && load_.is_lull() && load_.window_pkts() == 0;
  for (uint32_t f = 0; f < flows_.size(); ++f) {
    is_lull &= !flows_[f].delay.has_other_slo();
    is_lull &= !is_surely_late(snapshot.flows[f], settings_.percentile);
  }
  // Bursts without end are the normal load.
  lulls_ = is_lull ? lulls_ + 1 : 0;
  return is_lull && lulls_ <= kMaxLulls;
}

}  // namespace batchplane::slo
