// SPDX-License-Identifier: BSD-3-Clause
// whole_test.cc - finds in measured times how running together changes the modules' costs.
#include "profile/whole.h"

#include <gtest/gtest.h>

#include "profile/whole_counts.h"

namespace batchplane::profile {
namespace {

// A point of a machine on which, with all modules running, batches cost 1.8 times and packets 0.9
// times as much as alone, and packets from another core 15 ns more.
WholePoint point_of(bool is_far, uint32_t trigger_pkts, double batch_ns, double pkt_ns) {
  WholePoint point{.is_far = is_far,
                   .trigger_pkts = trigger_pkts,
                   .measured_ns_per_pkt = 1.8 * batch_ns + 0.9 * pkt_ns + (is_far ? 15 : 0),
                   .pkts_per_loop = 32};
  point.parts[kBefore] = {batch_ns, pkt_ns};
  return point;
}

TEST(WholeFitTest, FindsBothFactorsAndTheWayFromTheOtherCore) {
  WholeCheck check;
  check.points = {point_of(false, 0, 30, 40), point_of(false, 32, 3, 45), point_of(true, 0, 30, 40),
                  point_of(true, 32, 3, 45)};
  fit_whole(check);
  EXPECT_NEAR(check.factors[kBefore].batch, 1.8, 0.05);
  EXPECT_NEAR(check.factors[kBefore].pkt, 0.9, 0.02);
  EXPECT_NEAR(check.far.ns(32) / 32, 15, 0.5);
  for (const WholePoint& point : check.points) {
    EXPECT_NEAR(check.at(point), point.measured_ns_per_pkt, 0.02 * point.measured_ns_per_pkt);
  }
  EXPECT_TRUE(check.doubts.empty());
}

// Many small branches fall out of the caches; the modules before them stay in.
TEST(WholeFitTest, WhatIsBehindSplittersSuffersByItself) {
  WholeCheck check;
  for (const double poll_pkts : {4.0, 32.0}) {
    for (const uint32_t trigger_pkts : {0U, 32U}) {
      WholePoint point{.trigger_pkts = trigger_pkts, .pkts_per_loop = poll_pkts};
      const double branch_pkts = trigger_pkts != 0 ? 32 : std::max(1.0, poll_pkts / 16);
      const CostLaw::Line before{150 / poll_pkts, 15};
      const CostLaw::Line behind{90 / branch_pkts, 20};
      point.parts[kBefore] = before;
      point.parts[kBehind] = behind;
      point.measured_ns_per_pkt = before.work_ns(1, 1.1) + behind.work_ns(2.2, 1.1);
      check.points.push_back(point);
    }
  }
  fit_whole(check);
  EXPECT_NEAR(check.factors[kBefore].batch, 1, 0.1);
  EXPECT_NEAR(check.factors[kBehind].batch, 2.2, 0.1);
  EXPECT_NEAR(check.factors[kBefore].pkt, 1.1, 0.1);
  EXPECT_NEAR(check.factors[kBehind].pkt, 1.1, 0.1);
}

// Small polls wait for each cache line: 200 ns per poll and 10 ns per packet.
TEST(WholeFitTest, SmallPollsTellWhatAPollFromTheOtherCoreTakes) {
  WholeCheck check;
  check.points = {point_of(false, 0, 30, 40), point_of(false, 32, 3, 45)};
  for (const double poll_pkts : {1.0, 2.0, 6.0, 32.0}) {
    WholePoint point = point_of(false, 0, 60 / poll_pkts, 40);
    point.is_far = true;
    point.pkts_per_loop = poll_pkts;
    point.measured_ns_per_pkt += 200 / poll_pkts + 10;
    check.points.push_back(point);
  }
  fit_whole(check);
  for (const double poll_pkts : {1.0, 2.0, 6.0, 32.0}) {
    const double ns = 200 + 10 * poll_pkts;
    EXPECT_NEAR(check.far.ns(poll_pkts), ns, 0.05 * ns);
  }
}

// The worker waits for a poll's first lines; the others arrive meanwhile.
TEST(WholeFitTest, LongPollsWaitForTheirFirstPacketsOnly) {
  const FarCost far{.per_batch_ns = 150, .per_pkt_ns = 4, .early_per_pkt_ns = 22};
  WholeCheck check;
  for (const uint32_t trigger_pkts : {0U, 32U}) {
    const double batch_ns = trigger_pkts == 0 ? 30 : 3;
    check.points.push_back(point_of(false, trigger_pkts, batch_ns, 40));
    for (const double poll_pkts : {1.0, 3.0, 7.0, 15.0, 32.0}) {
      WholePoint point = point_of(false, trigger_pkts, batch_ns, 40);
      point.is_far = true;
      point.pkts_per_loop = poll_pkts;
      point.measured_ns_per_pkt += far.ns(poll_pkts) / poll_pkts;
      check.points.push_back(point);
    }
  }
  fit_whole(check);
  EXPECT_NEAR(check.far.per_batch_ns, far.per_batch_ns, 10);
  EXPECT_NEAR(check.far.per_pkt_ns, far.per_pkt_ns, 1);
  EXPECT_NEAR(check.far.early_per_pkt_ns, far.early_per_pkt_ns, 3);
}

TEST(WholeFitTest, WithoutPointsNothingIsChanged) {
  WholeCheck check;
  fit_whole(check);
  for (const Factors& factors : check.factors) {
    EXPECT_NEAR(factors.batch, 1, 1e-9);
    EXPECT_NEAR(factors.pkt, 1, 1e-9);
  }
  EXPECT_DOUBLE_EQ(check.far.ns(32), 0);
}

// Where batches cost nothing, their factor cannot be found.
TEST(WholeFitTest, WhatWasNotSeenStaysAsItIs) {
  WholeCheck check;
  check.points = {point_of(false, 32, 0, 45)};
  fit_whole(check);
  EXPECT_NEAR(check.factors[kBefore].batch, 1, 0.01);
  EXPECT_NEAR(check.factors[kBefore].pkt, 0.9, 0.01);
}

TEST(WholeFitTest, FactorsHaveBounds) {
  WholeCheck check;
  check.points = {{.measured_ns_per_pkt = 1000, .parts = {{1, 1}}},
                  {.measured_ns_per_pkt = 10, .parts = {{0.1, 900}}}};
  fit_whole(check);
  for (const Factors& factors : check.factors) {
    for (const double factor : {factors.batch, factors.pkt}) {
      EXPECT_GE(factor, 0.3);
      EXPECT_LE(factor, 3);
    }
  }
  ASSERT_FALSE(check.doubts.empty());
  for (const std::string& doubt : check.doubts) {
    EXPECT_NE(doubt.find("beyond the limits"), std::string::npos) << doubt;
  }
}

TEST(WholeFitTest, PointsFromAnotherCoreThatCannotBeAreLeftOutAndTold) {
  WholeCheck check;
  check.points = {point_of(false, 0, 30, 40), point_of(false, 32, 3, 45), point_of(true, 0, 30, 40),
                  point_of(true, 32, 3, 45)};
  WholePoint cheap = point_of(true, 0, 30, 40);
  cheap.measured_ns_per_pkt = 60;  // 90 on the same core
  WholePoint lost = point_of(true, 32, 3, 45);
  lost.measured_ns_per_pkt = 5000;
  WholePoint noisy = point_of(true, 32, 3, 45);
  noisy.measured_ns_per_pkt = 0.95 * point_of(false, 32, 3, 45).measured_ns_per_pkt;
  check.points.insert(check.points.end(), {cheap, lost, noisy});
  reject_impossible(check);
  EXPECT_EQ(check.points.size(), 5U);
  EXPECT_EQ(check.n_rejected, 2U);
  ASSERT_EQ(check.doubts.size(), 2U);
  EXPECT_EQ(check.doubts[0],
            "packets from another core, trigger 0, polls of 32.0: 60.0 ns per packet, where "
            "packets of the "
            "same core take 90.0 ns, which cannot be: this point is left out");
  EXPECT_NE(check.doubts[1].find("5000.0 ns"), std::string::npos);
}

TEST(WholeFitTest, ACostThatCannotBeIsTold) {
  WholeCheck check;
  for (const double poll_pkts : {1.0, 8.0, 32.0}) {
    check.points.push_back(point_of(false, 0, 30, 40));
    WholePoint far = point_of(true, 0, 30, 40);
    far.pkts_per_loop = poll_pkts;
    far.measured_ns_per_pkt -= 35;
    check.points.push_back(far);
  }
  fit_whole(check);
  EXPECT_EQ(check.far.ns(8), 0);
  ASSERT_FALSE(check.doubts.empty());
  for (const std::string& doubt : check.doubts) {
    EXPECT_NE(doubt.find("another core: -"), std::string::npos) << doubt;
    EXPECT_NE(doubt.find("which cannot be: 0 is used"), std::string::npos) << doubt;
  }
}

// Buffers behind a splitter may hold all its packets: then the branches that they took are unknown.
TEST(WholeCountsTest, ASplitterWithNothingRunBehindItCostsNothing) {
  WholeCounts bypassed;
  bypassed.splits.push_back({.got = {10, 320}, .branch_batches = 0, .branch_pkts = {0, 0}});
  const WholeCounts held = bypassed;
  const WholeCounts::Ran none = scattered(held, bypassed);
  EXPECT_DOUBLE_EQ(none.batches, 0);
  EXPECT_DOUBLE_EQ(none.pkts, 0);
}

// Round robin, 32 packets reach all of 16 branches; at random, only some of them.
TEST(WholeCountsTest, BuffersHideOverHowManyBranchesABatchIsSpread) {
  for (const double seen : {16.0, 14.0}) {
    WholeCounts bypassed;
    bypassed.splits.push_back({.got = {10, 320},
                               .branch_batches = 10 * seen,
                               .branch_pkts = std::vector<double>(16, 20.0)});
    WholeCounts held = bypassed;
    held.splits[0].branch_batches = 10;
    const WholeCounts::Ran spread = scattered(held, bypassed);
    EXPECT_NEAR(spread.batches, 10 * (seen - 1), 1);
    EXPECT_DOUBLE_EQ(spread.pkts, 320);
    EXPECT_DOUBLE_EQ(scattered(bypassed, bypassed).batches, 10 * (seen - 1));
  }
}

}  // namespace
}  // namespace batchplane::profile
