// SPDX-License-Identifier: BSD-3-Clause
// least_squares_test.cc - recovers unknowns, keeps bounds, respects weights.
#include "base/least_squares.h"

#include <gtest/gtest.h>

namespace batchplane {
namespace {

using Pair = LeastSquares<2>::Row;
constexpr Pair kNothing{0, 0};
constexpr Pair kMuch{1e9, 1e9};

TEST(LeastSquares, FindsWhatWasThere) {
  LeastSquares<2> fit;
  for (const double n : {1.0, 4.0, 16.0, 32.0}) fit.add({1, n}, 40 + 7 * n, 1);
  const Pair found = fit.solve(kNothing, kNothing, kMuch);
  EXPECT_NEAR(found[0], 40, 1e-6);
  EXPECT_NEAR(found[1], 7, 1e-6);
}

// Without bounds the first unknown would be -8: clamped to its bound, it leaves the fit to the second.
TEST(LeastSquares, KeepsBoundsAndFitsTheRest) {
  LeastSquares<2> fit;
  fit.add({1, 8}, 16, 1);
  fit.add({1, 16}, 40, 1);
  const Pair found = fit.solve(kNothing, kNothing, kMuch);
  EXPECT_DOUBLE_EQ(found[0], 0);
  EXPECT_NEAR(found[1], (8 * 16 + 16 * 40) / (64.0 + 256.0), 1e-9);
}

TEST(LeastSquares, WeighsAndLeavesTheUnknownAlone) {
  LeastSquares<2> fit;
  fit.add({1, 0}, 10, 3);
  fit.add({1, 0}, 30, 1);
  const Pair found = fit.solve({0, 5}, kNothing, kMuch);
  EXPECT_DOUBLE_EQ(found[0], 15);
  EXPECT_DOUBLE_EQ(found[1], 5);
}

}  // namespace
}  // namespace batchplane
