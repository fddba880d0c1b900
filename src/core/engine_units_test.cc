// SPDX-License-Identifier: BSD-3-Clause
// engine_units_test.cc - explicit scheduling in the engine: balance, drops, live weights, apply
// from one mode to the other, stop.
#include <gtest/gtest.h>

#include "base/error.h"
#include "engine_rig.h"

namespace batchplane {
namespace {

exec::Scheduling wfq(exec::Backpressure backpressure, uint32_t input_weight = 1) {
  exec::Scheduling how;
  how.mode = exec::Execution::kWeightedFair;
  how.by = exec::ScheduleBy::kCount;
  how.backpressure = backpressure;
  how.input_weight = input_weight;
  return how;
}

// in -> s -> a0..a3 -> m -> out: the leaves and the merger are units.
PipelineSpec fan(const exec::Scheduling& how, uint64_t limit_pkts) {
  PipelineSpec spec;
  spec.engine.execution = how;
  spec.modules = {{"in", "source", {{"limit_pkts", limit_pkts}}},
                  {"s", "split", {{"gates", 4}, {"mode", "random"}}},
                  {"m", "merge", {}},
                  {"out", "sink", {}}};
  spec.edges = {{"in", "0", "s"}, {"m", "0", "out"}};
  for (uint32_t i = 0; i < 4; ++i) {
    const std::string name = "a" + std::to_string(i);
    spec.modules.push_back({name, "counter", {}});
    spec.edges.push_back({"s", std::to_string(i), name});
    spec.edges.push_back({name, "0", "m"});
    spec.flows.push_back({"f" + std::to_string(i), {"in", name, "out"}, 1000});
  }
  return spec;
}

const ModuleSnapshot& module_of(const Snapshot& now, const std::string& name) {
  return *std::ranges::find(now.modules, name, &ModuleSnapshot::name);
}

TEST(EngineUnits, EveryPacketIsAccountedFor) {
  for (const auto backpressure :
       {exec::Backpressure::kOff, exec::Backpressure::kOn, exec::Backpressure::kEarlyDrop}) {
    EngineRig rig(fan(wfq(backpressure, 20), 60'000));
    for (uint32_t i = 0; i < 400; ++i) {
      rig.loop(37);
      const Snapshot now = rig.balanced();
      for (const ModuleSnapshot& module : now.modules) {
        if (module.unit.queue_pkts != 0) EXPECT_LE(module.held_pkts, 64U) << module.name;
      }
    }
    rig.engine().stop(true);
    const Snapshot now = rig.balanced();
    EXPECT_EQ(now.balance.in_pkts, 60'000U);
    EXPECT_EQ(now.balance.held_pkts, 0U);
    const bool is_lossless = backpressure == exec::Backpressure::kOn;
    EXPECT_EQ(now.balance.dropped_pkts == 0, is_lossless);
    rig.expect_pool_whole(now);
  }
}

TEST(EngineUnits, WeightsAreSetLiveAndSaved) {
  EngineRig rig(fan(wfq(exec::Backpressure::kOff, 8), 0));
  rig.engine().set_weights({{"a1", 3}, {"in", 5}});
  rig.loop(4000);
  const Snapshot now = rig.balanced();
  const auto turns = [&](const char* name) {
    return static_cast<double>(module_of(now, name).unit.turns);
  };
  EXPECT_EQ(module_of(now, "a1").unit.weight, 3U);
  EXPECT_EQ(module_of(now, "in").unit.weight, 5U);
  // What arrives at a leaf in five polls suffices for one turn of it, but not for three.
  EXPECT_NEAR(turns("in") / turns("a0"), 5, 0.1);
  const PipelineSpec saved = rig.engine().current_spec();
  EXPECT_EQ(std::ranges::find(saved.modules, "a1", &ModuleSpec::name)->weight, 3U);
  for (const auto& [module, weight] :
       std::vector<std::pair<std::string, uint32_t>>{{"a1", 1025}, {"s", 2}, {"out", 2}}) {
    EXPECT_THROW(rig.engine().set_weights({{"a0", 7}, {module, weight}}), ConfigError) << module;
  }
  EXPECT_EQ(module_of(rig.balanced(), "a0").unit.weight, 1U);
}

TEST(EngineUnits, RunToCompletionHasNone) {
  EngineRig rig(fan({}, 1000));
  EXPECT_THROW(rig.engine().set_weights({{"a0", 2}}), ConfigError);
  EXPECT_FALSE(module_of(rig.balanced(), "a0").unit.is_unit);
}

TEST(EngineUnits, AnApplyChangesTheModeAndLosesNothing) {
  EngineRig rig(fan(wfq(exec::Backpressure::kOn, 30), 40'000));
  for (uint32_t round = 0; round < 6; ++round) {
    rig.loop(60);
    const bool is_next_wfq = round % 2 == 1;
    rig.engine().apply(
        rig.build(fan(is_next_wfq ? wfq(exec::Backpressure::kOn, 30) : exec::Scheduling{}, 0)));
    const Snapshot now = rig.balanced();
    EXPECT_EQ(module_of(now, "a0").unit.is_unit, is_next_wfq);
  }
  rig.loop(200);
  rig.engine().stop(true);
  const Snapshot now = rig.balanced();
  EXPECT_EQ(now.balance.held_pkts, 0U);
  rig.expect_pool_whole(now);
}

// A queue of a unit may be longer than what a buffer has room for: what does not fit is counted.
TEST(EngineUnits, ALongQueueIsCutWhenItsModuleIsNoUnitAnyMore) {
  exec::Scheduling how = wfq(exec::Backpressure::kOff, 1000);
  how.queue_pkts = 2000;
  EngineRig rig(fan(how, 0));
  rig.loop(900);
  EXPECT_GT(module_of(rig.balanced(), "a0").held_pkts, 1000U);
  rig.engine().apply(rig.build(fan({}, 100)));
  rig.loop(10);
  EXPECT_GT(rig.balanced().balance.dropped_pkts, 900U);
}

TEST(EngineUnits, AHeldBatchLeavesAtItsAgeLimit) {
  PipelineSpec spec = fan(wfq(exec::Backpressure::kOff), 20);
  spec.engine.is_idle_hold = true;
  for (ModuleSpec& module : spec.modules) {
    if (module.name[0] != 'a') continue;
    module.trigger_pkts = 32;
    module.age_limit_ns = 50'000;
  }
  EngineRig rig(spec);
  rig.loop(10);
  EXPECT_EQ(rig.balanced().balance.held_pkts, 20U);
  rig.loop(600);
  const Snapshot now = rig.balanced();
  EXPECT_EQ(now.balance.held_pkts, 0U);
  EXPECT_EQ(module_of(now, "a0").causes[static_cast<size_t>(exec::Cause::kAge)].firings, 1U);
}

}  // namespace
}  // namespace batchplane
