// SPDX-License-Identifier: BSD-3-Clause
// cost_spin.h - keeps a core busy for a given time, from a few nanoseconds on.
//
// A chain of dependent multiplications of known latency does the work; fences on both sides keep the CPU from
// overlapping it with the code around it. From kCheckedNs on it also reads the clock, so that it takes the
// right time even when the core has become faster or slower since calibration.
#pragma once

#include <x86intrin.h>

#include <algorithm>
#include <cstdint>

#include "base/clock.h"

namespace batchplane {

// `Core` supplies the clock, cycles() and cycles_per_ns(), and the work, steps(n). Tests use a simulated
// core, since the timing of a real one depends on whatever else the machine does.
template <class Core>
class CostSpinOn {
 public:
  static constexpr double kCheckedNs = 250;

  // Calibrated on first use (a few milliseconds). Control thread.
  static const CostSpinOn& instance() {
    static const CostSpinOn spin;
    return spin;
  }

  CostSpinOn() {
    constexpr int64_t kFewSteps = 16;
    constexpr int64_t kManySteps = 256;
    const double few_ns = min_ns([] { Core::steps(kFewSteps); });
    const double many_ns = min_ns([] { Core::steps(kManySteps); });
    steps_per_ns_ = (kManySteps - kFewSteps) / (many_ns - few_ns);
    overhead_ns_ = std::max(0.0, few_ns - kFewSteps / steps_per_ns_);
    clock_read_ns_ = min_ns([] { static_cast<void>(Core::cycles()); });
  }

  // Returns after about `ns`, which include the call and the fences. Any thread.
  void spin(double ns) const noexcept {
    if (ns >= kCheckedNs) {
      spin_checked(ns);
    } else {
      spin_unchecked(ns);
    }
  }

  [[nodiscard]] double overhead_ns() const { return overhead_ns_; }
  [[nodiscard]] double steps_per_ns() const { return steps_per_ns_; }

 private:
  // Shortest time per call over many rounds: the time without disturbance.
  template <class Call>
  static double min_ns(Call call) {
    constexpr uint32_t kRounds = 40;
    constexpr uint32_t kCallsPerRound = 100;
    double least = 1e18;
    for (uint32_t round = 0; round < kRounds; ++round) {
      const uint64_t start = Core::cycles();
      for (uint32_t i = 0; i < kCallsPerRound; ++i) call();
      const auto cycles = static_cast<double>(Core::cycles() - start);
      least = std::min(least, cycles / Core::cycles_per_ns() / kCallsPerRound);
    }
    return least;
  }

  void spin_unchecked(double ns) const noexcept {
    Core::steps(static_cast<int64_t>((ns - overhead_ns_) * steps_per_ns_ + 0.5));
  }

  // Each pass spins for most of the remaining time, so an error in the estimated core speed shrinks with it.
  [[gnu::noinline]] void spin_checked(double ns) const noexcept {
    constexpr double kShare = 0.8;
    constexpr uint32_t kMaxPasses = 6;
    const double cycles_per_ns = Core::cycles_per_ns();
    const uint64_t start = Core::cycles();
    double left_ns = ns - clock_read_ns_;
    for (uint32_t pass = 0; pass < kMaxPasses && left_ns > kCheckedNs / 4; ++pass) {
      spin_unchecked(left_ns * kShare);
      const auto spent = static_cast<double>(Core::cycles() - start);
      left_ns = ns - clock_read_ns_ - spent / cycles_per_ns;
    }
    if (left_ns > overhead_ns_) spin_unchecked(left_ns);
  }

  double overhead_ns_ = 0;
  double steps_per_ns_ = 1;
  double clock_read_ns_ = 0;
};

// The calling core.
struct OwnCore {
  static uint64_t cycles() { return TscClock::cycles(); }
  static double cycles_per_ns() { return TscClock::instance().cycles_per_ns(); }
  static void steps(int64_t n) noexcept {
    uint64_t x = 1;
    _mm_lfence();
    for (; n > 0; --n) {
      x *= 0x9e3779b97f4a7c15ULL;
      asm volatile("" : "+r"(x));
    }
    asm volatile("" : : "r"(x));
    _mm_lfence();
  }
};

using CostSpin = CostSpinOn<OwnCore>;

}  // namespace batchplane
