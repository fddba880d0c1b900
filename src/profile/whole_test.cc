// SPDX-License-Identifier: BSD-3-Clause
// whole_test.cc - what the company of other modules does to costs is found in what was measured.
#include "profile/whole.h"

#include <gtest/gtest.h>

namespace batchplane::profile {
namespace {

// A point of a machine on which batches cost 1.8 and packets 0.9 of what they cost alone, and
// packets from another core 15 ns more.
WholePoint point_of(bool is_far, uint32_t trigger_pkts, double batch_ns, double pkt_ns) {
  return {.is_far = is_far,
          .trigger_pkts = trigger_pkts,
          .measured_ns_per_pkt = 1.8 * batch_ns + 0.9 * pkt_ns + (is_far ? 15 : 0),
          .batch_ns_per_pkt = batch_ns,
          .pkt_ns_per_pkt = pkt_ns,
          .pkts_per_loop = 32};
}

TEST(WholeFitTest, FindsBothFactorsAndTheWayFromTheOtherCore) {
  WholeCheck check;
  check.points = {point_of(false, 0, 30, 40), point_of(false, 32, 3, 45), point_of(true, 0, 30, 40),
                  point_of(true, 32, 3, 45)};
  fit_whole(check);
  EXPECT_NEAR(check.batch_factor, 1.8, 0.05);
  EXPECT_NEAR(check.pkt_factor, 0.9, 0.02);
  EXPECT_NEAR(check.far_per_pkt_ns, 15, 0.5);
  for (const WholePoint& point : check.points) {
    EXPECT_NEAR(check.at(point), point.measured_ns_per_pkt, 0.02 * point.measured_ns_per_pkt);
  }
}

// Small polls wait for each line: 200 ns a poll beside 10 ns a packet.
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
  EXPECT_NEAR(check.far_per_batch_ns, 200, 20);
  EXPECT_NEAR(check.far_per_pkt_ns, 10, 3);
}

TEST(WholeFitTest, WithoutPointsNothingIsChanged) {
  WholeCheck check;
  fit_whole(check);
  EXPECT_DOUBLE_EQ(check.batch_factor, 1);
  EXPECT_DOUBLE_EQ(check.pkt_factor, 1);
  EXPECT_DOUBLE_EQ(check.far_per_pkt_ns, 0);
}

// Where batches cost nothing, nothing is said of what they cost.
TEST(WholeFitTest, WhatWasNotSeenStaysAsItIs) {
  WholeCheck check;
  check.points = {point_of(false, 32, 0, 45)};
  fit_whole(check);
  EXPECT_NEAR(check.batch_factor, 1, 0.01);
  EXPECT_NEAR(check.pkt_factor, 0.9, 0.01);
}

TEST(WholeFitTest, FactorsHaveBounds) {
  WholeCheck check;
  check.points = {{.measured_ns_per_pkt = 1000, .batch_ns_per_pkt = 1, .pkt_ns_per_pkt = 1},
                  {.measured_ns_per_pkt = 10, .batch_ns_per_pkt = 0.1, .pkt_ns_per_pkt = 900}};
  fit_whole(check);
  for (const double factor : {check.batch_factor, check.pkt_factor}) {
    EXPECT_GE(factor, 0.3);
    EXPECT_LE(factor, 3);
  }
}

}  // namespace
}  // namespace batchplane::profile
