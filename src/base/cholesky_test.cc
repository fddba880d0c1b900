// SPDX-License-Identifier: BSD-3-Clause
// cholesky_test.cc - solutions put back into their systems, and matrices that have none.
#include "base/cholesky.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/rng.h"

namespace batchplane {
namespace {

// A sum of n squares has full rank, but for odd chances.
TEST(Cholesky, SolvesRandomSystems) {
  Rng rng(5);
  const auto random = [&] { return static_cast<double>(rng.below(2000)) / 1000 - 1; };
  for (size_t n = 0; n < 12; ++n) {
    std::vector<double> matrix(n * n);
    std::vector<double> wanted(n);
    for (double& value : wanted) value = random();
    for (size_t square = 0; square <= 2 * n; ++square) {
      std::vector<double> row(n);
      for (double& value : row) value = random();
      for (size_t r = 0; r < n; ++r) {
        for (size_t c = 0; c < n; ++c) matrix[r * n + c] += row[r] * row[c];
      }
    }
    std::vector<double> found(n);
    for (size_t r = 0; r < n; ++r) {
      for (size_t c = 0; c < n; ++c) found[r] += matrix[r * n + c] * wanted[c];
    }
    // Nobody reads the upper half.
    for (size_t r = 0; r < n; ++r) {
      for (size_t c = r + 1; c < n; ++c) matrix[r * n + c] = 1e9;
    }
    ASSERT_TRUE(solve_in_place(matrix, found));
    for (size_t r = 0; r < n; ++r) EXPECT_NEAR(found[r], wanted[r], 1e-6);
  }
}

TEST(Cholesky, GivesUpOrRaisesPivots) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double last : {1.0, 0.5, nan}) {  // 1: the rows are the same
    std::vector<double> matrix{1, 1, 1, last};
    std::vector<double> vector{3, 4};
    EXPECT_FALSE(solve_in_place(matrix, vector));
    EXPECT_EQ(vector, (std::vector<double>{3, 4}));
    matrix = {1, 1, 1, last};
    EXPECT_TRUE(solve_in_place(matrix, vector, 0.25));  // as if the last were 1.25
    EXPECT_EQ(vector, (std::vector<double>{-1, 4}));
  }
}

}  // namespace
}  // namespace batchplane
