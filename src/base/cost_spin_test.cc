// SPDX-License-Identifier: BSD-3-Clause
// cost_spin_test.cc - the busy loop takes the requested time: exactly on a simulated core, and never less on
// this one.
#include "base/cost_spin.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace batchplane {
namespace {

// Two cycles per nanosecond. A step takes 0.75 ns unless a test changes it, a call adds 6 ns, and a clock
// reading 10 ns.
struct CountedCore {
  static inline double now_ns = 0;
  static inline double step_ns = 0.75;
  static uint64_t cycles() {
    now_ns += 10;
    return static_cast<uint64_t>(std::llround(now_ns * cycles_per_ns()));
  }
  static double cycles_per_ns() { return 2; }
  static void steps(int64_t n) {
    now_ns += 6 + step_ns * static_cast<double>(std::max<int64_t>(n, 0));
  }
};

class CostSpinTest : public testing::Test {
 protected:
  CostSpinTest() { CountedCore::step_ns = 0.75; }
  ~CostSpinTest() override { CountedCore::step_ns = 0.75; }

  double spent_ns(double ns) const {
    const double start_ns = CountedCore::now_ns;
    spin_.spin(ns);
    return CountedCore::now_ns - start_ns;
  }

  // Calibrated at the normal speed, which the constructor sets.
  const CostSpinOn<CountedCore> spin_;
};

TEST_F(CostSpinTest, CalibrationFindsStepsAndOverhead) {
  EXPECT_NEAR(spin_.steps_per_ns(), 1 / 0.75, 0.001);
  EXPECT_NEAR(spin_.overhead_ns(), 6, 0.2);
}

TEST_F(CostSpinTest, TakesTheTimeAskedFor) {
  // Exact to one step without a clock reading; with one, longer by up to one reading.
  for (const double ns : {10.0, 30.0, 60.0, 120.0, 249.0}) EXPECT_NEAR(spent_ns(ns), ns, 1) << ns;
  for (const double ns : {250.0, 300.0, 1000.0, 5000.0, 1e6}) {
    EXPECT_NEAR(spent_ns(ns), ns, 11) << ns;
  }
  EXPECT_NEAR(spent_ns(0), 6, 1e-9) << "a call is the least there is";
}

TEST_F(CostSpinTest, FromThereOnTheClockCorrectsACoreOfAnotherSpeed) {
  for (const double factor : {0.5, 0.8, 1.2}) {
    CountedCore::step_ns = 0.75 * factor;
    EXPECT_NEAR(spent_ns(100), 6 + 94 * factor, 1) << "too short to look at the clock";
    for (const double ns : {300.0, 1000.0, 5000.0}) EXPECT_NEAR(spent_ns(ns), ns, 0.15 * ns) << ns;
  }
}

// Other load can only lengthen the spin, so there is no upper bound to test.
TEST(CostSpin, IsNeverShorterOnThisCore) {
  const CostSpin& spin = CostSpin::instance();
  EXPECT_GT(spin.steps_per_ns(), 0);
  EXPECT_TRUE(std::isfinite(spin.steps_per_ns()));
  EXPECT_GE(spin.overhead_ns(), 0.0);
  for (const double ns : {1000.0, 5000.0, 50'000.0}) {
    const uint64_t start = TscClock::cycles();
    spin.spin(ns);
    const auto cycles = static_cast<double>(TscClock::cycles() - start);
    EXPECT_GT(cycles / TscClock::instance().cycles_per_ns(), 0.8 * ns);
  }
}

}  // namespace
}  // namespace batchplane
