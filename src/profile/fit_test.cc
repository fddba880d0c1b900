// SPDX-License-Identifier: BSD-3-Clause
// fit_test.cc - cost laws from made-up rounds of times, and the reasons reported for them.
#include "profile/fit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numeric>

#include "base/rng.h"
#include "profile/module_rig.h"

namespace batchplane::profile {
namespace {

constexpr uint32_t kBatchPkts = 32;

std::vector<uint32_t> sizes() {
  std::vector<uint32_t> all(kBatchPkts);
  std::iota(all.begin(), all.end(), 1U);
  return all;
}

std::vector<CostLaw::Point> times(const std::function<double(double)>& ns_of) {
  std::vector<CostLaw::Point> points;
  for (const uint32_t n : sizes()) points.push_back({n, ns_of(n)});
  return points;
}

std::string reason(const std::function<double(double)>& ns_of, double noise_ns) {
  const auto points = times(ns_of);
  return reason_of(fit_line(points), points, noise_ns);
}

TEST(FitTest, ALineThatTellsAllHasNoReason) {
  EXPECT_EQ(reason([](double n) { return 21.5 + 3.25 * n; }, 0), "");
}

TEST(FitTest, WhatALineDoesNotTellHasItsReason) {
  const auto stairs = [](double n) { return 50 + 80 * std::ceil(n / 8); };
  EXPECT_NE(reason(stairs, 0.1).find("straight line"), std::string::npos);
  EXPECT_NE(reason(stairs, 50).find("not quiet"), std::string::npos);
  const auto flat = [](double n) { return 40 + 0.1 * n + 12 * (static_cast<int>(n) % 2); };
  EXPECT_NE(reason(flat, 0).find("hardly depends"), std::string::npos);
  const auto falling = [](double n) { return 100 - n; };
  EXPECT_NE(reason(falling, 0).find("negative cost per packet, -"), std::string::npos);
  const auto steep = [](double n) { return 10 * n * n; };
  EXPECT_NE(reason(steep, 0).find("negative cost per batch, -"), std::string::npos);
}

// R^2 does not judge: a time that hardly changes has a low one.
TEST(FitTest, ALineWithoutLargeErrorsNeedsNoReason) {
  const auto flat = [](double n) { return 4000 + 0.1 * n + static_cast<int>(n) % 2; };
  ASSERT_LT(fit_line(times(flat)).r_squared, 0.9);
  EXPECT_EQ(reason(flat, 0), "");
}

// R^2 is 0.996 here: the cost per packet is lost in it.
TEST(FitTest, AnErrorAtSmallSizesIsAReason) {
  const auto first = [](double n) { return n < 2 ? 35.0 : 10 * n; };
  ASSERT_GT(fit_line(times(first)).r_squared, 0.99);
  EXPECT_NE(reason(first, 0.1).find("off at 1 packets"), std::string::npos) << reason(first, 0.1);
}

TEST(FitTest, ATimeThatCannotBeIsTold) {
  Rounds rounds(std::vector<double>(kBatchPkts, 0.0));
  for (uint32_t i = 0; i < 20 * kBatchPkts; ++i) {
    const uint32_t s = i % kBatchPkts;
    rounds.add(s, s == 2 ? -4.5 : 10 + s);
  }
  const Fitted fitted = fit_rounds(sizes(), rounds);
  EXPECT_EQ(fitted.law.ns(3), 0);
  EXPECT_EQ(fitted.doubts, Doubts{"batches of 3 packets: -4.5 ns, which cannot be: 0 is used"});
}

// Most rounds are slowed down, by up to ten times: the law is that of the quiet rounds.
TEST(FitTest, SlowRoundsDoNotCount) {
  Rounds rounds(std::vector<double>(kBatchPkts, 0.0));
  Rng rng(7);
  for (uint32_t round = 0; round < 100; ++round) {
    for (uint32_t s = 0; s < kBatchPkts; ++s) {
      const double quiet_ns = 20 + 5 * (s + 1);
      const bool is_slow = round % 3 != 0;
      rounds.add(s, quiet_ns * (is_slow ? 1.5 + 8 * rng.uniform() : 1 + 0.01 * rng.uniform()));
    }
  }
  const Fitted fitted = fit_rounds(sizes(), rounds);
  const CostLaw::Line& line = fitted.law.line();
  EXPECT_NEAR(line.cost_per_batch_ns, 20, 0.5);
  EXPECT_NEAR(line.cost_per_pkt_ns, 5, 0.05);
  EXPECT_GT(fitted.fit.r_squared, 0.99);
  EXPECT_NEAR(fitted.law.ns(7), 55, 0.6) << "the table has each size's own time";
  const Interval pkt_ns =
      interval_of(fitted.resampled, line.cost_per_pkt_ns, &CostLaw::Line::cost_per_pkt_ns);
  EXPECT_LE(pkt_ns.low, line.cost_per_pkt_ns);
  EXPECT_LE(pkt_ns.low, 5.05);
  EXPECT_GE(pkt_ns.high, 5);
  EXPECT_LT(pkt_ns.high - pkt_ns.low, 0.2);
}

// Steps of 10 ns; readings come at any time within one. Most of what disturbs takes longer than the steps that
// count; what does not raises the mean by its share.
TEST(FitTest, StepsOfTheClockAverageOut) {
  constexpr double kStepNs = 10;
  Rng rng(11);
  const auto measured = [&](double ns) {
    const double at_ns = 1000 * rng.uniform();
    return kStepNs * (std::floor((at_ns + ns) / kStepNs) - std::floor(at_ns / kStepNs));
  };
  for (const double true_ns : {0.7, 4.0, 37.0, 123.0}) {
    std::vector<double> times;
    for (int i = 0; i < 2000; ++i) {
      const bool is_slow = i % 3 == 0;
      times.push_back(measured(true_ns + (is_slow ? 60 : 0)) - measured(0));
    }
    EXPECT_NEAR(undisturbed(times, kStepNs), true_ns, 0.5);
    for (double& ns : times) ns += rng.below(5) == 0 ? 15 : 0;
    EXPECT_NEAR(undisturbed(times, kStepNs), true_ns, 15.0 / 5 + 1);
  }
}

TEST(FitTest, TheStepOfAClockIsFound) {
  std::vector<uint64_t> fine;
  std::vector<uint64_t> coarse;
  for (uint64_t i = 0; i < 4096; ++i) {
    const uint64_t cycles = 30 + i % 256 + (i % 50 == 0 ? 5000 : 0);
    fine.push_back(cycles);
    coarse.push_back((cycles + i % 26) / 26 * 26 + i % 2);
  }
  EXPECT_LE(step_of(fine), 2U);
  EXPECT_NEAR(static_cast<double>(step_of(coarse)), 26, 1);
}

TEST(FitTest, SameRoundsSameDraws) {
  Rounds rounds(std::vector<double>(kBatchPkts, 0.0));
  Rng rng(3);
  for (uint32_t i = 0; i < 20 * kBatchPkts; ++i) {
    rounds.add(i % kBatchPkts, 10 + i % kBatchPkts + rng.uniform());
  }
  const Fitted one = fit_rounds(sizes(), rounds);
  const Fitted two = fit_rounds(sizes(), rounds);
  EXPECT_EQ(one.resampled, two.resampled);
  EXPECT_GT(one.noise_ns, 0);
}

}  // namespace
}  // namespace batchplane::profile
