// SPDX-License-Identifier: BSD-3-Clause
// engine_units_test.cc - explicit scheduling in the engine: balance, drops, live weights, shares by cycles,
// apply between the two modes, stop.
#include <gtest/gtest.h>

#include "base/error.h"
#include "core/module/register.h"
#include "engine_rig.h"

namespace batchplane {
namespace engine_units_test {

// Advances the virtual clock by its configured cost.
class Spend final : public Module {
 public:
  explicit Spend(const Args& args) : ns_per_pkt_(args.u32("ns_per_pkt")) {}
  void process(Context& /*ctx*/, Batch& batch) noexcept {
    *clock_ns += uint64_t{ns_per_pkt_} * batch.size_pkts;
  }
  inline static uint64_t* clock_ns = nullptr;

 private:
  const uint32_t ns_per_pkt_;
};
const Register<Spend> kSpend{
    {.kind = "test_spend",
     .help = "Takes time.",
     .params = {{.name = "ns_per_pkt", .type = ParamType::kInt, .help = "what a packet takes"}}}};

// Makes two packets more of each.
class More final : public Module {
 public:
  explicit More(const Args& /*args*/) {}
  void process(Context& ctx, Batch& batch) noexcept {
    for (uint32_t i = 0; i < 2 * batch.size_pkts; ++i) {
      if (Packet* const pkt = ctx.originate(60); pkt != nullptr) ctx.emit(0, pkt);
    }
  }
};
const Register<More> kMore{{.kind = "test_more", .help = "Makes packets."}};

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
    spec.flows.push_back({"f" + std::to_string(i), {"in", "s", name, "m", "out"}, 1000});
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
        if (module.unit.queue_pkts != 0) {
          EXPECT_LE(module.held_pkts, 64U) << module.name;
        }
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
  // Five polls give a leaf enough packets for one turn, but not for three.
  EXPECT_NEAR(turns("in") / turns("a0"), 5, 0.1);
  const PipelineSpec saved = rig.engine().current_spec();
  EXPECT_EQ(std::ranges::find(saved.modules, "a1", &ModuleSpec::name)->weight, 3U);
  for (const auto& [module, weight] :
       std::vector<std::pair<std::string, uint32_t>>{{"a1", 1025}, {"s", 2}, {"out", 2}}) {
    EXPECT_THROW(rig.engine().set_weights({{"a0", 7}, {module, weight}}), ConfigError) << module;
  }
  EXPECT_EQ(module_of(rig.balanced(), "a0").unit.weight, 1U);
}

// One leaf is a hundred times slower than the other three: all get the same time, so the others handle as
// many packets as without it. Run to completion, they would handle no more than the slow one.
TEST(EngineUnits, OthersKeepTheirShareIfOneTakesAHundredTimesItsProfile) {
  struct Result {
    std::vector<double> shares;  // of what all leaves were charged
    std::vector<uint64_t> pkts;
  };
  const auto run = [](bool is_scheduled, uint32_t slow_ns) {
    exec::Scheduling how = wfq(exec::Backpressure::kOff);
    how.by = exec::ScheduleBy::kCycles;
    how.queue_pkts = 2048;
    PipelineSpec spec = fan(is_scheduled ? how : exec::Scheduling{}, 0);
    for (ModuleSpec& module : spec.modules) {
      if (module.name[0] != 'a') continue;
      module.kind = "test_spend";
      module.params = {{"ns_per_pkt", module.name == "a0" ? slow_ns : 500U}};
    }
    EngineRig rig(spec, 16384);
    Spend::clock_ns = &rig.now_ns;
    const uint64_t end_ns = rig.now_ns + 300'000'000;
    while (rig.now_ns < end_ns) rig.loop(1, 50);
    const Snapshot now = rig.balanced();
    Result result;
    double charged = 0;
    for (const char* name : {"a0", "a1", "a2", "a3"}) {
      const ModuleSnapshot& leaf = module_of(now, name);
      result.shares.push_back(static_cast<double>(leaf.unit.charged));
      charged += result.shares.back();
      result.pkts.push_back(leaf.pkts);
    }
    for (double& share : result.shares) share /= charged;
    return result;
  };
  const Result calm = run(true, 500);
  const Result fair = run(true, 50'000);
  const Result unfair = run(false, 50'000);
  for (uint32_t i = 0; i < 4; ++i) EXPECT_NEAR(fair.shares[i], 0.25, 0.01) << i;
  for (uint32_t i = 1; i < 4; ++i) {
    EXPECT_NEAR(static_cast<double>(fair.pkts[i]), static_cast<double>(calm.pkts[i]),
                0.05 * static_cast<double>(calm.pkts[i]));
    EXPECT_LT(unfair.pkts[i], fair.pkts[i] / 10);
  }
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

// What no longer fits into a queue runs before all that comes later.
TEST(EngineUnits, NothingIsLostWhenAQueueGetsShorterOrItsModuleIsNoLongerAUnit) {
  exec::Scheduling how = wfq(exec::Backpressure::kOn, 1000);
  how.queue_pkts = 2000;
  exec::Scheduling shorter = how;
  shorter.queue_pkts = 64;
  for (const exec::Scheduling& next : {shorter, exec::Scheduling{}}) {
    EngineRig rig(fan(how, 0));
    rig.loop(200);
    EXPECT_GT(module_of(rig.balanced(), "a0").held_pkts, 1000U);
    rig.engine().apply(rig.build(fan(next, 100)));
    rig.loop(2000);
    EXPECT_EQ(rig.balanced().balance.held_pkts, 0U);
    EXPECT_EQ(rig.balanced().balance.dropped_pkts, 0U);
  }
}

// With backpressure, a module that makes several packets of one brings more than a queue's length.
TEST(EngineUnits, NothingIsLostOfAQueueThatIsOverfull) {
  exec::Scheduling how = wfq(exec::Backpressure::kOn, 20);
  how.queue_pkts = 64;
  PipelineSpec spec = fan(how, 0);
  spec.modules[1].params = {{"gates", 4}, {"mode", "weighted"}, {"weights", List{1, 0, 0, 0}}};
  spec.modules.push_back({"more", "test_more", {}});
  spec.edges.front().to = "more";
  spec.edges.push_back({"more", "0", "s"});
  for (FlowSpec& flow : spec.flows) flow.path.insert(flow.path.begin() + 1, "more");
  EngineRig rig(spec, 16'384);
  uint64_t most_pkts = 0;
  for (uint32_t k = 0; k < 60; ++k) {
    rig.loop(7);
    most_pkts = std::max(most_pkts, module_of(rig.balanced(), "a0").held_pkts);
    rig.engine().apply(rig.build(spec));
    EXPECT_EQ(rig.balanced().balance.dropped_pkts, 0U);
  }
  EXPECT_GT(most_pkts, 64U);
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

}  // namespace engine_units_test
}  // namespace batchplane
