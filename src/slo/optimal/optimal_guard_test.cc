// SPDX-License-Identifier: BSD-3-Clause
// optimal_guard_test.cc - what was measured against what is solved: periods made by hand.
#include "slo/optimal/optimal_guard.h"

#include <gtest/gtest.h>

namespace batchplane::slo {
namespace optimal_guard_test {

using Triggers = std::vector<uint32_t>;
const Triggers kBypassed = {0, 0};
const Triggers kSmall = {4, 6};
const Triggers kLarge = {8, 12};
constexpr double kRate = 4e-3;  // packets per ns, bypassed

// So many of the late packets that one flow may have; of 2000 packets, 5 %.
RateGuard::Period period_of(double rate, double late = 0) {
  return {.is_comparable = true,
          .is_kept = late <= 1,
          .rate = rate,
          .late = {late},
          .chance = {0.08},
          .work_ns = 300,
          .costs_ns = 300};
}

const std::vector<uint64_t> kLimits = {20'000, 30'000};

void observe(RateGuard& guard, const Triggers& triggers, const RateGuard::Period& period) {
  guard.observe(period, triggers, kLimits);
}

TEST(RateGuard, GoesBackToWhatWasFaster) {
  RateGuard guard;
  observe(guard, kBypassed, period_of(kRate));
  EXPECT_DOUBLE_EQ(guard.bypassed_rate(), kRate);
  // The model promises a third more; it is a tenth less.
  ASSERT_TRUE(guard.accepts(kLarge, 1.3 * kRate, false));
  observe(guard, kLarge, period_of(0.9 * kRate));
  EXPECT_FALSE(guard.accepts(kLarge, 1.3 * kRate, false));
  EXPECT_EQ(guard.choice(), RateGuard::Choice::kMeasured);
  EXPECT_EQ(guard.best()->triggers_pkts, kBypassed);
  // Something else has to wait, and to promise more than that by as much as the model was wrong.
  observe(guard, kBypassed, period_of(kRate));
  EXPECT_GT(guard.periods_left(), 0U);
  EXPECT_FALSE(guard.accepts(kSmall, 1.3 * kRate, false));
  while (guard.periods_left() > 0) {
    guard.accepts(kBypassed, kRate, false);
    observe(guard, kBypassed, period_of(kRate));
  }
  EXPECT_TRUE(guard.accepts(kSmall, 1.3 * kRate, false));
}

TEST(RateGuard, KeepsTheFastestWithItsLimitsWhateverTheModelSays) {
  RateGuard guard;
  observe(guard, kBypassed, period_of(kRate));
  ASSERT_TRUE(guard.accepts(kLarge, 1.3 * kRate, false));
  observe(guard, kLarge, period_of(1.3 * kRate, 0.2));
  // The model no longer thinks that this fits, and has something slower.
  EXPECT_FALSE(guard.accepts(kSmall, 1.1 * kRate, false));
  EXPECT_EQ(guard.best()->triggers_pkts, kLarge);
  EXPECT_EQ(guard.best()->limits_ns, kLimits);
  EXPECT_TRUE(guard.accepts(kLarge, 1.1 * kRate, false));
}

TEST(RateGuard, LeavesWhatWasLateOrSoonMayBe) {
  for (const double late : {1.2, 0.9}) {
    RateGuard guard;
    observe(guard, kBypassed, period_of(kRate));
    ASSERT_TRUE(guard.accepts(kLarge, 1.3 * kRate, false));
    observe(guard, kLarge, period_of(1.3 * kRate, late));
    EXPECT_EQ(guard.was_kept(), late <= 1);
    EXPECT_EQ(guard.best()->triggers_pkts, kBypassed) << late;
    ASSERT_TRUE(guard.may_retreat());
    EXPECT_FALSE(guard.retreat(kSmall, kRate));  // would bring nothing
    EXPECT_TRUE(guard.retreat(kSmall, 1.2 * kRate));
    observe(guard, kSmall, period_of(1.2 * kRate, 0.1));
    EXPECT_FALSE(guard.may_retreat());
    EXPECT_EQ(guard.best()->triggers_pkts, kSmall);
  }
}

TEST(RateGuard, WaitsLongerAfterEachTryThatWasLate) {
  RateGuard guard;
  observe(guard, kBypassed, period_of(kRate));
  uint32_t last = 0;
  for (uint32_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(guard.accepts(kLarge, 1.3 * kRate, false)) << i;
    observe(guard, kLarge, period_of(1.3 * kRate, 3));
    EXPECT_GT(guard.periods_left(), last);
    last = guard.periods_left();
    while (guard.periods_left() > 0) {
      EXPECT_FALSE(guard.accepts(kLarge, 1.3 * kRate, false));
      observe(guard, kBypassed, period_of(kRate));
    }
  }
}

TEST(RateGuard, ProbesOnlyWhereTheFastestIsInForceAndTriesLessEachTime) {
  RateGuard guard;
  observe(guard, kBypassed, period_of(kRate));
  ASSERT_TRUE(guard.accepts(kBypassed, kRate, false));
  ASSERT_TRUE(guard.may_probe());
  const double share = guard.probe_share();
  guard.probe(kSmall, 1.1 * kRate);
  EXPECT_EQ(guard.choice(), RateGuard::Choice::kProbe);
  observe(guard, kSmall, period_of(1.1 * kRate, 2));
  EXPECT_LT(guard.probe_share(), share);
  EXPECT_FALSE(guard.may_probe());
}

TEST(RateGuard, ForgetsWhenTrafficOrPromisesAreOthers) {
  for (const bool is_other_work : {true, false}) {
    RateGuard guard;
    observe(guard, kBypassed, period_of(kRate));
    observe(guard, kLarge, period_of(1.3 * kRate));
    RateGuard::Period other = period_of(0.5 * kRate);
    if (is_other_work) other.work_ns *= 2;
    other.has_other_slos = !is_other_work;
    observe(guard, kSmall, other);
    EXPECT_EQ(guard.bypassed_rate(), 0);
    if (is_other_work) {
      ASSERT_NE(guard.best(), nullptr);
      EXPECT_EQ(guard.best()->triggers_pkts, kSmall);
    } else {
      // The period was not of triggers that are meant for these promises.
      EXPECT_EQ(guard.best(), nullptr);
      EXPECT_FALSE(guard.may_retreat());
      EXPECT_TRUE(guard.accepts(kLarge, 1, false));
    }
  }
}

// What is known of costs changes with the batches that they are measured with.
TEST(RateGuard, RemembersTheBypassedRateWhenCostsAreOthers) {
  RateGuard guard;
  observe(guard, kBypassed, period_of(kRate));
  observe(guard, kSmall, period_of(0.8 * kRate));
  RateGuard::Period other = period_of(0.9 * kRate);
  other.costs_ns *= 1.3;
  observe(guard, kLarge, other);
  EXPECT_DOUBLE_EQ(guard.bypassed_rate(), kRate);
  EXPECT_FALSE(guard.accepts(kSmall, 0.8 * kRate, false));
  EXPECT_EQ(guard.choice(), RateGuard::Choice::kMeasured);
}

// One late period without buffers is the machine's, many are not.
TEST(RateGuard, RemembersTheBypassedRateAfterOneLatePeriod) {
  RateGuard guard;
  for (int i = 0; i < 3; ++i) observe(guard, kBypassed, period_of(kRate));
  observe(guard, kBypassed, period_of(kRate, 2));
  EXPECT_DOUBLE_EQ(guard.bypassed_rate(), kRate);
  for (int i = 0; i < 3; ++i) observe(guard, kBypassed, period_of(kRate, 2));
  EXPECT_EQ(guard.bypassed_rate(), 0);
}

TEST(RateGuard, LeavesOutPeriodsThatSayNothing) {
  for (const bool is_excused : {true, false}) {
    RateGuard guard;
    observe(guard, kBypassed, period_of(kRate));
    RateGuard::Period other = period_of(0.5 * kRate, 3);
    other.is_excused = is_excused;
    other.is_comparable = is_excused;
    observe(guard, kLarge, other);
    EXPECT_DOUBLE_EQ(guard.bypassed_rate(), kRate);
    EXPECT_TRUE(guard.accepts(kSmall, 0.1 * kRate, false)) << "the model goes on alone";
    // Below saturation for long, nothing of it holds any more; a machine is slow while it is.
    for (int i = 0; i < 60; ++i) observe(guard, kLarge, other);
    EXPECT_EQ(guard.bypassed_rate(), is_excused ? kRate : 0);
  }
}

// A machine that gets slower does so for all triggers.
TEST(RateGuard, MovesAllRatesWithTheMachine) {
  RateGuard guard;
  observe(guard, kBypassed, period_of(kRate));
  for (int i = 0; i < 2; ++i) observe(guard, kLarge, period_of(1.3 * kRate));
  for (int i = 0; i < 30; ++i) observe(guard, kLarge, period_of(0.65 * kRate));
  EXPECT_NEAR(guard.bypassed_rate(), 0.5 * kRate, 0.01 * kRate);
  EXPECT_EQ(guard.best()->triggers_pkts, kLarge);
}

// Of two points that are as late in the mean, the one whose periods are all alike stays.
TEST(RateGuard, SeesChanceInWhatPeriodsShow) {
  for (const double swing : {0.0, 0.25}) {
    RateGuard guard;
    observe(guard, kBypassed, period_of(kRate));
    for (uint32_t i = 0; i < 40 && guard.best() != nullptr; ++i) {
      observe(guard, kLarge, period_of(1.3 * kRate, 0.62 + (i % 2 == 0 ? swing : -swing)));
      if (guard.may_retreat()) break;
    }
    EXPECT_EQ(guard.may_retreat(), swing > 0) << swing;
  }
}

// Where an overload decides instead, nothing of an earlier choice holds: its point may be gone.
TEST(RateGuard, LeavesNothingOfAChoiceThatWasSetAside) {
  RateGuard guard;
  observe(guard, kBypassed, period_of(kRate));
  ASSERT_TRUE(guard.accepts(kLarge, 1.3 * kRate, false));
  observe(guard, kLarge, period_of(0.9 * kRate));
  ASSERT_FALSE(guard.accepts(kLarge, 1.3 * kRate, false));
  ASSERT_EQ(guard.choice(), RateGuard::Choice::kMeasured);
  guard.set_aside();
  EXPECT_EQ(guard.choice(), RateGuard::Choice::kSolved);
  // Nor is a rate judged by what was predicted for other triggers.
  observe(guard, kBypassed, period_of(0.2 * kRate));
  EXPECT_EQ(guard.periods_left(), 3U) << "of the try that failed before";
}

}  // namespace optimal_guard_test
}  // namespace batchplane::slo
