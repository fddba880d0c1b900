// SPDX-License-Identifier: BSD-3-Clause
// rings_test.cc - which ring credits are tried, and which come back.
#include "slo/estimate/rings.h"

#include <gtest/gtest.h>

#include "slo/model/ring_plant_test_util.h"

namespace batchplane::slo {
namespace rings_test {

RingPlant with_ring() {
  RingPlant plant({{400, 10, 1, 0}}, 0, 1);
  plant.model.inputs.push_back({.module = 2, .task = 0, .is_queue = true, .size_pkts = 256});
  return plant;
}

// A saturated task behind a ring, idle for this share of the time, with a credit of two batches in force.
struct Rig {
  explicit Rig(double idle) {
    Snapshot snapshot = plant.run(10e6, 0.95);
    auto& task = snapshot.tasks[0];
    task.idle_ns = static_cast<uint64_t>(idle / (1 - idle) * static_cast<double>(task.busy_ns));
    view.update(snapshot);
    EXPECT_TRUE(load.update(snapshot, view));
    decide(2);
    Decision again;
    rings.decide(again);
  }
  void decide(uint32_t credit_batches) {
    Decision decision;
    rings.set_credit(credit_batches);
    rings.decide(decision);
  }
  // Periods until another credit is looked at.
  uint32_t wait() {
    uint32_t n = 1;
    while (rings.other_to_look_at(true, false) == 0 && n < 1000) ++n;
    return n;
  }
  RingPlant plant = with_ring();
  Settings settings;
  ProgramView view{plant.model, settings};
  Load load{plant.model};
  Rings rings{plant.model, load};
};

// Workers that wait for each other do so no less with a smaller credit; a larger one may do.
TEST(Rings, ASmallerCreditWastesNoLess) {
  Rig rig(0.1);
  rig.rings.update(rig.view.program());
  EXPECT_GT(rig.rings.waste(2), 0);
  EXPECT_EQ(rig.rings.waste(1), rig.rings.waste(2));
  EXPECT_EQ(rig.rings.waste(4), 0);
}

// After many changes credits rest for long, but not one under which flows stay late.
TEST(Rings, ACreditThatStaysLateIsLeftSoon) {
  Rig rig(0);
  for (const uint32_t credit : {4, 2, 4, 2, 4, 2}) rig.decide(credit);
  EXPECT_GT(rig.wait(), 64U);
  rig.decide(4);
  uint32_t n = 1;
  while (rig.rings.other_to_look_at(true, true) == 0 && n < 1000) ++n;
  EXPECT_LE(n, 5U);
}

TEST(Rings, ACreditThatStaysLateIsLeftNoLaterThanOthers) {
  Rig rig(0);
  Rig late(0);
  uint32_t n = 1;
  while (late.rings.other_to_look_at(true, true) == 0 && n < 1000) ++n;
  EXPECT_LE(n, rig.wait());
}

// The one before goes back into force with its triggers, and no other is tried for a while.
TEST(Rings, ACreditThatIsLateAndSlowerFails) {
  Rig rig(0);
  const uint32_t wait = rig.wait();
  rig.rings.leave({2, {7}, 0.01});
  rig.decide(1);
  const auto back = rig.rings.way_back(false, false, 0.009);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->credit_batches, 2);
  EXPECT_EQ(back->triggers_pkts, Triggers{7});
  rig.decide(2);
  EXPECT_FALSE(rig.rings.way_back(false, true, 0.009)) << "once";
  EXPECT_GE(rig.wait(), 32U) << "instead of " << wait;
}

// The model errs at first with another credit. It has failed once the plan would leave it late.
TEST(Rings, ACreditThatCarriesMoreMayBeLateWhileTriggersMove) {
  Rig rig(0);
  rig.rings.leave({2, {7}, 0.01});
  rig.decide(1);
  EXPECT_FALSE(rig.rings.way_back(false, false, 0.011));
  EXPECT_TRUE(rig.rings.way_back(false, true, 0.011));
}

// What breaks an SLO later is no failure of the credit.
TEST(Rings, ACreditThatKeptAllSlosStays) {
  Rig rig(0);
  rig.rings.leave({2, {7}, 0.01});
  rig.decide(1);
  EXPECT_FALSE(rig.rings.way_back(true, false, 0.011));
  EXPECT_FALSE(rig.rings.way_back(false, true, 0.009));
}

// What a smaller credit loses is not known before it is tried.
TEST(Rings, ACreditThatCarriesLessFailsThoughItKeepsAllSlos) {
  Rig rig(0);
  rig.rings.leave({2, {7}, 0.01});
  rig.decide(1);
  EXPECT_FALSE(rig.rings.way_back(false, false, 0.0098)) << "by no more than periods vary";
  EXPECT_TRUE(rig.rings.way_back(true, false, 0.009));
}

TEST(Rings, WhatKeptOtherSlosDoesNotComeBack) {
  Rig rig(0);
  rig.rings.leave({2, {7}, 0.01});
  rig.decide(1);
  rig.rings.forget();
  EXPECT_FALSE(rig.rings.way_back(false, true, 0.009));
}

}  // namespace rings_test
}  // namespace batchplane::slo
