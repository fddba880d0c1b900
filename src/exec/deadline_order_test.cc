// SPDX-License-Identifier: BSD-3-Clause
// deadline_order_test.cc - the heap against a sorted set, including marks that move deadlines.
#include "exec/deadline_order.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/rng.h"

namespace batchplane::exec {
namespace {

TEST(DeadlineOrder, PopsTheEarliestUnderRandomMarks) {
  Rng rng(12);
  for (const uint32_t n : {1U, 2U, 3U, 64U, 1000U}) {
    DeadlineOrder order(n);
    std::map<uint32_t, uint64_t> deadline_ns;
    for (uint32_t step = 0; step < 20'000; ++step) {
      ASSERT_EQ(order.empty(), deadline_ns.empty());
      ASSERT_EQ(order.ready().size(), deadline_ns.size());
      if (deadline_ns.empty() || rng.below(2) == 0) {
        const uint32_t rank = rng.below(n);
        // Few distinct values: ties are frequent. A mark may move a deadline either way.
        deadline_ns[rank] = rng.below(20);
        order.mark(rank, deadline_ns[rank]);
        continue;
      }
      std::set<std::pair<uint64_t, uint32_t>> sorted;
      for (const auto& [rank, at_ns] : deadline_ns) sorted.insert({at_ns, rank});
      ASSERT_EQ(order.first(), sorted.begin()->second);
      ASSERT_EQ(order.pop(), sorted.begin()->second) << "of " << n;
      deadline_ns.erase(sorted.begin()->second);
    }
  }
}

TEST(EitherOrder, IsByDepthUntilToldOtherwise) {
  EitherOrder order(10);
  order.mark(7);
  order.mark(3);
  EXPECT_FALSE(order.is_by_deadline());
  EXPECT_EQ(order.pop(), 3U);
  EXPECT_EQ(order.pop(), 7U);
  order.choose_deadlines({}, 10);
  EXPECT_TRUE(order.is_by_deadline());
  EXPECT_TRUE(order.empty());
  order.by_deadline().mark(3, 50);
  order.by_deadline().mark(7, 40);
  EXPECT_EQ(order.pop(), 7U);
  EXPECT_EQ(order.pop(), 3U);
}

}  // namespace
}  // namespace batchplane::exec
