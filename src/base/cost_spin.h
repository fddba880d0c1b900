// SPDX-License-Identifier: BSD-3-Clause
// cost_spin.h - keeps a core busy for a given time, from a few nanoseconds on.
//
// A chain of dependent multiplications of known length per step does the work; fences on both sides
// keep the processor from overlapping it with its neighbours. From kCheckedNs on the clock is read
// as well, so that a core that runs slower or faster than at calibration still takes the right
// time.
#pragma once

#include <x86intrin.h>

#include <cstdint>

namespace batchplane {

class CostSpin {
 public:
  static constexpr double kCheckedNs = 250;

  // Calibrated on first use (a few milliseconds). Control thread.
  static const CostSpin& instance();

  // Returns after about `ns`, calls and fences included. Any thread.
  void spin(double ns) const noexcept {
    if (ns >= kCheckedNs) {
      spin_checked(ns);
    } else {
      steps((ns - overhead_ns_) * steps_per_ns_);
    }
  }

  [[nodiscard]] double overhead_ns() const { return overhead_ns_; }
  [[nodiscard]] double steps_per_ns() const { return steps_per_ns_; }

 private:
  CostSpin();

  static void steps(double wanted) noexcept {
    auto n = static_cast<int64_t>(wanted + 0.5);
    uint64_t x = 1;
    _mm_lfence();
    for (; n > 0; --n) {
      x *= 0x9e3779b97f4a7c15ULL;
      asm volatile("" : "+r"(x));
    }
    asm volatile("" : : "r"(x));
    _mm_lfence();
  }

  void spin_checked(double ns) const noexcept;

  double overhead_ns_ = 0;
  double steps_per_ns_ = 1;
  double clock_read_ns_ = 0;
};

}  // namespace batchplane
