// SPDX-License-Identifier: BSD-3-Clause
// load_test.cc - what polls that take all they may tell about the load.
#include "slo/estimate/load.h"

#include <gtest/gtest.h>

#include "exec/ring_size.h"
#include "slo/estimate/rings.h"
#include "slo/model/ring_plant_test_util.h"

namespace batchplane::slo {
namespace load_test {

constexpr double kPeriodNs = 10e6;

struct Rig {
  explicit Rig(double rate_pkts_per_ns) : plant({{400, 10, 1, 0}}, rate_pkts_per_ns, 1) {}
  Snapshot step() {
    const Snapshot snapshot = plant.run(kPeriodNs, 0.95);
    view.update(snapshot);
    EXPECT_TRUE(load.update(snapshot, view));
    return snapshot;
  }
  RingPlant plant;
  Settings settings;
  ProgramView view{plant.model, settings};
  Load load{plant.model};
};

TEST(Load, AnInputThatFillsEveryPollIsNeverEmpty) {
  Rig rig(0);
  rig.plant.poll_pkts = 8;
  const Snapshot snapshot = rig.step();
  EXPECT_EQ(snapshot.tasks[0].in_pkts, 8 * snapshot.tasks[0].runs);
  EXPECT_TRUE(rig.load.is_saturated());
  EXPECT_EQ(rig.load.poll_limit_pkts(0), 8U);
  // The same counts, of polls that might have taken more.
  Snapshot other = snapshot;
  other.tasks[0].poll_pkts = 0;
  rig.view.update(other);
  EXPECT_TRUE(rig.load.update(other, rig.view));
  EXPECT_FALSE(rig.load.is_saturated());
  EXPECT_EQ(rig.load.poll_limit_pkts(0), 32U);
}

// Without counts of inputs, the ring is full but for what a poll takes.
TEST(Load, APollLeavesTheRestOfAFullRing) {
  Rig rig(0);
  rig.plant.poll_pkts = 8;
  Snapshot snapshot = rig.step();
  snapshot.inputs.clear();
  EXPECT_TRUE(rig.load.update(snapshot, rig.view));
  EXPECT_DOUBLE_EQ(rig.load.left_pkts(0), exec::kDefaultRingPkts - 8);
}

// Real ports have rings of their own size.
TEST(Load, InputsTellTheSizeOfTheRing) {
  Rig rig(0);
  rig.plant.ring_pkts = 1024;
  Snapshot snapshot = rig.step();
  EXPECT_EQ(rig.load.ring_pkts(), 1024U);
  snapshot.inputs.clear();
  EXPECT_TRUE(rig.load.update(snapshot, rig.view));
  EXPECT_EQ(rig.load.ring_pkts(), exec::kDefaultRingPkts);
}

// A ring that is never empty holds its credit; what the next poll takes does not wait.
TEST(Load, SmallPollsLeaveMoreInRings) {
  Rig rig(0);
  rig.plant.model.inputs.push_back({.module = 2, .task = 0, .is_queue = true, .size_pkts = 256});
  for (const uint32_t poll_pkts : {32U, 8U}) {
    rig.plant.poll_pkts = poll_pkts;
    Rings rings(rig.plant.model, rig.load);
    (void)rig.step();
    rings.update(rig.view.program());
    rings.set_credit(2);
    EXPECT_DOUBLE_EQ(rings.left_pkts(0), 64 - poll_pkts);
  }
}

// At saturation a worker may wait for others now and then: still, more credit is more that waits before it.
TEST(Load, TheBusiestWorkersRingIsFullAtSaturation) {
  for (const bool is_saturated : {true, false}) {
    Rig rig(is_saturated ? 0 : 0.002);
    rig.plant.model.inputs.push_back({.module = 2, .task = 0, .is_queue = true, .size_pkts = 256});
    Snapshot snapshot = rig.step();
    snapshot.tasks[0].idle_ns = snapshot.tasks[0].busy_ns / 10;
    ASSERT_TRUE(rig.load.update(snapshot, rig.view));
    ASSERT_EQ(rig.load.is_saturated(), is_saturated);
    Rings rings(rig.plant.model, rig.load);
    rings.update(rig.view.program());
    rings.set_credit(2);
    EXPECT_DOUBLE_EQ(rings.left_pkts(0), is_saturated ? 32 : 0);
  }
}

// Full runs share what a run costs once, 60 and 400 ns here. The 18 ns that each packet costs where there are
// no buffers stay, though no full run has been seen.
TEST(Load, FullRunsSpareWhatRunsCostOnce) {
  Rig rig(0.002);
  const Snapshot snapshot = rig.step();
  const double run_pkts = rig.view.program().tasks[0].run_pkts;
  ASSERT_LT(run_pkts, 8);
  EXPECT_NEAR(rig.load.spared_ns()[0], 460 / run_pkts - 460.0 / 32, 1);
}

}  // namespace load_test
}  // namespace batchplane::slo
