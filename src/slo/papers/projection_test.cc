// SPDX-License-Identifier: BSD-3-Clause
// projection_test.cc - directions and multipliers, also where constraints repeat or depend on each
// other.
#include "slo/papers/projection.h"

#include <gtest/gtest.h>

#include <random>

namespace batchplane::slo {
namespace projection_test {

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

TEST(Project, WithoutRowsFollowsTheGradient) {
  const Projection projection = project({}, {-2, 3});
  EXPECT_EQ(projection.direction, (std::vector<double>{2, -3}));
  EXPECT_TRUE(projection.multipliers.empty());
}

// Row (1, 1), gradient (-3, -1): the part along the row is -2 each; the rest, (-1, 1), is followed.
TEST(Project, KeepsTheSumThatARowHolds) {
  const Projection projection = project({{1, 1}}, {-3, -1});
  EXPECT_NEAR(projection.direction[0], 1, 1e-12);
  EXPECT_NEAR(projection.direction[1], -1, 1e-12);
  EXPECT_NEAR(projection.multipliers[0], 4 / std::sqrt(2.0), 1e-12);
}

TEST(Project, AFullSetOfRowsLeavesNothing) {
  const Projection projection = project({{5e8, 0}, {0, 1}}, {-3, 2});
  EXPECT_LT(length_of(projection.direction), 1e-9);
  EXPECT_NEAR(projection.multipliers[0], 3, 1e-9);   // the first row holds it back
  EXPECT_NEAR(projection.multipliers[1], -2, 1e-9);  // the second row may be given up
}

TEST(Project, RepeatedRowsShareTheMultiplier) {
  const Projection projection = project({{1, 0}, {1000, 0}, {0, 0}}, {-4, -1});
  EXPECT_NEAR(projection.direction[0], 0, 1e-12);
  EXPECT_NEAR(projection.direction[1], 1, 1e-12);
  EXPECT_NEAR(projection.multipliers[0], 2, 1e-9);
  EXPECT_NEAR(projection.multipliers[1], 2, 1e-9);
  EXPECT_EQ(projection.multipliers[2], 0);
}

// For any rows, including dependent ones and scales from packets to seconds: the direction is
// orthogonal to every row and never climbs, and gradient and multipliers add up to it.
TEST(Project, HoldsForRandomRows) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> unit(-1, 1);
  for (int round = 0; round < 2000; ++round) {
    const size_t n = 1 + random() % 12;
    const size_t n_rows = random() % 16;
    std::vector<Row> rows;
    for (size_t i = 0; i < n_rows; ++i) {
      if (!rows.empty() && random() % 4 == 0) {
        rows.push_back(rows[random() % rows.size()]);
        continue;
      }
      Row row(n, 0.0);
      const double scale = std::pow(10.0, static_cast<double>(random() % 9));
      for (double& value : row) value = random() % 2 == 0 ? 0.0 : scale * unit(random);
      rows.push_back(row);
    }
    std::vector<double> gradient(n);
    for (double& value : gradient) value = unit(random);
    const Projection projection = project(rows, gradient);
    std::vector<double> rest = gradient;
    for (size_t i = 0; i < n_rows; ++i) {
      const double length = length_of(rows[i]);
      if (length == 0) continue;
      EXPECT_NEAR(dot(rows[i], projection.direction) / length, 0, 1e-7);
      for (size_t k = 0; k < n; ++k) rest[k] += projection.multipliers[i] * rows[i][k] / length;
    }
    for (size_t k = 0; k < n; ++k) EXPECT_NEAR(rest[k] + projection.direction[k], 0, 1e-5);
    EXPECT_LE(dot(gradient, projection.direction), 1e-12);
  }
}

}  // namespace projection_test
}  // namespace batchplane::slo
