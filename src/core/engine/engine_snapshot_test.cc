// SPDX-License-Identifier: BSD-3-Clause
// engine_snapshot_test.cc - where a snapshot shows counts of modules that are gone; inputs keep counting
// across an apply.
#include <gtest/gtest.h>

#include <algorithm>

#include "engine_rig.h"

namespace batchplane {
namespace engine_snapshot_test {

// in -> s -> {a, b} -> out; b may be missing, its gate then leads nowhere.
PipelineSpec fork(bool has_b) {
  PipelineSpec spec;
  spec.engine.is_idle_hold = true;
  spec.modules = {{"in", "source", {{"limit_pkts", 640}}},
                  {"s", "split", {{"gates", 2}}},
                  {"a", "counter", {}},
                  {"out", "sink", {}}};
  spec.edges = {{"in", "0", "s"}, {"s", "0", "a"}, {"a", "0", "out"}};
  if (!has_b) return spec;
  spec.modules.push_back({"b", "counter", {}, 32});
  spec.edges.push_back({"s", "1", "b"});
  spec.edges.push_back({"b", "0", "out"});
  return spec;
}

uint64_t drops_for(const std::vector<uint64_t>& drops, const std::string& reason) {
  const auto& all = drop_reasons();
  const auto it = std::ranges::find(all, reason, &DropReasonInfo::name);
  return it == all.end() ? 0 : drops[static_cast<size_t>(it - all.begin())];
}

const ModuleSnapshot& module_of(const Snapshot& snapshot, const std::string& name) {
  return *std::ranges::find(snapshot.modules, name, &ModuleSnapshot::name);
}

TEST(Snapshot, GatesThatLeadNowhereCountAmongTheOtherDrops) {
  EngineRig rig(fork(false));
  rig.loop(5);
  const Snapshot snapshot = rig.balanced();
  EXPECT_EQ(drops_for(snapshot.other_drops, "unconnected_gate"), 80U) << "half of five batches";
  EXPECT_EQ(sum_of(snapshot.other_drops), 80U);
  EXPECT_EQ(snapshot.balance.dropped_pkts, 80U);
  for (const ModuleSnapshot& module : snapshot.modules) EXPECT_EQ(sum_of(module.drops), 0U);
}

TEST(Snapshot, DropsOfRemovedModulesMoveToTheOthersAndComeBack) {
  EngineRig rig(fork(true));
  rig.loop(1);  // b holds half of a batch
  ASSERT_EQ(module_of(rig.balanced(), "b").held_pkts, 16U);
  rig.engine().apply(rig.build(fork(false)));
  const Snapshot without = rig.balanced();
  EXPECT_EQ(drops_for(without.other_drops, "removed_by_apply"), 16U);
  EXPECT_EQ(without.balance.dropped_pkts, 16U);
  rig.engine().apply(rig.build(fork(true)));
  const Snapshot with = rig.balanced();
  EXPECT_EQ(sum_of(with.other_drops), 0U);
  EXPECT_EQ(drops_for(module_of(with, "b").drops, "removed_by_apply"), 16U)
      << "a module of that name is there again";
}

TEST(Snapshot, InputsGoOnCountingOverAnApply) {
  EngineRig rig(fork(true));
  rig.loop(3);
  const Snapshot before = rig.balanced();
  EXPECT_EQ(module_of(before, "in").pkts, 96U);
  EXPECT_EQ(module_of(before, "in").batches, 3U);
  for (int i = 0; i < 2; ++i) {
    rig.engine().apply(rig.build(fork(i == 0)));
    EXPECT_EQ(module_of(rig.balanced(), "in").pkts, 96U);
  }
  rig.loop(2);
  const Snapshot after = rig.balanced();
  EXPECT_EQ(module_of(after, "in").pkts, 160U);
  EXPECT_EQ(module_of(after, "in").batches, 5U);
  EXPECT_EQ(after.balance.in_pkts, 160U);
  EXPECT_EQ(module_of(after, "s").pkts, 160U);
}

TEST(Snapshot, AnInputThatWasAwayGoesOnWhereItStopped) {
  EngineRig rig(fork(false));
  rig.loop(3);
  PipelineSpec other = fork(false);
  other.modules[0].name = "in2";
  other.edges[0].from = "in2";
  rig.engine().apply(rig.build(other));
  rig.loop(4);
  const Snapshot meanwhile = rig.balanced();
  EXPECT_EQ(module_of(meanwhile, "in2").pkts, 128U);
  EXPECT_EQ(meanwhile.balance.in_pkts, 96U + 128U) << "what is gone still came in";
  rig.engine().apply(rig.build(fork(false)));
  rig.loop(1);
  const Snapshot back = rig.balanced();
  EXPECT_EQ(module_of(back, "in").pkts, 96U + 32U);
  EXPECT_EQ(back.balance.in_pkts, 96U + 128U + 32U);
}

TEST(Engine, StopCarriesPacketsThroughAllQueuesWhateverWorkersTheyJoin) {
  // Five tasks in a row, on the two workers in turn, the first one on the second worker.
  PipelineSpec spec;
  spec.workers = {{"w0", -1}, {"w1", -1}};
  spec.modules = {{"in", "source", {{"limit_pkts", 320}}, 0, 0, "w1"}, {"out", "sink", {}}};
  std::string before = "in";
  for (int i = 0; i < 4; ++i) {
    const std::string name = "q" + std::to_string(i);
    spec.modules.push_back({name, "queue", {}, 0, 0, i % 2 == 0 ? "w0" : "w1"});
    spec.edges.push_back({before, "0", name});
    before = name;
  }
  spec.edges.push_back({before, "0", "out"});
  EngineRig rig(spec);
  rig.engine().stop(true);
  const Snapshot end = rig.balanced();
  EXPECT_EQ(end.balance.sent_pkts, 320U);
  EXPECT_EQ(end.balance.held_pkts, 0U);
}

}  // namespace engine_snapshot_test
}  // namespace batchplane
