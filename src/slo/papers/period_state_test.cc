// SPDX-License-Identifier: BSD-3-Clause
// period_state_test.cc - costs of whole segments, rates, sensitivities, slack; and periods without
// data.
#include "slo/papers/period_state.h"

#include <gtest/gtest.h>

#include <cmath>

#include "slo/model/plant_test_util.h"

namespace batchplane::slo {
namespace period_state_test {

PeriodState measured(const Topology& topology, const Snapshot& snapshot,
                     const MeasureOptions& options = {}) {
  return measure(topology, {}, snapshot, options);
}

TEST(Topology, KnowsWhoFollowsAndWhichFlowsPass) {
  const Model model = two_level_model();
  const Topology topology(model);
  ASSERT_EQ(topology.segments.size(), 5U);
  EXPECT_EQ(topology.next[0], (std::vector<uint32_t>{1, 2, 3, 4}));
  EXPECT_TRUE(topology.next[1].empty());
  EXPECT_EQ(topology.deepest_first.back(), 0U);
  EXPECT_EQ(topology.flows_through[0], (std::vector<uint32_t>{0, 1, 2, 3}));
  EXPECT_EQ(topology.segments_on[2], (std::vector<uint32_t>{0, 3}));
}

// 1 M packets per second: 1000 ns between two, plus 50 ns of service for each additional packet.
TEST(Measure, TakesRateBatchAndSensitivityFromTheCounts) {
  const Model model = tree_model(2);
  const Topology topology(model);
  const PeriodState state = measured(topology, even_tree_period(model, 100'000, 80'000, 10));
  const SegmentPeriod& segment = state.segments[1];
  EXPECT_DOUBLE_EQ(segment.rate_pkts_per_ns, 1e-3);
  EXPECT_DOUBLE_EQ(segment.arriving_pkts, 5);
  EXPECT_DOUBLE_EQ(segment.delay_per_pkt_ns, 1050);
  EXPECT_DOUBLE_EQ(segment.delay_ns, 10'000 + 1000 + 500);
  EXPECT_EQ(segment.min_pkts, 9U);  // floor(5) + 4
  EXPECT_EQ(segment.trigger_pkts, 10U);
  EXPECT_TRUE(segment.is_controllable);
  EXPECT_DOUBLE_EQ(state.flows[1].slack_ns, 20'000);
  EXPECT_DOUBLE_EQ(state.flows[1].headroom_ns(), 15'000);  // 5 % of the SLO stay free
}

// Followers add their whole cost per batch, and their cost per packet times the share that reaches
// them.
TEST(Measure, AddsTheCostsOfFollowersByTrafficShare) {
  const Model model = tree_model(2);
  const Topology topology(model);
  Snapshot snapshot = even_tree_period(model, 0, 0, 10);
  snapshot.modules[3] = module_period(0.25e6, 5, 0, {300, 40});
  PeriodState state = measured(topology, snapshot);
  EXPECT_DOUBLE_EQ(state.segments[0].cost_per_batch_ns, 1300);
  EXPECT_DOUBLE_EQ(state.segments[0].cost_per_pkt_ns, 50 + 0.25 * 40);
  snapshot.modules[3] = module_period(2e6, 5, 0, {300, 40});  // also fed from elsewhere
  state = measured(topology, snapshot);
  EXPECT_DOUBLE_EQ(state.segments[0].cost_per_pkt_ns, 90);
  snapshot.modules[3] = module_period(0, 5, 0, {300, 40});  // no packet gets there
  state = measured(topology, snapshot);
  EXPECT_DOUBLE_EQ(state.segments[0].cost_per_batch_ns, 1000);
}

TEST(Measure, SegmentsThatNeverBufferAddToThoseBefore) {
  Plant plant(two_level_model());
  plant.costs[1] = {500, 10};
  for (const uint32_t m : {2, 4, 6, 8}) plant.costs[m] = {100, 300};  // 300 / 400 > 0.5
  const Topology topology(plant.model);
  const PeriodState state = measured(topology, plant.period());
  EXPECT_FALSE(state.segments[1].is_controllable);
  EXPECT_DOUBLE_EQ(state.segments[0].cost_per_batch_ns, 900);
  EXPECT_DOUBLE_EQ(state.segments[0].cost_per_pkt_ns, 10 + 300);  // a quarter each
}

TEST(Measure, ABufferThatCannotPayIsTakenOut) {
  const Model model = tree_model(2);
  const Topology topology(model);
  Snapshot snapshot = even_tree_period(model, 0, 0, 10);
  snapshot.modules[2].cost = {50, 100};
  const PeriodState state = measured(topology, snapshot);
  EXPECT_EQ(state.segments[0].trigger_pkts, 0U);
  EXPECT_STREQ(state.segments[0].reason, "no_gain");
  EXPECT_TRUE(state.segments[0].is_frozen);
  EXPECT_EQ(state.segments[1].trigger_pkts, 10U);
}

TEST(Measure, NothingMeasuredIsZeroNotNonsense) {
  const Model model = tree_model(3);
  const Topology topology(model);
  const PeriodState nothing = measured(topology, empty_period(model));
  EXPECT_EQ(nothing.segments.size(), 3U);
  EXPECT_EQ(nothing.flows.size(), 3U);
  Snapshot odd = even_tree_period(model, 100'000, 80'000, 10);
  odd.modules[2].cost = {std::nan(""), -5};
  odd.modules[4].cost = {kNoLimit, 50};
  odd.modules[6].batches = 0;
  odd.period_ns = 0;
  for (const PeriodState& state : {nothing, measured(topology, odd)}) {
    for (const SegmentPeriod& segment : state.segments) {
      for (const double value :
           {segment.cost_per_batch_ns, segment.cost_per_pkt_ns, segment.rate_pkts_per_ns,
            segment.delay_per_pkt_ns, segment.arriving_pkts, segment.delay_ns}) {
        EXPECT_TRUE(std::isfinite(value) && value >= 0);
      }
    }
  }
}

}  // namespace period_state_test
}  // namespace batchplane::slo
