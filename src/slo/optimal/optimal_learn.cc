// SPDX-License-Identifier: BSD-3-Clause
// optimal_learn.cc - learns about the model and the triggers in force from a period.
#include <algorithm>
#include <cmath>

#include "exec/promise.h"
#include "exec/ring_size.h"
#include "slo/optimal/optimal.h"

namespace batchplane::slo {
namespace {
constexpr double kOutsideFactor = 2;  // measured over modelled delay: beyond, packets wait outside
constexpr double kOftenCut = 0.1;     // share of releases by age
}  // namespace

// How buffers held the flow's packets in the period.
FlowDelay::How Optimal::how(uint32_t f) const {
  const Program& program = view_.program();
  const ProgramFlow& row = program.flows[f];
  FlowDelay::How how{.crosses = row.tasks_end - row.tasks_begin > 1};
  double aged = 0;
  double all = 0;
  for (uint32_t i = row.modules_begin; i < row.modules_end; ++i) {
    const uint32_t h = program.flow_modules[i];
    how.holds |= view_.current()[h] > 0;
    aged += view_.releases(h).by_age;
    all += view_.releases(h).all;
  }
  how.is_cut = aged > kOftenCut * all;
  return how;
}

// Packets inside while the machine stalled a worker are late whatever the triggers: for each gap,
// the flow's share of what it caught in front, and the packets in its buffers. True when these are more than
// may be late: the period then tells nothing about triggers.
bool Optimal::is_held_up(const Snapshot& snapshot, uint32_t f) const {
  const Program& program = view_.program();
  const ProgramFlow& row = program.flows[f];
  const exec::FlowPeriod& period = snapshot.flows[f];
  if (period.slo_ns == 0 || period.pkts == 0) return false;
  double caught_pkts = 0;
  for (uint32_t i = row.tasks_begin; i < row.tasks_end; ++i) {
    const exec::TaskPeriod& task = snapshot.tasks[program.flow_tasks[i]];
    const auto gaps = static_cast<double>(task.gaps);
    const double least_ns = exec::kMinHole * static_cast<double>(period.slo_ns) * gaps;
    if (static_cast<double>(task.gap_ns) < least_ns) continue;
    const double gap_ns = static_cast<double>(task.gap_ns) / std::max(1.0, gaps);
    double inside_pkts = exec::caught_flow_pkts(load_.ring_pkts(), period.pkts, task.in_pkts,
                                                snapshot.period_ns, gap_ns);
    for (uint32_t j = row.modules_begin; j < row.modules_end; ++j) {
      inside_pkts += view_.current()[program.flow_modules[j]];
    }
    caught_pkts += gaps * inside_pkts;
  }
  return caught_pkts > exec::allowed_late_pkts(period.pkts, settings_.percentile);
}

bool Optimal::is_without_modules(uint32_t f) const {
  const ProgramFlow& row = view_.program().flows[f];
  return row.modules_begin == row.modules_end;
}

double Optimal::waits_beside_ns(uint32_t f) const {
  return static_cast<double>(settings_.turnaround_extra_ns) + flows_[f].ring_ns +
         view_.egress_took_ns(f);
}

// What a flow takes beside the program's delay.
double Optimal::beside_ns(uint32_t f) const {
  return waits_beside_ns(f) + (is_without_modules(f) ? view_.min_service_ns(f) : 0);
}

double Optimal::modelled_now_ns(uint32_t f) const { return in_force_.delay_ns[f] + beside_ns(f); }

// Before anything was held, saturated periods show how long before the end of its own run a flow's last
// packets leave. Later the ratio covers what is wrong.
bool Optimal::learn_place(const exec::FlowPeriod& period, uint32_t f) {
  Program& program = view_.program();
  ProgramFlow& row = program.flows[f];
  if (row.tasks_end - row.tasks_begin != 1 || flows_[f].delay.has_held()) return false;
  const uint32_t t = program.flow_tasks[row.tasks_begin];
  const double run_ns = program.tasks[t].run_pkts * in_force_.task_pkt_ns[t];
  const double measured_ns = percentile_ns(period, settings_.percentile);
  if (in_force_.is_bare[t] == 0 || measured_ns <= 0 || run_ns <= 0) return false;
  const double early = row.runs_early + (modelled_now_ns(f) - measured_ns) / run_ns;
  row.runs_early = std::clamp(early, 0.0, 1.0);
  return true;
}

// Learns how far off the model is at the triggers in force, with rings as they were.
void Optimal::learn(const Snapshot& snapshot) {
  Program& program = view_.program();
  joint_.visits = load_.visits();
  joint_.spared_ns = load_.spared_ns();
  joint_.offered_pkts_per_ns = load_.is_saturated() ? 0 : load_.offered_pkts_per_ns();
  wait_for_runs(false);
  rings_.update(program);
  wait_in_rings(load_.rate_pkts_per_ns());
  set_rate(joint_, load_.rate_pkts_per_ns(), program);
  evaluate(program, view_.current(), in_force_);
  bool has_places = false;
  for (uint32_t f = 0; f < flows_.size(); ++f) {
    Flow& flow = flows_[f];
    const exec::FlowPeriod& period = snapshot.flows[f];
    const double modelled_ns = modelled_now_ns(f);
    flow.is_beyond_share = period.egress.is_beyond_share;
    const auto measured_ns = static_cast<double>(period.delay_ns);
    const bool was_waiting = flow.is_waiting;
    flow.is_left_out = has_decided_ && found_.solution.is_infeasible[f];
    flow.is_waiting = load_.is_saturated() && period.slo_ns > 0 &&
                      measured_ns > static_cast<double>(period.slo_ns) &&
                      measured_ns > kOutsideFactor * modelled_ns;
    const bool is_rest = was_waiting && period.late_pkts > 0;
    flow.is_excused = flow.is_waiting || is_rest || flow.is_beyond_share || rings_.is_fresh() ||
                      is_held_up(snapshot, f);
    if (flow.is_waiting) flow.delay.forget();
    if (!flow.is_excused) has_places |= learn_place(period, f);
  }
  if (has_places) evaluate_delays(program, in_force_);
  for (uint32_t f = 0; f < flows_.size(); ++f) {
    if (flows_[f].is_excused) continue;
    const double modelled_ns = modelled_now_ns(f);
    flows_[f].delay.learn(snapshot.flows[f], modelled_ns, how(f), settings_.percentile);
  }
  share_ratios();
  learn_margin();
}

// Branches that are alike get the same trigger: the one that suits the slowest of their flows.
void Optimal::share_ratios() {
  std::vector<double> most(flows_.size(), 0);
  for (uint32_t f = 0; f < flows_.size(); ++f) {
    double& ratio = most[alike_.flows()[f]];
    ratio = std::max(ratio, flows_[f].delay.own_ratio());
  }
  for (uint32_t f = 0; f < flows_.size(); ++f) flows_[f].delay.share(most[alike_.flows()[f]]);
}

void Optimal::learn_margin() {
  Margin::Seen seen{.has_moved = has_moved_, .was_used = stretch_ <= 0};
  for (const Flow& flow : flows_) {
    if (flow.delay.slo_ns() <= 0) continue;
    seen.tells |= flow.delay.measured_ns() > 0;
    if (flow.is_left_out) continue;
    ++seen.flows;
    seen.is_late |= flow.delay.is_late_by_little();
    const auto error = has_moved_ ? flow.delay.error_of_change() : flow.delay.error();
    if (!error) continue;
    ++seen.errors;
    seen.error += std::abs(*error);
  }
  if (seen.errors > 0) seen.error /= seen.errors;
  margin_.learn(seen);
}

// Of the flows with an SLO: the period then teaches nothing about triggers.
bool Optimal::is_any_excused() const {
  return std::ranges::any_of(
      flows_, [](const Flow& flow) { return flow.is_excused && flow.delay.slo_ns() > 0; });
}

// Judges the triggers in force, as far as the period tells anything about them.
void Optimal::observe(const Snapshot& snapshot) {
  bool is_other = false;
  bool is_broken = false;  // an SLO, also one that is new
  Outcome seen;
  for (uint32_t f = 0; f < flows_.size(); ++f) {
    const Flow& flow = flows_[f];
    is_other |= flow.delay.has_other_slo();
    is_broken |= exec::is_slo_broken(snapshot.flows[f], settings_.percentile);
    if (!flow.delay.is_late()) continue;
    const auto broken = flow.is_left_out ? Outcome::Slos::kLeftOut : Outcome::Slos::kBroken;
    seen.slos = std::max(seen.slos, broken);
  }
  if (is_other) {
    tries_.forget();
    rings_.forget();
  }
  if (rings_.is_fresh()) late_in_a_row_ = 0;
  if (is_any_excused()) {
    tries_.skip();
  } else {
    late_in_a_row_ = seen.slos == Outcome::Slos::kBroken ? late_in_a_row_ + 1 : 0;
    seen.pkt_ns = bottleneck_ns(joint_, in_force_);
    tries_.observe(view_.current(), seen);
  }
  // What triggers keep is true for one load and one ring credit.
  if (!load_.is_saturated() || rings_.is_fresh() || (is_other && is_broken)) tries_.prove_nothing();
}

}  // namespace batchplane::slo
