// SPDX-License-Identifier: BSD-3-Clause
// fit_test.cc - cost laws of made-up times: exact where times are exact, bounded where they are
// not.
#include "profile/fit.h"

#include <gtest/gtest.h>

#include <functional>

#include "base/rng.h"

namespace batchplane::profile {
namespace {

constexpr uint32_t kBatchPkts = 32;

std::vector<double> sizes() {
  std::vector<double> all;
  for (uint32_t n = 1; n <= kBatchPkts; ++n) all.push_back(n);
  return all;
}

std::vector<double> times(const std::function<double(double)>& ns_of) {
  std::vector<double> ns;
  for (const double n : sizes()) ns.push_back(ns_of(n));
  return ns;
}

TEST(FitTest, AStraightLineIsFoundExactly) {
  const auto ns = times([](double n) { return 21.5 + 3.25 * n; });
  const CostLaw law = fit_law(sizes(), ns);
  EXPECT_NEAR(law.per_batch_ns, 21.5, 1e-9);
  EXPECT_NEAR(law.per_pkt_ns, 3.25, 1e-9);
  EXPECT_NEAR(law.r_squared, 1, 1e-9);
  EXPECT_FALSE(law.is_clamped);
  EXPECT_EQ(reason_of(law, sizes(), ns, 0), "");
}

TEST(FitTest, BatchinessComparesAFullBatchWithSingles) {
  const CostLaw law{.per_batch_ns = 30, .per_pkt_ns = 10};
  EXPECT_DOUBLE_EQ(law.batchiness(32), (30.0 + 320) / (32 * 40.0));
  EXPECT_DOUBLE_EQ((CostLaw{.per_pkt_ns = 7}.batchiness(32)), 1.0);
  EXPECT_DOUBLE_EQ((CostLaw{.per_batch_ns = 7}.batchiness(32)), 1.0 / 32);
  EXPECT_DOUBLE_EQ(CostLaw{}.batchiness(32), 1.0);
}

TEST(FitTest, ANegativeSlopeBecomesTheMean) {
  const auto ns = times([](double n) { return 100 - n; });
  const CostLaw law = fit_law(sizes(), ns);
  EXPECT_TRUE(law.is_clamped);
  EXPECT_EQ(law.per_pkt_ns, 0);
  EXPECT_NEAR(law.per_batch_ns, 100 - 16.5, 1e-9);
  EXPECT_LT(law.r_squared, kGoodRSquared);
  EXPECT_NE(reason_of(law, sizes(), ns, 0).find("negative cost per packet"), std::string::npos);
}

TEST(FitTest, ANegativeStartBecomesALineThroughTheOrigin) {
  const auto ns = times([](double n) { return std::max(0.0, -40 + 10 * n); });
  const CostLaw law = fit_law(sizes(), ns);
  EXPECT_TRUE(law.is_clamped);
  EXPECT_EQ(law.per_batch_ns, 0);
  EXPECT_GT(law.per_pkt_ns, 7);
  EXPECT_LT(law.per_pkt_ns, 10);
  EXPECT_NE(reason_of(law, sizes(), ns, 0).find("negative cost per batch"), std::string::npos);
}

TEST(FitTest, AConstantIsExplained) {
  const auto ns = times([](double) { return 4000.0; });
  const CostLaw law = fit_law(sizes(), ns);
  EXPECT_NEAR(law.per_batch_ns, 4000, 1e-9);
  EXPECT_EQ(law.per_pkt_ns, 0);
  EXPECT_EQ(law.r_squared, 1);
}

TEST(FitTest, OneSizeAloneIsAConstant) {
  const CostLaw law = fit_law(std::vector<double>{4}, std::vector<double>{50});
  EXPECT_DOUBLE_EQ(law.at(4), 50);
  EXPECT_GE(law.per_batch_ns, 0);
}

TEST(FitTest, ALowRSquaredHasItsReason) {
  const auto stairs = times([](double n) { return n <= 16 ? 50.0 : 500.0; });
  const CostLaw law = fit_law(sizes(), stairs);
  ASSERT_LT(law.r_squared, kGoodRSquared);
  EXPECT_NE(reason_of(law, sizes(), stairs, 0.1).find("straight line"), std::string::npos);
  EXPECT_NE(reason_of(law, sizes(), stairs, 400).find("not quiet"), std::string::npos);
  uint32_t i = 0;
  const auto flat = times([&](double n) { return 4000 + 0.1 * n + (++i % 2); });
  const CostLaw hardly = fit_law(sizes(), flat);
  ASSERT_LT(hardly.r_squared, kGoodRSquared);
  EXPECT_NE(reason_of(hardly, sizes(), flat, 0).find("hardly depends"), std::string::npos);
}

TEST(FitTest, PercentileIsByNearestRank) {
  EXPECT_EQ(percentile({5, 1, 4, 2, 3}, 0), 1);
  EXPECT_EQ(percentile({5, 1, 4, 2, 3}, 0.5), 3);
  EXPECT_EQ(percentile({5, 1, 4, 2, 3}, 1), 5);
  EXPECT_EQ(percentile({7}, 0.1), 7);
}

// Most rounds are slowed down, by up to ten times: the law is that of the quiet ones.
TEST(FitTest, SlowRoundsDoNotCount) {
  Rounds rounds(kBatchPkts);
  Rng rng(7);
  for (uint32_t round = 0; round < 100; ++round) {
    for (uint32_t s = 0; s < kBatchPkts; ++s) {
      const double quiet_ns = 20 + 5 * (s + 1);
      const bool is_slow = round % 3 != 0;
      rounds.add(s, quiet_ns * (is_slow ? 1.5 + 8 * rng.uniform() : 1 + 0.01 * rng.uniform()));
    }
  }
  const Fitted fitted = fit_rounds(sizes(), rounds);
  EXPECT_NEAR(fitted.law.per_batch_ns, 20, 0.5);
  EXPECT_NEAR(fitted.law.per_pkt_ns, 5, 0.05);
  EXPECT_GT(fitted.law.r_squared, kGoodRSquared);
  EXPECT_LE(fitted.per_batch_ns.low, fitted.law.per_batch_ns);
  EXPECT_GE(fitted.per_batch_ns.high, fitted.law.per_batch_ns);
  EXPECT_LE(fitted.per_pkt_ns.low, 5.05);
  EXPECT_GE(fitted.per_pkt_ns.high, 5);
  EXPECT_LT(fitted.per_pkt_ns.high - fitted.per_pkt_ns.low, 0.2);
}

TEST(FitTest, SameRoundsSameIntervals) {
  Rounds rounds(kBatchPkts);
  Rng rng(3);
  for (uint32_t i = 0; i < 20 * kBatchPkts; ++i) {
    rounds.add(i % kBatchPkts, 10 + i % kBatchPkts + rng.uniform());
  }
  const Fitted one = fit_rounds(sizes(), rounds);
  const Fitted two = fit_rounds(sizes(), rounds);
  EXPECT_EQ(one.per_batch_ns.low, two.per_batch_ns.low);
  EXPECT_EQ(one.per_pkt_ns.high, two.per_pkt_ns.high);
  EXPECT_GT(one.noise_ns, 0);
}

}  // namespace
}  // namespace batchplane::profile
