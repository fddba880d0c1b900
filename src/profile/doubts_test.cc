// SPDX-License-Identifier: BSD-3-Clause
// doubts_test.cc - what cannot be is replaced and told; what noise explains is not told.
#include "profile/doubts.h"

#include <gtest/gtest.h>

#include "profile/loop_costs.h"

namespace batchplane::profile {
namespace {

TEST(DoubtsTest, ATimeBelowZeroIsToldBeyondNoise) {
  Doubts doubts;
  EXPECT_EQ(at_least_0(7, 10, "a poll", doubts), 7);
  EXPECT_EQ(at_least_0(-9, 10, "a poll", doubts), 0);
  EXPECT_TRUE(doubts.empty());
  EXPECT_EQ(at_least_0(-23.14, 10, "a poll", doubts), 0);
  EXPECT_EQ(doubts, Doubts{"a poll: -23.1 ns, which cannot be: 0 is used"});
}

TEST(DoubtsTest, PacketsFromAnotherCoreAreNotCheaper) {
  Doubts doubts;
  EXPECT_EQ(extra_ns(60, 45, "a packet", doubts), 15);
  EXPECT_EQ(extra_ns(44, 45, "a packet", doubts), 0);
  EXPECT_TRUE(doubts.empty());
  EXPECT_EQ(extra_ns(30, 45, "a packet", doubts), 0);
  EXPECT_EQ(doubts,
            Doubts{"a packet: 30.0 ns, less than the 45.0 ns of packets of the same core, which "
                   "cannot be: no extra cost is used"});
}

TEST(DoubtsTest, AWholeTakesAsLongAsItsParts) {
  EngineCosts costs;
  Doubts doubts;
  costs.clock_read_ns = 9;
  costs.empty_poll_ns = 30;
  costs.poll_per_batch_ns = 40;
  costs.poll_per_pkt_ns = 5;
  costs.egress_per_pkt_ns = 5.5;
  raise_to_parts(costs, doubts);
  EXPECT_EQ(costs.poll_per_pkt_ns, 5.5);
  EXPECT_TRUE(doubts.empty());
  costs.poll_per_batch_ns = 4;
  raise_to_parts(costs, doubts);
  EXPECT_EQ(costs.poll_per_batch_ns, 9);
  EXPECT_EQ(doubts, Doubts{"a poll, per batch: 4.0 ns, less than reading the clock, a part of it, "
                           "alone: 9.0 ns is used"});
}

TEST(DoubtsTest, ALineThatWouldFallBelowZeroIsTold) {
  const auto line = [](double batch_ns, double pkt_ns, Doubts& doubts) {
    std::vector<CostLaw::Point> points;
    for (const uint32_t n : {8U, 16U, 32U}) points.push_back({n, batch_ns + pkt_ns * n});
    return line_of(points, 10, {"a poll, per batch", "a poll, per packet"}, doubts);
  };
  Doubts doubts;
  EXPECT_NEAR(line(20, 3, doubts).cost_per_batch_ns, 20, 1e-6);
  EXPECT_EQ(line(-4, 3, doubts).cost_per_batch_ns, 0);
  EXPECT_TRUE(doubts.empty());
  EXPECT_EQ(line(-40, 20, doubts).cost_per_batch_ns, 0);
  EXPECT_EQ(doubts, Doubts{"a poll, per batch: -40.0 ns, which cannot be: 0 is used"});
  EXPECT_EQ(line(300, -2, doubts).cost_per_pkt_ns, 0);
  EXPECT_EQ(doubts.back(), "a poll, per packet: -2.0 ns, which cannot be: 0 is used");
}

}  // namespace
}  // namespace batchplane::profile
