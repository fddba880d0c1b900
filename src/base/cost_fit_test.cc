// SPDX-License-Identifier: BSD-3-Clause
// cost_fit_test.cc - fits of made-up times: exact for exact times, otherwise optimal, with the true errors.
#include "base/cost_fit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "base/rng.h"

namespace batchplane {
namespace {

using Line = CostLaw::Line;
using Point = CostLaw::Point;

std::vector<Point> times(const std::function<double(double)>& ns_of, uint32_t max_pkts = 32) {
  std::vector<Point> points;
  for (uint32_t n = 1; n <= max_pkts; ++n) points.push_back({n, ns_of(n)});
  return points;
}

// The loss that the fit minimises: quadratic in relative errors up to 5 %, linear beyond.
double loss(const Line& line, const std::vector<Point>& points) {
  double sum = 0;
  for (const Point& point : points) {
    const double error = std::abs(line.ns(point.size_pkts) - point.ns) / std::max(point.ns, 1.0);
    sum += error <= 0.05 ? error * error / 2 : 0.05 * (error - 0.025);
  }
  return sum;
}

// The minimum of a convex function.
double min_of(double low, double high, const std::function<double(double)>& value_of) {
  for (int i = 0; i < 100; ++i) {
    const double third = (high - low) / 3;
    if (value_of(low + third) < value_of(high - third)) {
      high -= third;
    } else {
      low += third;
    }
  }
  return value_of(low);
}

// The least loss by a general search: the loss is convex in both costs together, and therefore also in one of
// them with the best choice of the other.
double least_loss(const std::vector<Point>& points) {
  double max_ns = 0;
  for (const Point& point : points) max_ns = std::max(max_ns, point.ns);
  return min_of(0, max_ns, [&](double pkt_ns) {
    return min_of(0, max_ns, [&](double batch_ns) { return loss({batch_ns, pkt_ns}, points); });
  });
}

TEST(CostFitTest, AStraightLineIsFoundExactly) {
  const CostFit fit = fit_line(times([](double n) { return 21.5 + 3.25 * n; }));
  EXPECT_NEAR(fit.line.cost_per_batch_ns, 21.5, 1e-9);
  EXPECT_NEAR(fit.line.cost_per_pkt_ns, 3.25, 1e-9);
  EXPECT_NEAR(fit.r_squared, 1, 1e-9);
  EXPECT_NEAR(fit.small_error_ratio, 0, 1e-9);
  EXPECT_NEAR(fit.left_out_error_ratio, 0, 1e-9);
  EXPECT_FALSE(fit.is_clamped);
}

TEST(CostFitTest, NoLineHasLessError) {
  Rng rng(9);
  for (int round = 0; round < 40; ++round) {
    const double batch_ns = round % 4 == 0 ? 0 : 300 * rng.uniform();
    const double pkt_ns = round % 4 == 1 ? 0 : 30 * rng.uniform();
    const double noise = 0.3 * rng.uniform();
    const auto points = times([&](double n) {
      const double stall = rng.below(8) == 0 ? 3 : 1;
      return (5 + batch_ns + pkt_ns * n) * stall * (1 + noise * (rng.uniform() - 0.5));
    });
    const CostFit fit = fit_line(points);
    EXPECT_GE(fit.line.cost_per_batch_ns, 0);
    EXPECT_GE(fit.line.cost_per_pkt_ns, 0);
    const double least = least_loss(points);
    EXPECT_LE(loss(fit.line, points), least + 1e-6 * (1 + least)) << round;
  }
}

// Every fifth size was measured while another program ran: the line is that of the other sizes.
TEST(CostFitTest, AFewSizesThatDoNotFitMoveNothing) {
  const auto points = times([](double n) {
    const double ns = 100 + 5 * n;
    return static_cast<int>(n) % 5 == 0 ? 3 * ns : ns;
  });
  const CostFit fit = fit_line(points);
  EXPECT_NEAR(fit.line.cost_per_batch_ns, 100, 1.5);
  EXPECT_NEAR(fit.line.cost_per_pkt_ns, 5, 0.15);
}

// Full batches take 40 times as long as single packets and are off by 2 %: least squares in nanoseconds would
// push that error into the cost of a single packet.
TEST(CostFitTest, SmallBatchesCountAsMuchAsLargeOnes) {
  const auto points = times([](double n) { return 4 + 6 * n + (n > 24 ? 8 : 0); });
  const CostFit fit = fit_line(points);
  EXPECT_LT(fit.small_error_ratio, 0.03);
}

TEST(CostFitTest, TheErrorAtSmallSizesIsTold) {
  // The first packet costs as much as ten: no line can describe that.
  const auto points = times([](double n) { return n < 2 ? 150.0 : 40 + 10 * n; });
  const CostFit fit = fit_line(points);
  EXPECT_NEAR(fit.line.cost_per_batch_ns, 40, 4);
  EXPECT_NEAR(fit.small_error_ratio, 1 - fit.line.ns(1) / 150, 1e-12);
  EXPECT_GT(fit.small_error_ratio, 0.6);
  EXPECT_GT(fit.r_squared, 0.9) << "which R^2 does not tell";
}

// One of four sizes is left out of the fit: on a step function its error is about that of the others.
TEST(CostFitTest, TheErrorAtSizesLeftOutIsTold) {
  const auto stairs = times([](double n) { return n <= 16 ? 50.0 : 500.0; });
  EXPECT_GT(fit_line(stairs).left_out_error_ratio, 0.3);
  Rng rng(2);
  const auto noisy = times([&](double n) { return (90 + 4 * n) * (0.95 + 0.1 * rng.uniform()); });
  EXPECT_GT(fit_line(noisy).left_out_error_ratio, 0.01);
  EXPECT_LT(fit_line(noisy).left_out_error_ratio, 0.05);
}

TEST(CostFitTest, ANegativeSlopeBecomesAConstant) {
  const auto points = times([](double n) { return 100 - n; });
  const CostFit fit = fit_line(points);
  EXPECT_TRUE(fit.is_clamped);
  EXPECT_EQ(fit.line.cost_per_pkt_ns, 0);
  EXPECT_NEAR(fit.line.cost_per_batch_ns, 82, 3);
  EXPECT_LT(fit.r_squared, 0.1);
}

TEST(CostFitTest, ANegativeStartBecomesALineThroughTheOrigin) {
  const CostFit fit = fit_line(times([](double n) { return 10 * n * std::sqrt(n); }));
  EXPECT_TRUE(fit.is_clamped);
  EXPECT_EQ(fit.line.cost_per_batch_ns, 0);
  EXPECT_GT(fit.line.cost_per_pkt_ns, 20);
  EXPECT_LT(fit.line.cost_per_pkt_ns, 50);
}

TEST(CostFitTest, WhatIsNothingIsNotClamped) {
  const CostFit constant = fit_line(times([](double) { return 4000.0; }));
  EXPECT_NEAR(constant.line.cost_per_batch_ns, 4000, 1e-6);
  EXPECT_NEAR(constant.line.cost_per_pkt_ns, 0, 1e-9);
  EXPECT_EQ(constant.r_squared, 1);
  EXPECT_FALSE(constant.is_clamped);
  const CostFit origin = fit_line(times([](double n) { return 7.3 * n; }));
  EXPECT_NEAR(origin.line.cost_per_pkt_ns, 7.3, 1e-9);
  EXPECT_FALSE(origin.is_clamped);
  EXPECT_EQ(fit_line(times([](double) { return 0.0; })).line, (Line{0, 0}));
}

TEST(CostFitTest, OneSizeAloneIsAConstant) {
  const CostFit fit = fit_line(std::vector<Point>{{4, 50}});
  EXPECT_DOUBLE_EQ(fit.line.ns(4), 50);
  EXPECT_GE(fit.line.cost_per_batch_ns, 0);
  EXPECT_EQ(fit.left_out_error_ratio, 0);
}

CostSamples samples_of(const std::vector<uint32_t>& sizes, const Line& line) {
  CostSamples samples;
  for (const uint32_t n : sizes) samples.add(n, static_cast<uint64_t>(std::llround(line.ns(n))));
  return samples;
}

TEST(CostFitTest, SampledExecutionsTellBothCostsWhereSizesVary) {
  const CostSamples samples = samples_of({1, 4, 8, 16, 24, 32}, {100, 7});
  const Line line = fit_line(CostSums(samples, 0.5), {}, 0);
  EXPECT_NEAR(line.cost_per_batch_ns, 50, 1e-9);
  EXPECT_NEAR(line.cost_per_pkt_ns, 3.5, 1e-9);
}

TEST(CostFitTest, SampledExecutionsOfOneSizeKeepTheProportion) {
  const CostSums sums(samples_of({20, 20, 20, 20}, {1600, 80}));
  const Line doubled = fit_line(sums, {800, 40}, 0.2);
  EXPECT_NEAR(doubled.cost_per_batch_ns, 1600, 1e-9);
  EXPECT_NEAR(doubled.cost_per_pkt_ns, 80, 1e-9);
  const Line by_pkt = fit_line(sums, {0, 1}, 0);
  EXPECT_NEAR(by_pkt.cost_per_batch_ns, 0, 1e-9);
  EXPECT_NEAR(by_pkt.cost_per_pkt_ns, 160, 1e-9);
}

// In between: at exactly the even variation, samples and shape count half each.
TEST(CostFitTest, VariationDecidesHowFarSamplesAreBelieved) {
  const std::vector<uint32_t> sizes{16, 24};  // the standard deviation is a fifth of the mean
  const CostSums sums(samples_of(sizes, {200, 40}));
  EXPECT_NEAR(sums.variation(), 0.2, 1e-12);
  const Line half = fit_line(sums, {0, 1}, 0.2);
  EXPECT_NEAR(half.cost_per_pkt_ns, (40 + 1000.0 / 20) / 2, 1e-9);
  EXPECT_NEAR(half.ns(20), 1000, 1e-9) << "the mean time is known";
}

TEST(CostFitTest, NeitherCostOfSampledExecutionsIsNegative) {
  CostSamples falling;
  CostSamples steep;
  for (uint64_t n = 1; n <= 32; ++n) {
    falling.add(n, 1000 - 10 * n);
    steep.add(n, n * n * 10);
  }
  const Line flat = fit_line(CostSums(falling), {}, 0);
  EXPECT_EQ(flat.cost_per_pkt_ns, 0);
  EXPECT_NEAR(flat.cost_per_batch_ns, 835, 1e-9);
  const Line through_0 = fit_line(CostSums(steep), {}, 0);
  EXPECT_NEAR(through_0.cost_per_batch_ns, 0, 1e-9);
  EXPECT_NEAR(through_0.ns(16.5), CostSums(steep).mean_ns(), 1e-9);
}

// One size has no slope, whatever the unit: rounding must not make one on average.
TEST(CostFitTest, AnotherUnitMakesNoSlope) {
  double covariance = 0;
  for (uint64_t cycles = 100; cycles < 1100; ++cycles) {
    CostSamples samples;
    samples.add(20, cycles);
    samples = samples.in_units_of(2.7);
    EXPECT_NEAR(static_cast<double>(samples.cycles), static_cast<double>(cycles) / 2.7, 0.5);
    covariance +=
        static_cast<double>(samples.cycles_pkts) - 20 * static_cast<double>(samples.cycles);
  }
  EXPECT_NEAR(covariance / 1000, 0, 0.2);
}

TEST(CostFitTest, SamplesSubtract) {
  CostSamples before = samples_of({1, 2}, {10, 1});
  CostSamples after = before;
  after.add(5, 30);
  const CostSamples since = after.since(before);
  EXPECT_EQ(since.batches, 1U);
  EXPECT_EQ(since.pkts_squared, 25U);
  EXPECT_EQ(since.cycles_pkts, 150U);
}

TEST(CostFitTest, SumsThatNoBatchesHaveAreKnown) {
  EXPECT_TRUE(samples_of({1, 2, 9}, {10, 1}).is_possible());
  for (const CostSamples& bad :
       {CostSamples{}, CostSamples{5, 3, 9, 100, 300}, CostSamples{2, 20, 10, 100, 300},
        CostSamples{1, 4, ~0ULL, 100, 400}}) {
    EXPECT_FALSE(bad.is_possible());
  }
}

}  // namespace
}  // namespace batchplane
