// SPDX-License-Identifier: BSD-3-Clause
// units_test.cc - explicit scheduling in virtual time: packet balance, shares, watermarks, age
// limits, and full queues.
#include <gtest/gtest.h>

#include <numeric>

#include "sim/sim_test_util.h"
#include "sim/simulation.h"

namespace batchplane::sim {
namespace units_test {

using exec::Backpressure;
constexpr uint64_t kMs = 1'000'000;

exec::Scheduling wfq(Backpressure backpressure = Backpressure::kOff,
                     exec::ScheduleBy by = exec::ScheduleBy::kCycles) {
  exec::Scheduling how;
  how.mode = exec::Execution::kWeightedFair;
  how.backpressure = backpressure;
  how.by = by;
  return how;
}

uint64_t drops_of(const exec::Snapshot& now, Reason reason) {
  uint64_t sum = 0;
  for (const auto& module : now.modules) sum += module.drops[reason];
  return sum;
}

const exec::ModuleSnapshot& module_of(const exec::Snapshot& now, const std::string& name) {
  return *std::ranges::find(now.modules, name, &exec::ModuleSnapshot::name);
}

// Every packet is in exactly one place, and no queue exceeds its limit.
void expect_sound(Simulation& sim, const exec::Snapshot& now) {
  EXPECT_TRUE(now.balance.is_exact())
      << now.balance.in_pkts << " in, " << now.balance.sent_pkts << " sent, "
      << now.balance.dropped_pkts << " dropped, " << now.balance.held_pkts << " held";
  EXPECT_EQ(sim.pool().in_use_pkts(), now.balance.held_pkts + sim.source("load").held_pkts());
  for (const auto& module : now.modules) {
    if (module.unit.queue_pkts == 0) continue;
    EXPECT_LE(module.held_pkts, module.unit.queue_pkts) << module.name;
    EXPECT_LE(module.unit.max_held_pkts, module.unit.queue_pkts) << module.name;
  }
}

ModuleSpec& spec_of(SpecMaker& maker, const std::string& name) {
  return *std::ranges::find(maker.spec().pipeline.modules, name, &ModuleSpec::name);
}

// Two leaves under overload.
SpecMaker overloaded_tree(double rate_pps, double leaf_0_ns, double leaf_1_ns,
                          const exec::Scheduling& how) {
  SpecMaker maker = make_tree(2, 0, 0);
  maker.spec().costs["leaf_0"] = {1000, leaf_0_ns};
  maker.spec().costs["leaf_1"] = {1000, leaf_1_ns};
  maker.source().rate_pps = rate_pps;
  maker.source().arrivals = exec::ArrivalKind::kPoisson;
  maker.spec().pipeline.engine.execution = how;
  return maker;
}

TEST(Units, StandWhereBatchesSplitAndWhereTheFileSaysSo) {
  SpecMaker maker = make_tree(3, 100, 10);
  maker.spec().pipeline.engine.execution = wfq();
  spec_of(maker, "out_1").weight = 5;
  Simulation sim(maker.spec());
  const exec::Snapshot now = sim.snapshot(false);
  for (const char* name : {"in", "leaf_0", "leaf_1", "leaf_2", "out_1"}) {
    EXPECT_TRUE(module_of(now, name).unit.is_unit) << name;
  }
  for (const char* name : {"split", "out_0"}) {
    EXPECT_FALSE(module_of(now, name).unit.is_unit) << name;
  }
  EXPECT_EQ(module_of(now, "out_1").unit.weight, 5U);
  EXPECT_EQ(module_of(now, "leaf_0").unit.queue_pkts, 64U);
}

TEST(Units, BalanceIsExactAtAnyTimeInEveryMode) {
  for (const auto backpressure :
       {Backpressure::kOff, Backpressure::kOn, Backpressure::kEarlyDrop}) {
    for (const auto by : {exec::ScheduleBy::kCycles, exec::ScheduleBy::kCount}) {
      SpecMaker maker = make_tree(5, 700, 60, 8, 20);
      maker.source().arrivals = exec::ArrivalKind::kPoisson;
      maker.source().rate_pps = 8e6;
      maker.source().order = exec::Order::kRandom;
      maker.spec().pipeline.engine.execution = wfq(backpressure, by);
      maker.spec().pipeline.engine.is_idle_hold = true;
      Simulation sim(maker.spec());
      Rng rng(4);
      for (uint64_t t = 0; t < 5 * kMs; t += rng.below(40'000)) {
        sim.run_until(t);
        expect_sound(sim, sim.snapshot(false));
      }
      const exec::Snapshot now = sim.snapshot(false);
      EXPECT_GT(now.balance.sent_pkts, 10'000U);
    }
  }
}

TEST(Units, WithoutBackpressureWhatDoesNotFitIsDroppedWithAReason) {
  SpecMaker maker = overloaded_tree(20e6, 100, 100, wfq());
  Simulation sim(maker.spec());
  sim.run_until(10 * kMs);
  const exec::Snapshot now = sim.snapshot(false);
  expect_sound(sim, now);
  EXPECT_GT(drops_of(now, kQueueFull), 1000U);
  EXPECT_EQ(drops_of(now, kQueueFull), now.balance.dropped_pkts);
  EXPECT_EQ(module_of(now, "leaf_0").unit.max_held_pkts, 64U);
}

TEST(Units, BackpressureLosesNothingInsideTheTask) {
  for (const uint32_t queue_pkts : {0U, 100U, 500U}) {
    SpecMaker maker = make_gateway(6, 0);
    maker.source().rate_pps = 30e6;
    maker.source().order = exec::Order::kRandom;
    maker.spec().pipeline.engine.execution = wfq(Backpressure::kOn);
    maker.spec().pipeline.engine.execution.queue_pkts = queue_pkts;
    // Units behind units.
    for (uint32_t i = 0; i < 6; i += 2) spec_of(maker, "mac_" + std::to_string(i)).weight = 1;
    spec_of(maker, "lookup").weight = 3;
    maker.spec().costs["mac_2"] = {3000, 200};
    Simulation sim(maker.spec());
    uint64_t sent = 0;
    for (uint64_t t = kMs; t < 20 * kMs; t += kMs) {
      sim.run_until(t);
      const exec::Snapshot now = sim.snapshot(false);
      expect_sound(sim, now);
      EXPECT_EQ(now.balance.dropped_pkts, 0U);
      EXPECT_GT(now.balance.sent_pkts, sent) << "nothing moves at " << t;
      sent = now.balance.sent_pkts;
    }
    EXPECT_GT(module_of(sim.snapshot(false), "mac_2").unit.congested, 10U);
  }
}

// A queue that is long only briefly is left alone, as in NFVnice. A queue that stays long is not,
// nor one without room for another batch.
TEST(Units, BackpressureWaitsForTheQueueingTimeToo) {
  const auto congested = [](uint64_t threshold_ns, double leaf_ns) {
    SpecMaker maker = make_tree(2, 1000, leaf_ns);
    maker.source().arrivals = exec::ArrivalKind::kPoisson;
    maker.source().rate_pps = 2e6;
    maker.source().burst_pkts = 400;
    exec::Scheduling how = wfq(Backpressure::kOn);
    how.queue_pkts = 1000;
    how.high_watermark_percent = 10;
    how.low_watermark_percent = 5;
    how.queueing_time_threshold_ns = threshold_ns;
    maker.spec().pipeline.engine.execution = how;
    Simulation sim(maker.spec());
    sim.run_until(40 * kMs);
    const exec::Snapshot now = sim.snapshot(false);
    expect_sound(sim, now);
    EXPECT_EQ(now.balance.dropped_pkts, 0U);
    return module_of(now, "leaf_0").unit.congested;
  };
  EXPECT_GT(congested(0, 200), 100U);
  EXPECT_EQ(congested(10 * kMs, 200), 0U);
  EXPECT_GT(congested(50'000, 200), 0U);
  EXPECT_LT(congested(50'000, 200), congested(0, 200));
  EXPECT_GT(congested(10 * kMs, 2000), 0U) << "overloaded: it fills up";
}

// With triggers, paces and long limits in addition: a congested unit can always run.
TEST(Units, BackpressureNeverEndsInADeadlock) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    Rng rng(seed);
    SpecMaker maker = make_gateway(4, 0);
    maker.source().rate_pps = 20e6;
    maker.source().order = exec::Order::kRandom;
    exec::Scheduling how = wfq(rng.below(2) == 0 ? Backpressure::kOn : Backpressure::kEarlyDrop);
    how.high_watermark_percent = 50 + rng.below(51);
    how.low_watermark_percent = rng.below(50);
    how.queueing_time_threshold_ns = seed % 3 * 40'000;
    maker.spec().pipeline.engine.execution = how;
    maker.spec().pipeline.engine.is_idle_hold = true;
    for (ModuleSpec& module : maker.spec().pipeline.modules) {
      if (module.kind == "port_in" || rng.below(2) == 0) continue;
      module.weight = 1 + rng.below(exec::kMaxWeight);
      module.trigger_pkts = rng.below(33);
    }
    Simulation sim(maker.spec());
    uint64_t sent = 0;
    for (uint64_t t = 5 * kMs; t <= 20 * kMs; t += 5 * kMs) {
      sim.run_until(t);
      const exec::Snapshot now = sim.snapshot(false);
      expect_sound(sim, now);
      EXPECT_GT(now.balance.sent_pkts, sent + 10'000) << "seed " << seed;
      sent = now.balance.sent_pkts;
      EXPECT_EQ(drops_of(now, kQueueFull), 0U);
    }
  }
}

// A leaf that takes a hundred times its profile gets its normal share of the core, with and without
// an age limit, and the others theirs. Run to completion would leave them a hundredth.
TEST(Units, OthersKeepTheirShareIfOneTakesAHundredTimesItsProfile) {
  for (const uint64_t age_limit_ns : {0U, 50'000U}) {
    SpecMaker maker = make_tree(4, 2000, 500);
    maker.spec().costs["leaf_0"] = {200'000, 50'000};
    maker.source().rate_pps = 20e6;
    maker.spec().pipeline.engine.execution = wfq();
    maker.spec().pipeline.engine.execution.queue_pkts = 2048;
    for (uint32_t i = 0; i < 4; ++i) {
      ModuleSpec& leaf = spec_of(maker, "leaf_" + std::to_string(i));
      leaf.age_limit_ns = age_limit_ns;
      leaf.trigger_pkts = 16;
    }
    Simulation sim(maker.spec());
    sim.run_until(1000 * kMs);
    const exec::Snapshot now = sim.snapshot(false);
    expect_sound(sim, now);
    for (const char* name : {"leaf_0", "leaf_1", "leaf_2", "leaf_3"}) {
      EXPECT_NEAR(module_of(now, name).unit.share, 0.25, 0.01) << name;
    }
  }
}

TEST(Units, SharesOfTheCoreFollowWeights) {
  SpecMaker maker = overloaded_tree(40e6, 100, 300, wfq());
  spec_of(maker, "leaf_0").weight = 100;
  spec_of(maker, "leaf_1").weight = 300;
  maker.spec().pipeline.engine.execution.input_weight = 100;
  maker.spec().loop.poll_per_batch_ns = 100;
  maker.spec().loop.poll_per_pkt_ns = 2;
  Simulation sim(maker.spec());
  sim.run_until(100 * kMs);
  exec::Snapshot now = sim.snapshot(false);
  EXPECT_NEAR(module_of(now, "leaf_1").unit.share / module_of(now, "leaf_0").unit.share, 3, 0.05);
  // Live change: from here on shares follow the new weights.
  const double before_0 = static_cast<double>(module_of(now, "leaf_0").unit.charged);
  const double before_1 = static_cast<double>(module_of(now, "leaf_1").unit.charged);
  exec::Decision decision;
  for (uint32_t m = 0; m < sim.model().modules.size(); ++m) {
    const std::string& name = sim.model().modules[m].name;
    if (name == "leaf_0" || name == "leaf_1") {
      decision.changes.push_back({.module = m,
                                  .trigger_pkts = 0,
                                  .age_limit_ns = exec::kKeepAge,
                                  .reason = "test",
                                  .weight = name == "leaf_0" ? 800U : 400U});
    }
  }
  sim.apply(decision);
  sim.run_until(200 * kMs);
  now = sim.snapshot(false);
  EXPECT_NEAR((static_cast<double>(module_of(now, "leaf_0").unit.charged) - before_0) /
                  (static_cast<double>(module_of(now, "leaf_1").unit.charged) - before_1),
              2, 0.05);
}

TEST(Units, ByCountTurnsFollowWeights) {
  SpecMaker maker =
      overloaded_tree(40e6, 100, 300, wfq(Backpressure::kOff, exec::ScheduleBy::kCount));
  spec_of(maker, "leaf_0").weight = 1;
  spec_of(maker, "leaf_1").weight = 2;
  maker.spec().pipeline.engine.execution.input_weight = 4;
  Simulation sim(maker.spec());
  sim.run_until(50 * kMs);
  const exec::Snapshot now = sim.snapshot(false);
  const auto turns = [&](const char* name) {
    return static_cast<double>(module_of(now, name).unit.turns);
  };
  EXPECT_NEAR(turns("leaf_1") / turns("leaf_0"), 2, 0.01);
  EXPECT_NEAR(turns("in") / turns("leaf_0"), 4, 0.02);
}

// A slow flow keeps its age limit although its trigger is far away.
TEST(Units, AgeLimitsHoldForUnitsThatWaitForTheirTrigger) {
  SpecMaker maker = make_tree(4, 1000, 50, 32);
  maker.source().rate_pps = 1e6;
  maker.source().arrivals = exec::ArrivalKind::kPoisson;
  maker.spec().pipeline.engine.execution = wfq();
  maker.spec().pipeline.engine.is_idle_hold = true;
  constexpr uint64_t kLimitNs = 40'000;
  for (uint32_t i = 0; i < 4; ++i) {
    spec_of(maker, "leaf_" + std::to_string(i)).age_limit_ns = kLimitNs;
  }
  for (auto& flow : maker.spec().pipeline.flows) flow.delay_slo_ns = kLimitNs + 15'000;
  Simulation sim(maker.spec());
  sim.run_until(100 * kMs);
  const exec::Snapshot now = sim.snapshot(false);
  expect_sound(sim, now);
  for (uint32_t f = 0; f < 4; ++f) {
    EXPECT_EQ(now.flows[f].total.late_pkts, 0U) << f;
    EXPECT_GT(now.flows[f].total.pkts, 20'000U);
  }
  EXPECT_GT(module_of(now, "leaf_0").causes[1].firings, 1000U);
}

TEST(Units, APaceLetsAQueueFillToTheBatchIntended) {
  SpecMaker maker = make_tree(2, 1000, 50);
  maker.source().rate_pps = 2e6;
  maker.spec().pipeline.engine.execution = wfq();
  maker.spec().pipeline.engine.is_idle_hold = true;
  Simulation sim(maker.spec());
  exec::Decision decision;
  for (uint32_t m = 0; m < sim.model().modules.size(); ++m) {
    if (!sim.model().modules[m].is_unit) continue;
    decision.changes.push_back({.module = m,
                                .age_limit_ns = exec::kKeepAge,
                                .reason = "test",
                                .pace_ns = 12'000});  // a million packets a second each
  }
  ASSERT_EQ(decision.changes.size(), 2U);
  sim.run_until(kMs);
  sim.apply(decision);
  sim.run_until(2 * kMs);
  const exec::Snapshot before = sim.snapshot(false);
  sim.run_until(50 * kMs);
  const exec::Snapshot now = sim.snapshot(false);
  const auto& leaf = module_of(now, "leaf_0");
  const auto& was = module_of(before, "leaf_0");
  EXPECT_NEAR(
      static_cast<double>(leaf.pkts - was.pkts) / static_cast<double>(leaf.batches - was.batches),
      12, 0.3);
}

TEST(Units, EarlyDropKeepsCongestedChainsFromCostingMoreThanTheirEntry) {
  const auto run = [](Backpressure backpressure) {
    SpecMaker maker = make_gateway(2, 0);
    maker.source().rate_pps = 6e6;
    maker.spec().pipeline.engine.execution = wfq(backpressure);
    spec_of(maker, "sum_0").weight = 1;  // the bottleneck of chain 0, two units deep
    maker.spec().costs["sum_0"] = {500, 2000};
    auto sim = std::make_unique<Simulation>(maker.spec());
    sim->run_until(50 * kMs);
    expect_sound(*sim, sim->snapshot(false));
    return sim->snapshot(false);
  };
  const exec::Snapshot early = run(Backpressure::kEarlyDrop);
  const exec::Snapshot off = run(Backpressure::kOff);
  // Dropped at the entry, not behind acl and nat.
  EXPECT_GT(module_of(early, "acl_0").drops[kEarlyDrop], 10'000U);
  EXPECT_EQ(module_of(early, "sum_0").drops[kQueueFull], 0U);
  EXPECT_EQ(module_of(early, "acl_1").drops[kEarlyDrop], 0U);
  EXPECT_GT(module_of(off, "sum_0").drops[kQueueFull], 1'000U);
  // Work that acl and nat no longer do in vain leaves time for the other chain.
  EXPECT_GE(early.flows[1].total.pkts + 100, off.flows[1].total.pkts);
  EXPECT_LT(module_of(early, "acl_0").pkts, module_of(off, "acl_0").pkts / 2);
}

TEST(Units, PacketsOfAFlowStayInOrder) {
  SpecMaker maker = make_gateway(4, 0);
  maker.source().rate_pps = 20e6;
  maker.source().order = exec::Order::kRandom;
  maker.spec().pipeline.engine.execution = wfq();
  for (uint32_t i = 0; i < 4; ++i) {
    spec_of(maker, "nat_" + std::to_string(i)).weight = 1 + i;
    spec_of(maker, "acl_" + std::to_string(i)).trigger_pkts = 7 * i;
  }
  Simulation sim(maker.spec());
  sim.recorder().limit(20'000, 0);
  sim.update_recording();
  sim.run_until(20 * kMs);
  std::vector<uint64_t> last_exit_ns(4, 0);
  uint32_t n = 0;
  for (const PacketRecord& packet : sim.recorder().packets) {
    if (packet.exit_ns == 0 || packet.is_dropped) continue;
    ++n;
    EXPECT_GE(packet.exit_ns, last_exit_ns[packet.flow]) << "packet of flow " << packet.flow;
    last_exit_ns[packet.flow] = packet.exit_ns;
  }
  EXPECT_GT(n, 1000U);
}

TEST(Units, TheSameSeedGivesTheSameRun) {
  const auto run = [] {
    SpecMaker maker = overloaded_tree(9e6, 100, 200, wfq(Backpressure::kOn));
    maker.spec().seed = 7;
    Simulation sim(maker.spec());
    sim.run_until(10 * kMs);
    const exec::Snapshot now = sim.snapshot(false);
    return std::pair{now.flows[0].total.delay_sum_ns, now.flows[1].total.delay_sum_ns};
  };
  EXPECT_EQ(run(), run());
}

}  // namespace units_test
}  // namespace batchplane::sim
