// SPDX-License-Identifier: BSD-3-Clause
// full_test.cc - the projected-gradient controller over many periods, on a plant that follows the
// cost law.
#include "slo/controllers.h"

#include <gtest/gtest.h>

#include <random>

#include "slo/model/plant_test_util.h"

namespace batchplane::slo {
namespace full_test {

std::vector<uint32_t> controlled_triggers(const Plant& plant) {
  std::vector<uint32_t> triggers;
  for (uint32_t m = 0; m < plant.model.modules.size(); ++m) {
    if (plant.model.modules[m].is_controlled) triggers.push_back(plant.triggers[m]);
  }
  return triggers;
}

TEST(Full, WithoutSloEndsAsMax) {
  Plant plant = tree_plant(4);
  plant.flow_pps = {4e6, 1e6, 3e5, 1e5};
  plant.input_batch_pkts = 32;
  const auto controller = make_controller("full", plant.model, {});
  for (int i = 0; i < 10; ++i) plant.step(*controller);
  // The first branch gets 23.7 of 32 packets: its batches arrive almost full.
  EXPECT_EQ(controlled_triggers(plant), (std::vector<uint32_t>{0, 32, 32, 32}));
  plant.input_batch_pkts = 16;
  for (int i = 0; i < 10; ++i) plant.step(*controller);
  EXPECT_EQ(controlled_triggers(plant), std::vector<uint32_t>(4, 32));
  EXPECT_FALSE(plant.step(*controller));
  const auto max = make_controller("max", plant.model, {});
  EXPECT_TRUE(max->step(plant.period()).changes.empty());
}

// The shape of the original's demonstration: two equal branches get batches of 15.5; a buffer of 19
// is put in at 19 * 301 ns = 5.7 us, grows to 32 in the next period, and stays there.
TEST(Full, PullsThenGrowsThenRests) {
  Plant plant(tree_model(2));
  plant.costs[2] = plant.costs[4] = {100, 10};
  plant.flow_pps = {1e9 / 291.3, 1e9 / 291.3};
  plant.slo_ns = {100'000, 100'000};
  plant.input_batch_pkts = 31;
  plant.turnaround_ns = 11'000;
  const auto controller = make_controller("full", plant.model, {});
  plant.step(*controller);
  EXPECT_EQ(controlled_triggers(plant), (std::vector<uint32_t>{19, 19}));
  plant.step(*controller);
  EXPECT_EQ(controlled_triggers(plant), (std::vector<uint32_t>{32, 32}));
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(plant.step(*controller));
}

// Flow 0 through two buffers: q is proportional to sqrt(A rate / (1 / rate + M)), which is
// sqrt(1000 * 4 / 260) : sqrt(2000 / 1010) = 2.79 : 1 here. The other branches have no SLO.
TEST(Full, ReachesTheOptimumOfASingleFlow) {
  Plant plant(two_level_model());
  plant.costs[1] = {1000, 10};
  for (const uint32_t m : {2, 4, 6, 8}) plant.costs[m] = {2000, 10};
  plant.input_batch_pkts = 4;
  plant.slo_ns[0] = 24'000;
  Settings settings;
  settings.pull_pkts = 1;
  const auto controller = make_controller("full", plant.model, settings);
  for (int i = 0; i < 30; ++i) plant.step(*controller);

  Plant best = plant;
  double min_load = 1e9;
  for (uint32_t q1 = 5; q1 <= 32; ++q1) {
    for (uint32_t q2 = q1 / 4 + 1; q2 <= 32; ++q2) {
      Plant tried = plant;
      tried.triggers[1] = q1;
      tried.triggers[2] = q2;
      if (tried.delay_ns(0) > 0.95 * 24'000 || tried.load() >= min_load) continue;
      min_load = tried.load();
      best = tried;
    }
  }
  EXPECT_LE(plant.load(), 1.01 * min_load);
  EXPECT_LE(plant.delay_ns(0), 24'000);
  EXPECT_NEAR(static_cast<double>(plant.triggers[1]) / plant.triggers[2], 2.79, 0.45);
  EXPECT_EQ(plant.triggers[4], 32U);
}

// From the tenth period on the load is within 5 % of its final value; every SLO is always kept.
TEST(Full, ConvergesWithinTenPeriods) {
  for (const uint64_t slo_ns : {40'000, 80'000, 200'000, 1'000'000}) {
    Plant plant = tree_plant(16);
    for (size_t f = 0; f < 16; ++f) {
      plant.flow_pps[f] = 2e5 + 4e4 * static_cast<double>(f);
      plant.slo_ns[f] = slo_ns;
    }
    const auto controller = make_controller("full", plant.model, {});
    std::vector<double> loads;
    for (int i = 0; i < 60; ++i) {
      plant.step(*controller);
      loads.push_back(plant.load());
      for (uint32_t f = 0; f < 16; ++f) EXPECT_LE(plant.delay_ns(f), slo_ns);
    }
    for (size_t i = 9; i < loads.size(); ++i) {
      EXPECT_NEAR(loads[i], loads.back(), 0.05 * loads.back()) << slo_ns << " ns, period " << i;
    }
  }
}

// Branches that differ in cost, rate and SLO: each period ends at the first flow without room, and
// the others go on in the next period.
TEST(Full, ConvergesWithinTenPeriodsWhereBranchesDiffer) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 40; ++round) {
    Plant plant(tree_model(16));
    for (uint32_t i = 0; i < 16; ++i) {
      plant.costs[2 + 2 * i] = {500.0 + static_cast<double>(random() % 3000),
                                20.0 + static_cast<double>(random() % 100)};
      plant.flow_pps[i] = 1e5 + static_cast<double>(random() % 500'000);
      plant.slo_ns[i] = 80'000 + random() % 400'000;
    }
    const auto controller = make_controller("full", plant.model, {});
    std::vector<double> loads;
    for (int i = 0; i < 60; ++i) {
      plant.step(*controller);
      loads.push_back(plant.load());
      for (uint32_t f = 0; f < 16; ++f) EXPECT_LE(plant.delay_ns(f), plant.slo_ns[f]);
    }
    for (size_t i = 9; i < loads.size(); ++i) {
      EXPECT_NEAR(loads[i], loads.back(), 0.05 * loads.back()) << "period " << i;
    }
  }
}

TEST(Full, RecoversInOnePeriodWhenAnSloTightens) {
  Plant plant = tree_plant(4);
  plant.slo_ns.assign(4, 100'000);
  const auto controller = make_controller("full", plant.model, {});
  for (int i = 0; i < 10; ++i) plant.step(*controller);
  EXPECT_EQ(controlled_triggers(plant), std::vector<uint32_t>(4, 32));
  plant.slo_ns[1] = 25'000;
  const Decision decision = controller->step(plant.period());
  ASSERT_EQ(decision.changes.size(), 1U);
  EXPECT_STREQ(decision.changes[0].reason, "recover");
  plant.triggers[decision.changes[0].module] = decision.changes[0].trigger_pkts;
  EXPECT_LE(plant.delay_ns(1), 25'000);
  EXPECT_EQ(decision.flows[1].state, exec::FlowState::kViolating);
  EXPECT_LT(decision.flows[1].slack_ns, 0);
  EXPECT_EQ(decision.flows[0].state, exec::FlowState::kMet);
}

TEST(Full, SaysWhenAnSloIsOutOfReach) {
  Plant plant = tree_plant(2);
  plant.costs[2] = {30'000, 50};
  plant.slo_ns = {20'000, 2000};
  const auto controller = make_controller("full", plant.model, {});
  const Decision decision = controller->step(plant.period());
  EXPECT_EQ(decision.flows[0].state, exec::FlowState::kInherent);    // 30 us of service alone
  EXPECT_EQ(decision.flows[1].state, exec::FlowState::kInfeasible);  // bypassed, and still late
  EXPECT_FALSE(decision.flows[1].hint.empty());
}

// The original's aggregated costs grow with every period: after 200 periods it counts 1000 + 201 *
// 50 ns of delay per packet, and has no room for the 8 packets that cost 8.4 us.
TEST(FullOriginal, GrowsMoreCautiousWithTime) {
  Plant plant = tree_plant(4);
  plant.slo_ns.assign(4, 80'000);
  const auto original = make_controller("full(original)", plant.model, {});
  for (int i = 0; i < 200; ++i) original->step(plant.period());
  plant.step(*original);
  EXPECT_EQ(controlled_triggers(plant), std::vector<uint32_t>(4, 0));
  const auto full = make_controller("full", plant.model, {});
  for (int i = 0; i < 200; ++i) full->step(plant.period());
  plant.step(*full);
  EXPECT_EQ(controlled_triggers(plant), std::vector<uint32_t>(4, 8));
}

TEST(FullAge, LimitsFollowFromTheSlack) {
  Plant plant = tree_plant(2);
  plant.slo_ns = {60'000, 0};
  const auto controller = make_controller("full+age", plant.model, {});
  const Decision decision = controller->step(plant.period());
  ASSERT_EQ(decision.changes.size(), 2U);
  // 60 us, less 1000 + 50 * 8 ns of service, less one run of 2 us.
  EXPECT_EQ(decision.changes[0].age_limit_ns, 56'600U);
  EXPECT_EQ(decision.changes[1].age_limit_ns, exec::kStrandingAge);
}

TEST(FullAge, FollowsAnSloEditAndIsQuietOtherwise) {
  Plant plant = tree_plant(2);
  plant.slo_ns = {100'000, 100'000};
  const auto controller = make_controller("full+age", plant.model, {});
  std::vector<uint64_t> ages(plant.model.modules.size(), 0);
  const auto step = [&] {
    Snapshot snapshot = plant.period();
    for (size_t m = 0; m < ages.size(); ++m) snapshot.modules[m].age_limit_ns = ages[m];
    const Decision decision = controller->step(snapshot);
    for (const exec::BufferChange& change : decision.changes) {
      plant.triggers[change.module] = change.trigger_pkts;
      ages[change.module] = change.age_limit_ns;
    }
    return decision;
  };
  for (int i = 0; i < 10; ++i) step();
  EXPECT_TRUE(step().changes.empty());
  plant.slo_ns[0] = 90'000;
  const Decision edited = step();
  ASSERT_EQ(edited.changes.size(), 1U);
  EXPECT_STREQ(edited.changes[0].reason, "age");
  EXPECT_EQ(edited.changes[0].trigger_pkts, 32U);
  EXPECT_EQ(edited.changes[0].age_limit_ns, 90'000U - 2600 - 2000);
}

// Settings of the previous controller are removed in the first step; later settings by a user stay.
TEST(Full, ReplacesAgeLimitsOfItsPredecessorOnly) {
  Plant plant = tree_plant(2);
  plant.triggers[2] = plant.triggers[4] = 32;
  Snapshot snapshot = plant.period();
  for (auto& module : snapshot.modules) module.age_limit_ns = 5000;
  const auto controller = make_controller("full", plant.model, {});
  const Decision first = controller->step(snapshot);
  ASSERT_EQ(first.changes.size(), 2U);
  EXPECT_EQ(first.changes[0].age_limit_ns, exec::kStrandingAge);
  EXPECT_TRUE(controller->step(snapshot).changes.empty());
}

TEST(Full, ExplainsWhatItSaw) {
  Plant plant = tree_plant(2);
  plant.slo_ns = {60'000, 0};
  const auto controller = make_controller("full", plant.model, {});
  controller->step(plant.period());
  const Explanation explained = controller->explain();
  EXPECT_EQ(explained.flows.at(0).state, exec::FlowState::kMet);
  EXPECT_EQ(explained.flows.at(1).state, exec::FlowState::kNoSlo);
  EXPECT_EQ(plant.model.modules[explained.modules.at(0).module].name, "nf_0");
  EXPECT_EQ(explained.modules.at(0).why, "pull");
  EXPECT_EQ(explained.modules.at(0).trigger_pkts, 12U);
  EXPECT_EQ(explained.modules.at(0).binding_flow, 0U);
}

}  // namespace full_test
}  // namespace batchplane::slo
