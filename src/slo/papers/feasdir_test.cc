// SPDX-License-Identifier: BSD-3-Clause
// feasdir_test.cc - one module per period along its own gradient.
//
// In an even tree each additional packet in a trigger costs a flow 1050 ns, and the least trigger
// is 9.
#include "slo/controllers.h"

#include <gtest/gtest.h>

#include "slo/model/plant_test_util.h"

namespace batchplane::slo {
namespace feasdir_test {

constexpr uint64_t kSloNs = 100'000;

// The first branch's trigger after the first step; the others must not change.
uint32_t first_trigger_after(const Snapshot& snapshot, uint32_t n_branches = 2) {
  const Model model = tree_model(n_branches);
  const Decision decision = make_controller("feasdir", model, {})->step(snapshot);
  EXPECT_LE(decision.changes.size(), 1U);
  if (decision.changes.empty()) return snapshot.modules[2].trigger_pkts;
  EXPECT_EQ(decision.changes[0].module, 2U);
  return decision.changes[0].trigger_pkts;
}

TEST(FeasDir, InsertsTheLeastSizeWhereItFits) {
  const Model model = tree_model(2);
  EXPECT_EQ(first_trigger_after(even_tree_period(model, kSloNs, 85'500, 0)), 9U);  // 9450 of 9500
  EXPECT_EQ(first_trigger_after(even_tree_period(model, kSloNs, 85'600, 0)), 0U);
}

TEST(FeasDir, RaisesByTheSlackAndToFullBatches) {
  const Model model = tree_model(2);
  EXPECT_EQ(first_trigger_after(even_tree_period(model, kSloNs, 80'000, 10)), 24U);  // 15 000/1050
  EXPECT_EQ(first_trigger_after(even_tree_period(model, kSloNs, 30'000, 10)), 32U);
  EXPECT_EQ(first_trigger_after(even_tree_period(model, 0, 30'000, 10)), 32U);
}

TEST(FeasDir, LowersByWhatALateFlowMisses) {
  const Model model = tree_model(2);
  EXPECT_EQ(first_trigger_after(even_tree_period(model, kSloNs, 103'000, 20)), 17U);  // 3000 / 1050
  EXPECT_EQ(first_trigger_after(even_tree_period(model, kSloNs, 190'000, 20)), 9U);
}

TEST(FeasDir, BypassesTheLeastSizeOnlyBeyondTheTolerance) {
  const Model model = tree_model(2);
  EXPECT_EQ(first_trigger_after(even_tree_period(model, kSloNs, 104'000, 9)), 9U);
  EXPECT_EQ(first_trigger_after(even_tree_period(model, kSloNs, 106'000, 9)), 0U);
}

TEST(FeasDir, TakesOutBuffersThatBatchesReachAlmostFull) {
  const Model model = tree_model(2);
  Snapshot snapshot = even_tree_period(model, kSloNs, 30'000, 28);
  snapshot.modules[2] = module_period(1e6, 23, 28, {1000, 50});
  EXPECT_EQ(first_trigger_after(snapshot), 0U);
}

// With an input that never empties, flow 1 gains from a larger trigger on flow 0's path: one more
// packet at 10 saves 1000 * 0.001 / 100 of all time, so that flow 1's own buffer of 10 fills 100 ns
// sooner.
TEST(FeasDir, AtSaturationARaiseElsewhereHelpsALateFlow) {
  const Model model = tree_model(2);
  Snapshot snapshot = even_tree_period(model, kSloNs, 50'000, 10);
  snapshot.flows[1] = flow_period(kSloNs, 100'450);
  snapshot.tasks[0].busy_ns = 100'000'000;
  snapshot.tasks[0].idle_ns = 0;
  EXPECT_EQ(first_trigger_after(snapshot), 14U);  // 450 ns / 100 ns, rounded down
  snapshot.tasks[0].idle_ns = 100'000'000;        // not saturated: flow 1 has no say
  EXPECT_EQ(first_trigger_after(snapshot), 32U);
}

TEST(FeasDir, TakesTurnsAndPassesOverIdleModules) {
  const Model model = tree_model(3);
  Snapshot snapshot = even_tree_period(model, 0, 0, 0);
  snapshot.modules[4] = module_period(0, 5, 0, {1000, 50});
  const auto controller = make_controller("feasdir", model, {});
  std::vector<uint32_t> turns;
  for (int i = 0; i < 4; ++i) turns.push_back(controller->step(snapshot).changes.at(0).module);
  EXPECT_EQ(turns, (std::vector<uint32_t>{2, 6, 2, 6}));
}

// first: 4 times the rate of second_0, which holds 6: a trigger above 24 would fill more slowly.
TEST(FeasDir, NeverFillsMoreSlowlyThanTheBufferBehind) {
  Plant plant(two_level_model());
  plant.costs[1] = {1000, 10};
  for (const uint32_t m : {2, 4, 6, 8}) plant.costs[m] = {1000, 10};
  plant.input_batch_pkts = 4;
  plant.triggers[1] = 10;
  plant.triggers[2] = 6;
  const Decision decision = make_controller("feasdir", plant.model, {})->step(plant.period());
  ASSERT_EQ(decision.changes.size(), 1U);
  EXPECT_EQ(decision.changes[0].module, 1U);
  EXPECT_EQ(decision.changes[0].trigger_pkts, 24U);
}

}  // namespace feasdir_test
}  // namespace batchplane::slo
