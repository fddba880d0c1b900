// SPDX-License-Identifier: BSD-3-Clause
// cost_spin.cc - calibration of the busy loop, and its clock-checked form.
#include "base/cost_spin.h"

#include <algorithm>

#include "base/clock.h"

namespace batchplane {
namespace {

constexpr uint32_t kRounds = 40;
constexpr uint32_t kCallsPerRound = 100;

// The least time of one call over many rounds: what it takes when nothing gets in the way.
template <class Call>
double min_ns(Call call) {
  const TscClock& clock = TscClock::instance();
  double least = 1e18;
  for (uint32_t round = 0; round < kRounds; ++round) {
    const uint64_t start = TscClock::cycles();
    for (uint32_t i = 0; i < kCallsPerRound; ++i) call();
    const auto cycles = static_cast<double>(TscClock::cycles() - start);
    least = std::min(least, cycles / clock.cycles_per_ns() / kCallsPerRound);
  }
  return least;
}

}  // namespace

CostSpin::CostSpin() {
  constexpr double kFewSteps = 16;
  constexpr double kManySteps = 256;
  const double few_ns = min_ns([] { steps(kFewSteps); });
  const double many_ns = min_ns([] { steps(kManySteps); });
  steps_per_ns_ = (kManySteps - kFewSteps) / (many_ns - few_ns);
  overhead_ns_ = std::max(0.0, few_ns - kFewSteps / steps_per_ns_);
  clock_read_ns_ = min_ns([] { static_cast<void>(TscClock::cycles()); });
}

const CostSpin& CostSpin::instance() {
  static const CostSpin spin;
  return spin;
}

// Each pass spins for most of what is left, so a wrong estimate of the core's speed shrinks with
// it.
void CostSpin::spin_checked(double ns) const noexcept {
  constexpr double kShare = 0.8;
  constexpr uint32_t kMaxPasses = 6;
  const double cycles_per_ns = TscClock::instance().cycles_per_ns();
  const uint64_t start = TscClock::cycles();
  double left_ns = ns - clock_read_ns_;
  for (uint32_t pass = 0; pass < kMaxPasses && left_ns > kCheckedNs / 4; ++pass) {
    steps((left_ns * kShare - overhead_ns_) * steps_per_ns_);
    const auto spent = static_cast<double>(TscClock::cycles() - start);
    left_ns = ns - clock_read_ns_ - spent / cycles_per_ns;
  }
  if (left_ns > overhead_ns_) steps((left_ns - overhead_ns_) * steps_per_ns_);
}

}  // namespace batchplane
