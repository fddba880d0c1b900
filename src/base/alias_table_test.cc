// SPDX-License-Identifier: BSD-3-Clause
// alias_table_test.cc - an alias table's shares are exactly the weights.
#include "base/alias_table.h"

#include <gtest/gtest.h>

#include "base/rng.h"

namespace batchplane {
namespace {

// Visits all cells and evenly spaced sides of each, so that the shares are exact, not random.
std::vector<double> shares_of(const AliasTable& table) {
  constexpr uint32_t kSides = 4096;
  std::vector<double> shares(table.size());
  for (uint32_t cell = 0; cell < table.size(); ++cell) {
    const uint64_t upper = (static_cast<uint64_t>(cell) << 32) / table.size() + 1;
    for (uint32_t side = 0; side < kSides; ++side) {
      const uint64_t lower = (static_cast<uint64_t>(side) << 32) / kSides;
      shares[table.pick(upper << 32 | lower)] += 1.0 / kSides / table.size();
    }
  }
  return shares;
}

TEST(AliasTable, GivesEachItsShare) {
  Rng rng(5);
  for (uint32_t n = 1; n <= 40; ++n) {
    std::vector<double> weights;
    double sum = 0;
    for (uint32_t i = 0; i < n; ++i) {
      weights.push_back(i == 0 ? 1.0 : rng.below(10));
      sum += weights.back();
    }
    const std::vector<double> shares = shares_of(AliasTable(weights));
    for (uint32_t i = 0; i < n; ++i)
      EXPECT_NEAR(shares[i], weights[i] / sum, 1.0 / 2048) << n << " " << i;
  }
}

TEST(AliasTable, NeverPicksWhatWeighsNothing) {
  const AliasTable table({0, 1, 0, 3});
  Rng rng(1);
  for (int i = 0; i < 10'000; ++i) EXPECT_EQ(table.pick(rng.next()) % 2, 1);
}

}  // namespace
}  // namespace batchplane
