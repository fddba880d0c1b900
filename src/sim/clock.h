// SPDX-License-Identifier: BSD-3-Clause
// clock.h - virtual time: it advances only by the specified costs of modules and loops.
//
// Counted in ticks of 2^-10 ns, so that costs below a nanosecond add up exactly; all other code
// sees whole nanoseconds.
#pragma once

#include <cstdint>

namespace batchplane::sim {

inline constexpr uint32_t kTicksPerNsLog2 = 10;
inline constexpr uint64_t kTicksPerNs = 1ULL << kTicksPerNsLog2;

[[nodiscard]] inline uint64_t to_ticks(double ns) {
  // As llround, which is a call.
  const double ticks = ns * static_cast<double>(kTicksPerNs);
  const auto whole = static_cast<int64_t>(ticks);
  return static_cast<uint64_t>(whole) + (ticks - static_cast<double>(whole) >= 0.5 ? 1 : 0);
}

// Owner: one simulated worker.
struct Clock {
  uint64_t ticks = 0;
  uint64_t read_ticks = 0;  // cost of one reading
  uint64_t now_ns() {
    ticks += read_ticks;
    return ticks >> kTicksPerNsLog2;
  }
};

}  // namespace batchplane::sim
