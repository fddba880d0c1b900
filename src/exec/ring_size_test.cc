// SPDX-License-Identifier: BSD-3-Clause
// ring_size_test.cc - the largest ring in front of a pipeline, and what a gap catches there.
#include "exec/ring_size.h"

#include <gtest/gtest.h>

namespace batchplane::exec {
namespace {

TEST(RingSize, TheLargestOfInputsFromOutsideCounts) {
  const ControlModel model{.inputs = {{}, {}, {.is_queue = true}, {.is_scheduler = true}}};
  PeriodSnapshot period;
  for (const uint64_t ring_pkts : {128, 1024, 4096, 8192}) {
    period.inputs.push_back({.ring_pkts = ring_pkts});
  }
  EXPECT_EQ(largest_ring_pkts(model, period), 1024U);
}

TEST(RingSize, InputsThatTellNoneHaveTheDefault) {
  const ControlModel model{.inputs = {{}, {}}};
  PeriodSnapshot period;
  EXPECT_EQ(largest_ring_pkts(model, period), kDefaultRingPkts) << "no counts of inputs";
  period.inputs.resize(2);
  EXPECT_EQ(largest_ring_pkts(model, period), kDefaultRingPkts);
  period.inputs[1].ring_pkts = 16;
  EXPECT_EQ(largest_ring_pkts(model, period), 16U);
}

TEST(RingSize, AGapCatchesTwoFillsOfASmallRingAndTwiceWhatCameOfALargeOne) {
  EXPECT_EQ(caught_pkts(64, 10, 20'000), 128);
  EXPECT_EQ(caught_pkts(16, 10, 20'000), 32);
  EXPECT_EQ(caught_pkts(4096, 250e-6, 1'000'000), 500);
  EXPECT_EQ(caught_pkts(4096, 250e-6, 1'000), 128) << "some packets always wait";
  EXPECT_EQ(caught_flow_pkts(16, 250, 1000, 100, 20'000), 8) << "a quarter of 32";
  EXPECT_EQ(caught_flow_pkts(16, 0, 0, 100, 20'000), 0);
}

}  // namespace
}  // namespace batchplane::exec
