// SPDX-License-Identifier: BSD-3-Clause
// percentile_test.cc - percentiles are values, by nearest rank.
#include "base/percentile.h"

#include <gtest/gtest.h>

namespace batchplane {
namespace {

TEST(Percentile, IsAValueByNearestRank) {
  const std::vector<double> values{5, 1, 4, 2, 3};
  EXPECT_EQ(percentile(values, 0), 1);
  EXPECT_EQ(percentile(values, 0.2), 1);
  EXPECT_EQ(percentile(values, 0.21), 2);
  EXPECT_EQ(percentile(values, 0.5), 3);
  EXPECT_EQ(percentile(values, 0.99), 5);
  EXPECT_EQ(percentile(values, 1), 5);
  EXPECT_EQ(percentile(std::vector<double>{7}, 0.1), 7);
}

TEST(Percentile, AtMostTheRestIsBeyond) {
  for (uint64_t n = 1; n <= 200; ++n) {
    for (const double p : {0.5, 0.9, 0.95, 0.99}) {
      const uint64_t rank = nearest_rank(n, p);
      EXPECT_LE(rank, n);
      EXPECT_LE(static_cast<double>(n - rank), (1 - p) * static_cast<double>(n) + 1e-9);
      EXPECT_GT(static_cast<double>(n - rank + 1), (1 - p) * static_cast<double>(n) - 1e-9);
    }
  }
}

}  // namespace
}  // namespace batchplane
