// SPDX-License-Identifier: BSD-3-Clause
#include "profile/module_timer.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/clock.h"

namespace batchplane::profile {
namespace {

constexpr uint32_t kMinTimerRounds = 12;
constexpr double kLostNs = 1e9;
constexpr uint32_t kMaxAgain = 16;

// Tries several times, because a device may deliver its frames late.
std::optional<uint64_t> run_at_last(ModuleRig& rig, uint32_t n_pkts) {
  std::optional<uint64_t> cycles = rig.run(n_pkts);
  for (uint32_t again = 0; !cycles && again < kMaxAgain; ++again) cycles = rig.run(n_pkts);
  return cycles;
}

double ns_of(double cycles) { return cycles / TscClock::instance().cycles_per_ns(); }

}  // namespace

ModuleTimer::ModuleTimer(Stage& stage, const std::vector<Member>& members,
                         std::vector<uint32_t> sizes_pkts, std::function<void()> stir)
    : rig_(stage, members, std::move(stir)), sizes_pkts_(std::move(sizes_pkts)) {
  const auto end =
      std::ranges::find_if(sizes_pkts_, [this](uint32_t n) { return !run_at_last(rig_, n); });
  left_out_pkts_.assign(end, sizes_pkts_.end());
  sizes_pkts_.erase(end, sizes_pkts_.end());
  std::vector<double> steps_ns;
  for (const uint32_t n : sizes_pkts_) steps_ns.push_back(clock_step_ns() / rig_.batches_of(n));
  rounds_ = Rounds(std::move(steps_ns));
  rig_.rest();
  order_.resize(sizes_pkts_.size());
  std::iota(order_.begin(), order_.end(), 0U);
}

void ModuleTimer::measure(double budget_ms, uint32_t max_rounds, Rng& rng) {
  if (sizes_pkts_.empty()) return;
  const TscClock& clock = TscClock::instance();
  const uint64_t end_ns = clock.now_ns() + static_cast<uint64_t>(budget_ms * 1e6);
  rig_.warm_up(sizes_pkts_.back());
  for (uint32_t round = 0; round < std::max(max_rounds, kMinTimerRounds); ++round) {
    if (round >= kMinTimerRounds && clock.now_ns() >= end_ns) break;
    for (size_t i = order_.size(); i > 1; --i) {
      std::swap(order_[i - 1], order_[rng.below(static_cast<uint32_t>(i))]);
    }
    for (const uint32_t s : order_) rounds_.add(s, time_ns(sizes_pkts_[s]));
  }
  rig_.rest();
}

ModuleProfile ModuleTimer::result() const {
  ModuleProfile profile{.rounds = static_cast<uint32_t>(rounds_.count())};
  if (sizes_pkts_.empty()) {
    profile.reason = "no batch could be measured";
    return profile;
  }
  const Fitted fitted = fit_rounds(sizes_pkts_, rounds_);
  profile.fit = fitted.fit;
  const CostLaw::Line& line = fitted.fit.line;
  profile.resampled = fitted.resampled;
  profile.doubts = fitted.doubts;
  profile.per_batch_ns =
      interval_of(fitted.resampled, line.cost_per_batch_ns, &CostLaw::Line::cost_per_batch_ns);
  profile.per_pkt_ns =
      interval_of(fitted.resampled, line.cost_per_pkt_ns, &CostLaw::Line::cost_per_pkt_ns);
  profile.max_measured_pkts = sizes_pkts_.back();
  profile.reason = reason_of(fitted.fit, fitted.law.points(), fitted.noise_ns);
  std::vector<CostLaw::Point> points(fitted.law.points().begin(), fitted.law.points().end());
  for (const uint32_t n : left_out_pkts_) points.push_back({n, fitted.law.ns(n)});
  profile.law = CostLaw(std::move(points), fitted.law.line());
  return profile;
}

// ns per batch, less the cost of reading the clock, which is measured just before.
double ModuleTimer::time_ns(uint32_t n_pkts) {
  const uint64_t begin = begin_cycles();
  const auto empty = static_cast<double>(end_cycles() - begin);
  const std::optional<uint64_t> cycles = run_at_last(rig_, n_pkts);
  // This size worked before: a failed run counts as a very long one.
  if (!cycles) return kLostNs;
  return ns_of(static_cast<double>(*cycles) - empty) / rig_.batches_of(n_pkts);
}

}  // namespace batchplane::profile
