// SPDX-License-Identifier: BSD-3-Clause
// clock.h - the time-stamp counter (TSC), read as cycles or as nanoseconds since calibration.
#pragma once

#include <x86intrin.h>

#include <cstdint>

namespace batchplane {

// Converts TSC cycles to nanoseconds by one 64x64 multiplication: ns = cycles * mult >> 32.
// Calibrated once per process; safe to share between threads afterwards.
class TscClock {
 public:
  // Calibrates against CLOCK_MONOTONIC_RAW on first use (about 20 ms). Control thread.
  static const TscClock& instance();

  [[nodiscard]] static uint64_t cycles() { return __rdtsc(); }
  [[nodiscard]] uint64_t now_ns() const { return to_ns(__rdtsc() - base_cycles_); }
  [[nodiscard]] uint64_t to_ns(uint64_t cycles) const {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(cycles) * mult_) >> 32);
  }
  // What now_ns() would have returned when cycles() was read.
  [[nodiscard]] uint64_t reading_ns(uint64_t cycles) const { return to_ns(cycles - base_cycles_); }
  [[nodiscard]] uint64_t to_cycles(double ns) const {
    return static_cast<uint64_t>(ns * cycles_per_ns_);
  }
  [[nodiscard]] double cycles_per_ns() const { return cycles_per_ns_; }

 private:
  TscClock();

  uint64_t base_cycles_;
  uint64_t mult_;
  double cycles_per_ns_;
};

}  // namespace batchplane
