// SPDX-License-Identifier: BSD-3-Clause
// run_order_test.cc - the bitmap order against a sorted set, at all sizes that change its shape.
#include "exec/run_order.h"

#include <gtest/gtest.h>

#include <set>

#include "base/rng.h"

namespace batchplane::exec {
namespace {

TEST(DepthOrder, PopsTheLowestRankUnderRandomMarks) {
  Rng rng(11);
  for (const uint32_t n : {1U, 2U, 63U, 64U, 65U, 128U, 4095U, 4096U, 4097U, 60'000U}) {
    DepthOrder order(n);
    std::set<uint32_t> model;
    for (uint32_t step = 0; step < 20'000; ++step) {
      ASSERT_EQ(order.empty(), model.empty());
      if (model.empty() || rng.below(2) == 0) {
        const uint32_t rank = rng.below(8) == 0 ? n - 1 : rng.below(n);
        order.mark(rank);
        model.insert(rank);
      } else {
        ASSERT_EQ(order.pop(), *model.begin()) << "of " << n;
        model.erase(model.begin());
      }
    }
  }
}

TEST(DepthOrder, MarkingTwicePopsOnce) {
  DepthOrder order(100);
  order.mark(70);
  order.mark(70);
  EXPECT_EQ(order.pop(), 70U);
  EXPECT_TRUE(order.empty());
}

}  // namespace
}  // namespace batchplane::exec
