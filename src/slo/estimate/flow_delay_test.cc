// SPDX-License-Identifier: BSD-3-Clause
// flow_delay_test.cc - ratios of measured to modelled delays, and what stays free of SLOs.
#include "slo/estimate/flow_delay.h"

#include <gtest/gtest.h>

#include <utility>

#include "base/rng.h"

namespace batchplane::slo {
namespace flow_delay_test {

constexpr double kSloNs = 20'000;
constexpr double kRestNs = 0.99 * kSloNs;  // with the least noise

exec::FlowPeriod measured(uint64_t delay_ns) {
  exec::FlowPeriod period{};
  period.slo_ns = static_cast<uint64_t>(kSloNs);
  period.pkts = 100'000;
  period.delay_ns = delay_ns;
  return period;
}

// Learns from a period with held packets; percentile 0: the measured delay counts as it is.
void learn(FlowDelay& delay, uint64_t measured_ns, double modelled_ns) {
  delay.begin(static_cast<uint64_t>(kSloNs));
  delay.decided();
  delay.learn(measured(measured_ns), modelled_ns, {.holds = true}, 0);
}

// SLO buckets are finer than the reported percentile up to the SLO, and much coarser beyond it.
TEST(PercentileNs, TakesTheFinerHistogramOnEachSideOfTheSlo) {
  exec::FlowPeriod period = measured(20'300);
  period.slo_buckets[23] = 90'000;
  period.slo_buckets[24] = 10'000;
  EXPECT_EQ(percentile_ns(period, 0.95), 20'300);
  period.delay_ns = 19'700;  // whatever it says: more packets were late than may be
  EXPECT_EQ(percentile_ns(period, 0.95), kSloNs);
  period.slo_buckets[23] = 100'000;
  period.slo_buckets[24] = 0;
  EXPECT_NEAR(percentile_ns(period, 0.95), (23.95 / 24) * kSloNs, 1e-6);
}

TEST(Margin, RoomForTheErrorOfAMoveGrowsWithItsDistance) {
  const Margin margin({.tolerance = 0.05});
  EXPECT_NEAR(margin.most_ns(kSloNs, 0), kRestNs / 1.05, 1);
  EXPECT_NEAR(margin.most_ns(kSloNs, 10'000), (kRestNs + 0.05 * 10'000) / 1.05, 1);
  EXPECT_NEAR(margin.most_ns(kSloNs, kRestNs), kRestNs, 1) << "no move";
  EXPECT_NEAR(margin.most_ns(kSloNs, 30'000), (kRestNs - 0.05 * 30'000) / 0.95, 1) << "back";
}

TEST(Margin, LargeErrorsOfMovesLeaveAtMostAPartOfTheSlo) {
  Margin margin({.tolerance = 0.05});
  for (int i = 0; i < 50; ++i) {
    margin.learn({.flows = 1, .error = 10, .errors = 1, .has_moved = true});
  }
  EXPECT_NEAR(margin.most_ns(kSloNs, 0), 0.85 * kSloNs, 1);
  EXPECT_NEAR(margin.most_ns(kSloNs, 19'000), (kRestNs + 0.5 * 19'000) / 1.5, 1);
  EXPECT_NEAR(margin.most_ns(kSloNs, 100'000), 0.85 * kSloNs, 1);
  for (int i = 0; i < 50; ++i) {
    margin.learn({.flows = 1, .error = 0, .errors = 1, .has_moved = true});
  }
  EXPECT_NEAR(margin.most_ns(kSloNs, 0), kRestNs, 1);
}

// Where what has to stay free is exponential, with a mean of 2 % of the SLO.
TEST(Margin, SettlesWhereTheAllowedShareOfPeriodsIsBroken) {
  for (const double allowed : {0.004, 0.02, 0.1}) {
    Margin margin({.violated_ratio = allowed});
    Rng rng(3);
    constexpr int kSeen = 100'000;
    int broken = 0;
    for (int i = 0; i < 2 * kSeen; ++i) {
      const bool is_late = rng.exponential(0.02) > margin.at_rest();
      margin.learn({.flows = 1, .is_late = is_late, .tells = true, .was_used = true});
      broken += i >= kSeen && is_late ? 1 : 0;
    }
    EXPECT_NEAR(broken, allowed * kSeen, 0.15 * allowed * kSeen) << allowed;
  }
}

// Flows of few packets are judged every few periods: those between were not kept, either.
TEST(Margin, PeriodsWithoutDelaysLeaveCareAsItIs) {
  Margin margin{Settings{}};
  margin.learn({.flows = 1, .is_late = true, .tells = true, .was_used = true});
  const double before = margin.at_rest();
  for (int i = 0; i < 1000; ++i) margin.learn({.flows = 1, .was_used = true});
  EXPECT_EQ(margin.at_rest(), before);
  margin.learn({.flows = 1, .tells = true, .was_used = true});
  EXPECT_LT(margin.at_rest(), before);
}

TEST(Margin, WhatNoiseTakesFollowsTheAllowedShareOfPeriods) {
  const auto free_share = [](double allowed) {
    Margin margin({.violated_ratio = allowed});
    for (int i = 0; i < 1000; ++i) margin.learn({.flows = 1, .error = 0.01, .errors = 1});
    return margin.at_rest();
  };
  EXPECT_NEAR(free_share(0.004), 1.25 * 2.652 * 0.01, 1e-4);
  EXPECT_NEAR(free_share(0.05), 1.25 * 1.645 * 0.01, 1e-4);
}

// A period of a flow of few packets, of which so many are half an SLO late. The others take 0.8 SLOs.
exec::FlowPeriod few(uint64_t pkts, uint64_t late_pkts) {
  exec::FlowPeriod period = measured(0);
  period.pkts = pkts;
  period.late_pkts = late_pkts;
  period.slo_buckets[19] = pkts - late_pkts;
  period.slo_buckets[25] = late_pkts;
  period.delay_max_ns = late_pkts > 0 ? 30'000 : 16'600;
  period.delay_ns = period.delay_max_ns;
  return period;
}

// A percentile of 0.95 takes 200 packets.
TEST(FlowDelay, PeriodsOfFewPacketsCountTogether) {
  FlowDelay delay;
  for (int i = 0; i < 4; ++i) {
    delay.begin(static_cast<uint64_t>(kSloNs));
    delay.decided();
    delay.learn(few(60, 0), 10'000, {.holds = true}, 0.95);
    EXPECT_EQ(delay.measured_ns() > 0, i == 3) << i;
  }
  EXPECT_NEAR(delay.own_ratio(), 1.66, 0.01);
  delay.begin(static_cast<uint64_t>(kSloNs));
  delay.learn(few(60, 0), 12'000, {.holds = true}, 0.95);
  EXPECT_EQ(delay.measured_ns(), 0) << "from the start again";
  EXPECT_NEAR(delay.usual_ns(), 1.66 * 12'000, 100) << "as if measured";
}

// One late batch of few packets is chance, ten packets more than are allowed are none.
TEST(FlowDelay, OfFewPacketsTenTooManyAreLate) {
  const auto is_late = [](uint64_t late_pkts, double percentile = 0.95) {
    FlowDelay delay;
    delay.begin(static_cast<uint64_t>(kSloNs));
    delay.decided();
    delay.learn(few(60, late_pkts), 10'000, {.holds = true}, percentile);
    return delay.is_late();
  };
  EXPECT_FALSE(is_late(13));
  EXPECT_TRUE(is_late(14));
  EXPECT_TRUE(is_late(1, 1.0)) << "none may be";
}

TEST(FlowDelay, WhereNoPacketMayBeLateEachPeriodCountsByItself) {
  FlowDelay delay;
  for (const uint64_t late_pkts : {0, 1, 0}) {
    delay.begin(static_cast<uint64_t>(kSloNs));
    delay.decided();
    delay.learn(few(60, late_pkts), 10'000, {.holds = true}, 1);
    EXPECT_EQ(delay.is_late(), late_pkts > 0);
  }
}

// Without an SLO there are no parts of it to count packets in.
TEST(FlowDelay, PeriodsOfFewPacketsWithoutAnSloCountTogether) {
  FlowDelay delay;
  for (int i = 0; i < 4; ++i) {
    exec::FlowPeriod period = measured(12'000);
    period.slo_ns = 0;
    period.pkts = 60;
    delay.begin(0);
    delay.learn(period, 10'000, {.holds = true}, 0.95);
  }
  EXPECT_NEAR(delay.own_ratio(), 1.2, 1e-3);
}

TEST(FlowDelay, APeriodOfManyPacketsCountsByItself) {
  FlowDelay delay;
  for (const uint64_t pkts : {60, 100'000}) {
    delay.begin(static_cast<uint64_t>(kSloNs));
    delay.decided();
    exec::FlowPeriod period = few(pkts, 0);
    delay.learn(period, pkts == 60 ? 1'000 : 16'600, {.holds = true}, 0.95);
  }
  EXPECT_NEAR(delay.own_ratio(), 1, 0.01);
}

TEST(FlowDelay, PacketsUnderTriggersForAnotherSloDoNotCount) {
  FlowDelay delay;
  for (int i = 0; i < 4; ++i) {
    delay.begin(static_cast<uint64_t>(kSloNs));
    delay.learn(few(60, i == 0 ? 13 : 0), 10'000, {.holds = true}, 0.95);
    EXPECT_FALSE(delay.is_late()) << i;
    delay.decided();
  }
}

// Nothing that stays free of an SLO helps against what takes half as long again.
TEST(FlowDelay, OnlyALittleLatenessCanBePrevented) {
  const auto judged = [](uint64_t delay_ns, uint64_t late_pkts) {
    FlowDelay delay;
    delay.begin(static_cast<uint64_t>(kSloNs));
    delay.decided();
    exec::FlowPeriod period = measured(delay_ns);
    period.late_pkts = late_pkts;
    delay.learn(period, 15'000, {.holds = true}, 0.95);
    return std::pair{delay.is_late(), delay.is_late_by_little()};
  };
  EXPECT_EQ(judged(18'000, 1000), std::pair(false, false));
  EXPECT_EQ(judged(21'000, 10'000), std::pair(true, true));
  EXPECT_EQ(judged(30'000, 40'000), std::pair(true, false));
}

// One period of noise moves the usual delay by a quarter of it.
TEST(FlowDelay, TheUsualDelayHasLittleOfAPeriodsNoise) {
  FlowDelay delay;
  for (int i = 0; i < 10; ++i) learn(delay, 15'000, 15'000);
  learn(delay, 19'000, 15'000);
  EXPECT_EQ(delay.measured_ns(), 19'000);
  EXPECT_NEAR(delay.usual_ns(), 16'000, 10);
}

// Rings and other tasks are as fast with buffers.
TEST(FlowDelay, PeriodsWithoutBuffersShowShorterDelaysOfSeveralTasks) {
  for (const bool crosses : {false, true}) {
    FlowDelay delay;
    delay.begin(static_cast<uint64_t>(kSloNs));
    delay.learn(measured(12'000), 15'000, {.crosses = crosses}, 0.95);
    EXPECT_NEAR(delay.own_ratio(), crosses ? 0.8 : 1, 0.001);
  }
}

TEST(FlowDelay, ErrorsCountPerChangeOfDelay) {
  FlowDelay delay;
  learn(delay, 10'000, 10'000);
  EXPECT_FALSE(delay.error_of_change()) << "the first";
  learn(delay, 16'000, 15'000);
  ASSERT_TRUE(delay.error_of_change());
  EXPECT_NEAR(*delay.error_of_change(), 0.2, 0.01) << "1 us of 5";
}

TEST(FlowDelay, FlowsThatAreAlikeShareARatio) {
  FlowDelay delay;
  learn(delay, 12'000, 10'000);
  EXPECT_NEAR(delay.own_ratio(), 1.2, 0.01);
  EXPECT_EQ(delay.ratio(), 1) << "not shared yet";
  delay.share(1.3);
  EXPECT_EQ(delay.ratio(), 1.3);
  learn(delay, 12'000, 10'000);
  EXPECT_NEAR(*delay.error(), 0, 0.01) << "what it differs from others is no error";
}

}  // namespace flow_delay_test
}  // namespace batchplane::slo
