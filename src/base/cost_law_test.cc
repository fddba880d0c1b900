// SPDX-License-Identifier: BSD-3-Clause
// cost_law_test.cc - cost laws as lines and tables: interpolated, extrapolated, added and scaled.
#include "base/cost_law.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace batchplane {
namespace {

using Line = CostLaw::Line;
using Point = CostLaw::Point;

// Work in units of eight packets, like a vector engine or an accelerator.
std::vector<Point> stairs() {
  std::vector<Point> points;
  for (uint32_t n = 1; n <= 32; ++n) {
    const uint32_t units = (n + 7) / 8;
    points.push_back({n, 50.0 + 80.0 * units});
  }
  return points;
}

TEST(CostLawTest, ALineIsTwoNumbers) {
  const CostLaw law(100, 7);
  EXPECT_FALSE(law.is_table());
  EXPECT_EQ(law.ns(1), 107);
  EXPECT_EQ(law.ns(2.5), 117.5);
  EXPECT_EQ(law.line(), (Line{100, 7}));
  EXPECT_EQ(CostLaw().ns(32), 0);
}

TEST(CostLawTest, NonsenseCountsAsNothing) {
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(CostLaw(std::nan(""), -3), CostLaw());
  EXPECT_EQ(CostLaw(inf, 4), CostLaw(0, 4));
  const CostLaw law({{1, -5}, {2, std::nan("")}, {3, 6}}, {1, 1});
  EXPECT_EQ(law.ns(1), 0);
  EXPECT_EQ(law.ns(2), 0);
  EXPECT_EQ(law.ns(3), 6);
}

TEST(CostLawTest, ATableHoldsAtItsSizesAndInProportionBetweenThem) {
  const CostLaw law({{1, 20}, {2, 25}, {8, 85}, {32, 100}}, {15, 4});
  EXPECT_TRUE(law.is_table());
  EXPECT_EQ(law.ns(1), 20);
  EXPECT_EQ(law.ns(8), 85);
  EXPECT_EQ(law.ns(32), 100);
  EXPECT_DOUBLE_EQ(law.ns(1.5), 22.5);
  EXPECT_DOUBLE_EQ(law.ns(5), 55);
  EXPECT_DOUBLE_EQ(law.ns(26), 96.25);
  EXPECT_EQ(law.line(), (Line{15, 4})) << "as given";
}

TEST(CostLawTest, OutsideOfTheTableItGoesOnAsTheLineRises) {
  const CostLaw law({{4, 50}, {16, 90}}, {30, 3});
  EXPECT_DOUBLE_EQ(law.ns(20), 90 + 3 * 4);
  EXPECT_DOUBLE_EQ(law.ns(256), 90 + 3 * 240);
  EXPECT_DOUBLE_EQ(law.ns(2), 50 - 3 * 2);
  EXPECT_EQ(CostLaw({{100, 50}}, {0, 3}).ns(1), 0) << "never negative";
}

TEST(CostLawTest, StairsStayStairs) {
  const CostLaw law(stairs());
  EXPECT_EQ(law.ns(8), 130);
  EXPECT_EQ(law.ns(9), 210);
  EXPECT_EQ(law.ns(16), 210);
  EXPECT_DOUBLE_EQ(law.ns(8.5), 170);
  // The line has about the mean slope of the stairs: 80 ns per 8 packets.
  EXPECT_NEAR(law.line().cost_per_pkt_ns, 10, 1.5);
  EXPECT_GT(law.line().cost_per_batch_ns, 50);
}

TEST(CostLawTest, ScalingKnowsWhatIsPaidPerBatch) {
  const CostLaw law({{1, 30}, {4, 42}}, {26, 4});
  const CostLaw twice = law.scaled(2);
  EXPECT_EQ(twice.line(), (Line{52, 8}));
  EXPECT_EQ(twice.ns(4), 84);
  const CostLaw apart = law.scaled(3, 0.5);
  EXPECT_EQ(apart.line(), (Line{78, 2}));
  EXPECT_DOUBLE_EQ(apart.ns(4), 3 * (42 - 16) + 0.5 * 16);
  // The per-packet part is never more than the whole time.
  EXPECT_DOUBLE_EQ(CostLaw({{8, 10}}, {0, 4}).scaled(3, 0.5).ns(8), 5);
}

TEST(CostLawTest, LawsAddUp) {
  const CostLaw sum = CostLaw(10, 2) + CostLaw({{1, 20}, {4, 50}}, {10, 10});
  EXPECT_EQ(sum.line(), (Line{20, 12}));
  EXPECT_EQ(sum.ns(1), 32);
  EXPECT_EQ(sum.ns(4), 68);
  const CostLaw both = CostLaw({{2, 4}}, {0, 2}) + CostLaw({{1, 20}, {4, 50}}, {10, 10});
  EXPECT_EQ(both.points().size(), 3U);
  for (const double n : {1.0, 2.0, 3.0, 4.0, 6.0}) {
    EXPECT_DOUBLE_EQ(both.ns(n), 2 * n + CostLaw({{1, 20}, {4, 50}}, {10, 10}).ns(n)) << n;
  }
  EXPECT_EQ(CostLaw(1, 2) + CostLaw(3, 4), CostLaw(4, 6));
}

TEST(CostLawTest, BatchinessComparesAFullBatchWithSingles) {
  EXPECT_DOUBLE_EQ(CostLaw(30, 10).batchiness(32), (30.0 + 320) / (32 * 40.0));
  EXPECT_DOUBLE_EQ(CostLaw(0, 7).batchiness(32), 1.0);
  EXPECT_DOUBLE_EQ(CostLaw(7, 0).batchiness(32), 1.0 / 32);
  EXPECT_DOUBLE_EQ(CostLaw().batchiness(32), 1.0);
  EXPECT_DOUBLE_EQ(CostLaw(stairs()).batchiness(32), 370.0 / (32 * 130));
}

TEST(CostLawTest, ErrorsAreRelativeToWhatWasMeasured) {
  const CostLaw law(10, 1);
  EXPECT_DOUBLE_EQ(law.error_ratio({}), 0);
  const std::vector<Point> measured{{1, 22}, {2, 12}, {10, 16}};
  EXPECT_DOUBLE_EQ(law.error_ratio(measured), 0.5);
  EXPECT_DOUBLE_EQ(law.error_ratio(std::span(measured).subspan(2)), 0.25);
  EXPECT_DOUBLE_EQ(law.error_ratio(std::vector<Point>{{1, 0}}, 22), 0.5);
}

TEST(CostLawTest, PointsAreTimesOfOneTwoAndMorePackets) {
  EXPECT_EQ(points_of(std::vector<double>{5, 7}), (std::vector<Point>{{1, 5}, {2, 7}}));
  EXPECT_TRUE(points_of({}).empty());
}

}  // namespace
}  // namespace batchplane
