// SPDX-License-Identifier: BSD-3-Clause
// phases_test.cc - push, recover and pull, against numbers worked out by hand.
//
// In an even tree each additional packet in a trigger costs a flow 1050 ns, and the least trigger
// is 9.
#include "slo/papers/phases.h"

#include <gtest/gtest.h>

#include "slo/model/plant_test_util.h"

namespace batchplane::slo {
namespace phases_test {

constexpr uint64_t kSloNs = 100'000;

struct Case {
  explicit Case(Model of, double delay_ns, uint32_t trigger_pkts, uint64_t slo_ns = kSloNs)
      : model(std::move(of)), topology(model) {
    snapshot = even_tree_period(model, slo_ns, delay_ns, trigger_pkts);
    measure_again();
  }
  void measure_again() { state = measure(topology, settings, snapshot, {}); }
  [[nodiscard]] uint32_t trigger(uint32_t s) const { return state.segments[s].trigger_pkts; }

  Model model;
  Topology topology;
  Settings settings;
  Snapshot snapshot;
  PeriodState state;
};

// 0.7 * 32 = 22.4.
TEST(Push, TakesOutBuffersThatBatchesReachAlmostFull) {
  Case c(tree_model(2), 50'000, 28);
  c.snapshot.modules[2] = module_period(1e6, 23, 28, {1000, 50});
  c.snapshot.modules[4] = module_period(1e6, 22, 28, {1000, 50});
  c.measure_again();
  push(c.topology, c.settings, c.state);
  EXPECT_EQ(c.trigger(0), 0U);
  EXPECT_STREQ(c.state.segments[0].reason, "push");
  EXPECT_TRUE(c.state.segments[0].is_frozen);
  EXPECT_EQ(c.trigger(1), 28U);
  EXPECT_EQ(c.state.flows[0].slack_ns, 50'000);  // the next period shows the gain
}

TEST(Push, ThresholdIsASetting) {
  Case c(tree_model(2), 50'000, 28);
  c.settings.push_ratio = 0.15;  // 4.8 packets; batches of 5 arrive
  push(c.topology, c.settings, c.state);
  EXPECT_EQ(c.trigger(0), 0U);
  EXPECT_EQ(c.trigger(1), 0U);
}

// 3000 ns too late: floor(3000 / 1050) + 1 = 3 packets, worth 3150 ns; 3 < 20 - 9.
TEST(Recover, GivesBackAsMuchAsIsMissing) {
  Case c(tree_model(2), 103'000, 20);
  c.snapshot.flows[1] = flow_period(kSloNs, 99'000);
  c.measure_again();
  recover(c.topology, c.state);
  EXPECT_EQ(c.trigger(0), 17U);
  EXPECT_STREQ(c.state.segments[0].reason, "recover");
  EXPECT_NEAR(c.state.flows[0].slack_ns, 150, 1e-6);
  EXPECT_TRUE(c.state.flows[0].is_frozen);
  EXPECT_EQ(c.trigger(1), 20U);  // 99 us is tight, but no violation
  EXPECT_FALSE(c.state.flows[1].is_frozen);
}

// 11 000 ns: floor(11 000 / 1050) + 1 = 11 packets; 11 < 20 - 9 does not hold.
TEST(Recover, BypassesWhatWouldFallToItsLeastSize) {
  Case c(tree_model(2), 111'000, 20);
  recover(c.topology, c.state);
  EXPECT_EQ(c.trigger(0), 0U);
  EXPECT_NEAR(c.state.flows[0].slack_ns, -11'000 + 20 * 1050, 1e-6);
}

TEST(Recover, LeavesFrozenAndIdleBuffersAlone) {
  Case c(tree_model(2), 103'000, 20);
  c.state.segments[0].is_frozen = true;
  c.snapshot.modules[4] = module_period(0, 5, 20, {1000, 50});
  const PeriodState idle = measure(c.topology, c.settings, c.snapshot, {});
  c.state.segments[1] = idle.segments[1];
  recover(c.topology, c.state);
  EXPECT_EQ(c.trigger(0), 20U);
  EXPECT_EQ(c.trigger(1), 20U);
}

// first: 4 M packets per second, 250 + 10 ns per packet; second: 1 M, 1000 + 10. A trigger of 24
// fills in 6 us in the first, one of 12 in 12 us in the second: the second is the slower one.
struct TwoLevels {
  TwoLevels() : plant(two_level_model()) {
    plant.costs[1] = {1000, 10};
    for (const uint32_t m : {2, 4, 6, 8}) plant.costs[m] = {1000, 10};
    plant.triggers[1] = 24;
    for (const uint32_t m : {2, 4, 6, 8}) plant.triggers[m] = 12;
    plant.input_batch_pkts = 4;
  }
  PeriodState state_at(const Topology& topology, double delay_of_flow_0_ns) {
    Snapshot snapshot = plant.period();
    for (auto& flow : snapshot.flows) flow = flow_period(kSloNs, 80'000);
    snapshot.flows[0] = flow_period(kSloNs, delay_of_flow_0_ns);
    return measure(topology, {}, snapshot, {});
  }
  Plant plant;
};

TEST(Recover, StartsWithTheSlowestAndStopsWhenItIsEnough) {
  TwoLevels levels;
  const Topology topology(levels.plant.model);
  PeriodState state = levels.state_at(topology, 101'000);  // 1 packet of the second level
  recover(topology, state);
  EXPECT_EQ(state.segments[1].trigger_pkts, 11U);
  EXPECT_EQ(state.segments[0].trigger_pkts, 24U);
  EXPECT_NEAR(state.flows[0].slack_ns, 10, 1e-3);
}

// 13 000 ns: the second level cannot give 13 packets, and bypassing it gives 12 * 1010; of the 880
// missing, the first level gives floor(880 / 260) + 1 = 4 packets, to all four flows.
TEST(Recover, GoesOnToTheNextAndCreditsEveryFlowThroughIt) {
  TwoLevels levels;
  const Topology topology(levels.plant.model);
  PeriodState state = levels.state_at(topology, 113'000);
  recover(topology, state);
  EXPECT_EQ(state.segments[1].trigger_pkts, 0U);
  EXPECT_EQ(state.segments[0].trigger_pkts, 20U);
  EXPECT_NEAR(state.flows[0].slack_ns, -13'000 + 12 * 1010 + 4 * 260, 1e-3);
  EXPECT_NEAR(state.flows[3].slack_ns, 20'000 + 4 * 260, 1e-3);
  EXPECT_EQ(state.segments[2].trigger_pkts, 12U);
}

TEST(RecoverByBypass, TakesOutEveryBufferOfALateFlow) {
  TwoLevels levels;
  const Topology topology(levels.plant.model);
  PeriodState state = levels.state_at(topology, 100'100);
  recover_by_bypass(topology, state);
  EXPECT_EQ(state.segments[0].trigger_pkts, 0U);
  EXPECT_EQ(state.segments[1].trigger_pkts, 0U);
  EXPECT_EQ(state.segments[2].trigger_pkts, 12U);
  EXPECT_NEAR(state.flows[1].slack_ns, 20'000 + 24 * 260, 1e-3);
}

// A buffer of 9 costs 9450 ns. The SLO less 5 % is 95 us.
TEST(Pull, InsertsTheLeastSizeWhereItFits) {
  Case c(tree_model(2), 85'500, 0);
  c.snapshot.flows[1] = flow_period(kSloNs, 85'600);
  c.measure_again();
  pull(c.topology, c.settings, PullTo::kMin, c.state);
  EXPECT_EQ(c.trigger(0), 9U);
  EXPECT_STREQ(c.state.segments[0].reason, "pull");
  EXPECT_TRUE(c.state.segments[0].is_frozen);
  EXPECT_NEAR(c.state.flows[0].slack_ns, 14'500 - 9450, 1e-6);
  EXPECT_EQ(c.trigger(1), 0U);
}

TEST(Pull, SharesTheHeadroomOfAFlow) {
  TwoLevels levels;
  levels.plant.triggers.assign(levels.plant.triggers.size(), 0);
  const Topology topology(levels.plant.model);
  // Batches of 4 reach the first level, of 1 the second: 8 * 260 = 2080 and 5 * 1010 = 5050 ns.
  PeriodState state = levels.state_at(topology, 95'000 - 7000);
  pull(topology, {}, PullTo::kMin, state);
  EXPECT_EQ(state.segments[0].trigger_pkts, 8U);
  EXPECT_EQ(state.segments[1].trigger_pkts, 0U);  // flow 0 has 4920 ns left
  EXPECT_EQ(state.segments[2].trigger_pkts, 5U);
}

TEST(Pull, NotForFlowsInRecoveryNotForFullBatchesNotWithoutTraffic) {
  Case c(tree_model(3), 50'000, 0);
  c.snapshot.modules[2] = module_period(0, 5, 0, {1000, 50});
  c.snapshot.modules[4] = module_period(1e6, 23, 0, {1000, 50});
  c.measure_again();
  c.state.flows[2].is_frozen = true;
  pull(c.topology, c.settings, PullTo::kMin, c.state);
  for (uint32_t s = 0; s < 3; ++s) EXPECT_EQ(c.trigger(s), 0U);
}

TEST(Pull, WithoutAnSloNothingLimitsIt) {
  Case c(tree_model(2), 1e9, 0, 0);
  pull(c.topology, c.settings, PullTo::kFull, c.state);
  EXPECT_EQ(c.trigger(0), 32U);
  EXPECT_EQ(c.trigger(1), 32U);
}

TEST(Pull, NeverAboveTheBatchSize) {
  Model model = tree_model(2);
  model.batch_limit_pkts = 8;
  Case c(std::move(model), 50'000, 0);
  pull(c.topology, c.settings, PullTo::kMin, c.state);
  EXPECT_EQ(c.trigger(0), 8U);
}

}  // namespace phases_test
}  // namespace batchplane::slo
