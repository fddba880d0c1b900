// SPDX-License-Identifier: BSD-3-Clause
// cost_spin_test.cc - the busy loop takes the time it was asked for.
#include "base/cost_spin.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/clock.h"

namespace batchplane {
namespace {

// The least of many averages: other programs on the machine only ever add to it.
double min_ns_of(double ns) {
  const CostSpin& spin = CostSpin::instance();
  double least = 1e18;
  for (int round = 0; round < 60; ++round) {
    constexpr int kCalls = 20;
    const uint64_t start = TscClock::cycles();
    for (int i = 0; i < kCalls; ++i) spin.spin(ns);
    const auto cycles = static_cast<double>(TscClock::cycles() - start);
    least = std::min(least, cycles / TscClock::instance().cycles_per_ns() / kCalls);
  }
  return least;
}

TEST(CostSpin, TakesTheTimeAskedFor) {
  // Wide bounds: a shared machine may change its speed between calibration and here. From
  // kCheckedNs on the clock corrects that.
  for (const double ns : {30.0, 60.0, 120.0}) {
    EXPECT_GT(min_ns_of(ns), 0.5 * ns);
    EXPECT_LT(min_ns_of(ns), 2.0 * ns);
  }
  for (const double ns : {300.0, 1000.0, 5000.0}) {
    EXPECT_GT(min_ns_of(ns), 0.85 * ns);
    EXPECT_LT(min_ns_of(ns), 1.15 * ns);
  }
}

TEST(CostSpin, CalibrationIsPlausible) {
  EXPECT_GT(CostSpin::instance().steps_per_ns(), 0.1);
  EXPECT_LT(CostSpin::instance().steps_per_ns(), 3.0);
  EXPECT_GE(CostSpin::instance().overhead_ns(), 0.0);
  EXPECT_LT(CostSpin::instance().overhead_ns(), 100.0);
}

}  // namespace
}  // namespace batchplane
