// SPDX-License-Identifier: BSD-3-Clause
// optimal_holding.cc - what holding packets costs, learnt from each decision that changes how many
// are held. The profile cannot know it: it depends on what else wants the cache meanwhile.
#include <algorithm>
#include <cmath>

#include "slo/optimal/optimal.h"

namespace batchplane::slo {
namespace {
constexpr double kMaxIdleTime = 0.04;   // of the time: beyond, a packet's time is not the task's
constexpr double kMaxGone = 0.05;       // of the period, to the machine: beyond, it says little
constexpr double kEnoughPkts = 2000;    // of a period
constexpr double kMinHolds = 0.5;       // of a packet: changes of fewer say little
constexpr double kMaxHoldShare = 0.25;  // of a packet's time
constexpr uint32_t kMaxLooks = 2;       // periods
constexpr double kMostlyFull = 0.5;     // of releases
constexpr double kForgetting = 0.01;    // a period
}  // namespace

// The middle one of the last three; less of two: what a slow moment made of one is not believed.
double Optimal::usual_holding_ns() const {
  auto seen = holding_seen_ns_;
  const auto n = std::min<size_t>(n_holding_seen_, kHoldingKept);
  std::sort(seen.begin(), seen.begin() + static_cast<ptrdiff_t>(n));
  return seen[(n - 1) / 2];
}

// Batches that limits cut short are not those that were expected to save something.
bool Optimal::fills_batches(const Snapshot& snapshot, uint32_t t) const {
  uint64_t full = 0;
  uint64_t all = 0;
  for (const Segment& segment : view_.segments()) {
    if (model_.modules[segment.head].task != t) continue;
    const auto& causes = snapshot.modules[segment.head].causes;
    full += causes[static_cast<uint32_t>(exec::Cause::kFull)].firings;
    for (const exec::CauseCount& cause : causes) all += cause.firings;
  }
  return static_cast<double>(full) >= kMostlyFull * static_cast<double>(all);
}

// Measured less expected change of a packet's time, for each time that it is held more often than
// before. Periods side by side: machines change their speed over longer times, or for a moment.
void Optimal::learn_holding(const Snapshot& snapshot) {
  // One disturbed period must not end holding for good: what was learnt fades, and is then tried.
  const double usual_ns = settings_.hold_ns_per_pkt;
  const double known_ns = view_.program().hold_ns;
  view_.set_hold_ns(known_ns + kForgetting * (usual_ns - known_ns));
  for (uint32_t t = 0; t < times_.size(); ++t) {
    const exec::TaskPeriod& period = snapshot.tasks[t];
    TaskTime& time = times_[t];
    const auto gap = static_cast<double>(period.gap_ns);
    const auto busy = static_cast<double>(period.busy_ns) - gap;
    const auto idle = static_cast<double>(period.idle_ns);
    const auto pkts = static_cast<double>(period.in_pkts);
    const bool says_something = pkts >= kEnoughPkts && busy > 0 && !view_.is_slow(t) &&
                                idle <= kMaxIdleTime * (busy + idle) &&
                                gap <= kMaxGone * static_cast<double>(snapshot.period_ns);
    const double before_ns = time.measured_ns;
    time.measured_ns = says_something ? busy / pkts : 0;
    if (!says_something || before_ns <= 0 || std::abs(time.holds) < kMinHolds) continue;
    if (!fills_batches(snapshot, t)) continue;
    const double error_ns = time.measured_ns - before_ns - time.change_ns;
    const double hold_ns = view_.program().hold_ns + error_ns / time.holds;
    const double max_ns = kMaxHoldShare * time.measured_ns;
    holding_seen_ns_[n_holding_seen_++ % kHoldingKept] = std::clamp(hold_ns, 0.0, max_ns);
    view_.set_hold_ns(usual_holding_ns());
  }
}

// What the decision changes, by the model; nothing where it is not of saturated tasks.
void Optimal::expect_holding() {
  const Program& program = view_.program();
  for (TaskTime& time : times_) time.holds = time.change_ns = 0;
  for (uint32_t h = 0; h < chosen_.size(); ++h) {
    const ProgramModule& module = program.modules[h];
    times_[module.task].holds += module.share * (is_holding(module, chosen_[h]) ? 1 : 0);
    times_[module.task].holds -= module.share * (is_holding(module, view_.current()[h]) ? 1 : 0);
  }
  const bool any = std::ranges::any_of(
      times_, [](const TaskTime& time) { return std::abs(time.holds) >= kMinHolds; });
  if (!any) return;
  // Each side with the batches that arrive with it.
  if (view_.has_nested()) {
    before_pkts_.assign(view_.current().begin(), view_.current().end());
    view_.predict_arrivals(before_pkts_);
  }
  evaluate(program, view_.current(), model_now_);
  if (view_.has_nested()) view_.predict_arrivals(chosen_);
  for (uint32_t t = 0; t < times_.size(); ++t) {
    if (program.tasks[t].is_saturated) {
      times_[t].change_ns = model_chosen_.task_pkt_ns[t] - model_now_.task_pkt_ns[t];
    } else {
      times_[t].holds = 0;
    }
  }
}

void Optimal::bypass_all() {
  std::ranges::fill(chosen_, 0);
  solution_.prices.assign(flows_.size(), 0);
  as_real_.assign(chosen_.size(), 0);
  evaluate(view_.program(), as_real_, model_chosen_);
}

// A period that was not whole tells a controller that begins nothing of what a packet takes without
// holding: it waits for one that does, so that its first decision will tell what holding costs.
bool Optimal::waits_for_whole_period(const Snapshot& snapshot) {
  const bool holds_any = std::ranges::any_of(view_.current(), [](double pkts) { return pkts > 0; });
  if (has_changed_ || holds_any || looks_ >= kMaxLooks) return false;
  for (uint32_t t = 0; t < times_.size(); ++t) {
    const auto pkts = static_cast<double>(snapshot.tasks[t].in_pkts);
    const bool is_unknown = pkts >= kEnoughPkts && times_[t].measured_ns <= 0;
    if (!view_.program().tasks[t].is_saturated || !is_unknown) continue;
    ++looks_;
    bypass_all();
    return true;
  }
  return false;
}

// A controller that begins while others' triggers hold packets looks for one period at what a
// packet takes without: its next decision then tells what holding costs.
bool Optimal::look_without(const Snapshot& snapshot) {
  if (has_decided_) return false;
  const Program& program = view_.program();
  bool any = false;
  for (uint32_t h = 0; h < chosen_.size(); ++h) {
    const ProgramModule& module = program.modules[h];
    any |= program.tasks[module.task].is_saturated &&
           snapshot.modules[view_.segments()[h].head].trigger_pkts > 0;
  }
  if (!any) return false;
  bypass_all();
  return true;
}

}  // namespace batchplane::slo
