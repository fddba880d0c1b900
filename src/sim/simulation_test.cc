// SPDX-License-Identifier: BSD-3-Clause
// simulation_test.cc - the loop over workers: packet balance, idle time, queues between workers,
// stalls, noise, live edits, periods.
#include "sim/simulation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numeric>

#include "sim/sim_test_util.h"
#include "slo/controllers.h"
#include "spec/doors.h"

namespace batchplane::sim {
namespace simulation_test {

constexpr uint64_t kMs = 1'000'000;

uint64_t ring_pkts(Simulation& sim) { return sim.source("load").held_pkts(); }

// Every packet is in exactly one place.
void expect_balanced(Simulation& sim) {
  const exec::Snapshot now = sim.snapshot(false);
  EXPECT_TRUE(now.balance.is_exact())
      << now.balance.in_pkts << " in, " << now.balance.sent_pkts << " sent, "
      << now.balance.dropped_pkts << " dropped, " << now.balance.held_pkts << " held";
  EXPECT_EQ(sim.pool().in_use_pkts(), now.balance.held_pkts + ring_pkts(sim));
  uint64_t drops = std::accumulate(now.other_drops.begin(), now.other_drops.end(), uint64_t{0});
  uint64_t sent = 0;
  for (const auto& module : now.modules) {
    drops = std::accumulate(module.drops.begin(), module.drops.end(), drops);
  }
  for (const auto& flow : now.flows) sent += flow.total.pkts;
  EXPECT_EQ(drops, now.balance.dropped_pkts);
  EXPECT_EQ(sent, now.balance.sent_pkts);
}

// in -> first | queue | second -> out, each half on a worker of its own.
Spec two_workers(int64_t queue_pkts, double first_ns, double second_ns) {
  SpecMaker maker;
  maker.module("first", "cost", first_ns, 0).module("q", "queue", 0, 0);
  maker.module("second", "cost", second_ns, 0).module("out", "sink", 0, 0);
  maker.chain({"in", "first", "q", "second", "out"});
  maker.flow("f", {"in", "first", "q", "second", "out"}, {});
  Spec& spec = maker.spec();
  spec.pipeline.modules[2].params["size_pkts"] = Value(queue_pkts);
  spec.pipeline.modules[2].worker = "b";
  spec.pipeline.workers = {{"a", -1}, {"b", -1}};
  spec.loop.ring_take_per_pkt_ns = 3;
  return spec;
}

TEST(Simulation, BalanceIsExactAtAnyTime) {
  SpecMaker maker = make_tree(5, 700, 30, 8, 20);
  maker.spec().pipeline.engine.is_idle_hold = true;
  maker.source().arrivals = exec::ArrivalKind::kPoisson;
  maker.source().rate_pps = 3e6;
  maker.source().order = exec::Order::kRandom;
  Simulation sim(maker.spec());
  Rng rng(4);
  bool has_held = false;
  for (uint64_t t = 0; t < 5 * kMs; t += rng.below(40'000)) {
    sim.run_until(t);
    expect_balanced(sim);
    has_held |= sim.held_pkts() != 0;
  }
  EXPECT_TRUE(has_held);
}

// A saturated chain of two workers that take equally long: the busier one sets the rate.
TEST(Simulation, AHopBetweenWorkersCostsBothOfThem) {
  const auto pkts = [](double send_ns, double take_ns, bool is_one_worker) {
    Spec spec = two_workers(1024, 1000, 1096);
    spec.pipeline.modules[2].params["backpressure"] = Value(true);
    if (is_one_worker) spec.pipeline.modules[2].worker = "a";
    spec.sources.front().is_saturating = true;
    spec.loop.hop.send_per_pkt_ns = send_ns;
    spec.loop.hop.take_per_pkt_ns = take_ns;
    Simulation sim(spec);
    sim.run_until(20 * kMs);
    return static_cast<double>(sim.snapshot(false).flows.front().total.pkts);
  };
  const double without = pkts(0, 0, false);
  EXPECT_NEAR(pkts(10, 0, false) / without, 1096.0 / 1416, 0.01);
  EXPECT_NEAR(pkts(0, 20, false) / without, 1096.0 / 1736, 0.01);
  EXPECT_EQ(pkts(10, 20, true), pkts(0, 0, true));
}

TEST(Simulation, BalanceIsExactAcrossWorkers) {
  Simulation sim(two_workers(40, 100, 900));
  for (uint64_t t = 0; t < 2 * kMs; t += 7'919) {
    sim.run_until(t);
    expect_balanced(sim);
  }
}

// The same packets, executions and counters whether idle loops run or are skipped.
void expect_skipping_changes_nothing(Spec spec, const std::function<void(Simulation&)>& edit) {
  spec.pipeline.engine.sample_one_run_in = 7;
  Simulation jumps(spec);
  Simulation steps(spec);
  steps.set_idle_skipping(false);
  for (Simulation* sim : {&jumps, &steps}) {
    sim->recorder().limit(5000, 20'000);
    sim->update_recording();
    sim->run_until(kMs);
    edit(*sim);
    sim->run_until(3 * kMs);
  }
  const Recorder& a = jumps.recorder();
  const Recorder& b = steps.recorder();
  ASSERT_GT(a.executions.size(), 20U);
  ASSERT_EQ(a.executions.size(), b.executions.size());
  for (size_t i = 0; i < a.executions.size(); ++i) {
    EXPECT_EQ(a.executions[i].start_ns, b.executions[i].start_ns) << i;
    EXPECT_EQ(a.executions[i].module, b.executions[i].module) << i;
    EXPECT_EQ(a.executions[i].batch_pkts, b.executions[i].batch_pkts) << i;
    EXPECT_EQ(a.executions[i].cause, b.executions[i].cause) << i;
  }
  EXPECT_TRUE(jumps.show("runtime") == steps.show("runtime"));
  EXPECT_TRUE(jumps.show("flows") == steps.show("flows"));
  const exec::PeriodSnapshot p = jumps.period();
  const exec::PeriodSnapshot q = steps.period();
  for (size_t t = 0; t < p.tasks.size(); ++t) {
    EXPECT_EQ(p.tasks[t].idle_polls, q.tasks[t].idle_polls);
    EXPECT_EQ(p.tasks[t].busy_ns, q.tasks[t].busy_ns);
    EXPECT_EQ(p.tasks[t].idle_ns, q.tasks[t].idle_ns);
    EXPECT_EQ(p.tasks[t].run_p99_ns, q.tasks[t].run_p99_ns);
  }
}

TEST(Simulation, JumpingOverIdleTimeEqualsSteppingThroughIt) {
  for (const bool is_hold : {true, false}) {
    SpecMaker maker = make_tree(3, 400, 20, 4, 20);
    for (ModuleSpec& module : maker.spec().pipeline.modules) module.age_limit_ns = 31'007;
    maker.spec().pipeline.engine.is_idle_hold = is_hold;
    maker.spec().loop.clock_read_ns = 1.7;
    maker.spec().stalls = {800, {4'000, 9'000}};
    maker.source().stalls = {900, {3'000, 40'000}};
    maker.source().arrivals = exec::ArrivalKind::kPoisson;
    maker.source().rate_pps = 90'000;
    expect_skipping_changes_nothing(maker.spec(), [](Simulation& sim) {
      sim.source("load").set_rate(20'000, sim.now_ns());
      sim.stall(0, 12'345);
    });
  }
}

TEST(Simulation, JumpingEqualsSteppingWithTwoWorkers) {
  Spec spec = two_workers(64, 300, 500);
  spec.pipeline.engine.is_idle_hold = true;
  spec.sources[0].arrivals = exec::ArrivalKind::kPoisson;
  spec.sources[0].rate_pps = 60'000;
  spec.pipeline.modules[1].trigger_pkts = 8;
  spec.pipeline.modules[3].trigger_pkts = 3;
  expect_skipping_changes_nothing(spec, [](Simulation& sim) {
    exec::Decision decision;
    // Releases the packets that wait before the queue.
    decision.changes = {{1, 0, exec::kKeepAge, "test"}};
    sim.apply(decision);
  });
}

TEST(Simulation, JumpingEqualsSteppingWithTwoTasksOnOneWorker) {
  Spec spec = two_workers(64, 300, 500);
  for (ModuleSpec& module : spec.pipeline.modules) module.worker.clear();
  spec.pipeline.workers = {{"a", -1}};
  spec.loop.clock_read_ns = 16.3;
  spec.sources[0].rate_pps = 60'000;
  expect_skipping_changes_nothing(
      spec, [](Simulation& sim) { sim.source("load").set_on(false, sim.now_ns()); });
}

TEST(Simulation, NoPacketLeavesAQueueBeforeItWasPutIn) {
  Spec spec = two_workers(256, 2'000, 10);  // the second worker is ahead, and waits
  spec.sources[0].rate_pps = 3e6;
  Simulation sim(spec);
  sim.recorder().limit(3000, 0);
  sim.update_recording();
  sim.run_until(2 * kMs);
  std::vector<uint64_t> put_ns(sim.recorder().packets.size(), 0);
  uint32_t n_checked = 0;
  for (const Hop& hop : sim.recorder().hops) {
    if (hop.module == sim.graph().at("q")) put_ns[hop.packet] = hop.end_ns;
    if (hop.module != sim.graph().at("second")) continue;
    ASSERT_NE(put_ns[hop.packet], 0U);
    EXPECT_EQ(hop.arrive_ns, put_ns[hop.packet]);
    EXPECT_GE(hop.start_ns, put_ns[hop.packet]);
    ++n_checked;
  }
  EXPECT_GT(n_checked, 2500U);
}

TEST(Simulation, AFullQueueDropsWithItsReason) {
  Spec spec = two_workers(32, 10, 5'000);  // the second worker takes 32 of 5 us: 6.4 Mpps at most
  spec.sources[0].is_saturating = true;
  Simulation sim(spec);
  sim.run_until(2 * kMs);
  const exec::Snapshot now = sim.snapshot(false);
  const exec::ModuleSnapshot& queue = now.modules[sim.graph().at("q")];
  EXPECT_GT(queue.drops[kQueueFull], 1000U);
  EXPECT_EQ(queue.drops[kQueueFull], now.balance.dropped_pkts);
  EXPECT_LE(queue.kept_pkts, 32U);
  EXPECT_EQ(drop_reasons()[kQueueFull].name, "queue_full");
  expect_balanced(sim);
}

// Worker a fills the last queue itself with half of the packets; the other half comes by way of
// worker b.
TEST(Simulation, AQueueTakesFromSeveralWorkersThroughDoors) {
  SpecMaker maker;
  maker.module("split", "l2_table", 5, 1).module("half", "queue", 1, 1);
  maker.module("mid", "cost", 20, 5).module("q", "queue", 1, 1);
  maker.module("last", "cost", 10, 2).module("out", "sink", 0, 0);
  maker.chain({"in", "split"}).edge("split", "half", "0").edge("split", "q", "1");
  maker.chain({"half", "mid", "q", "last", "out"});
  maker.flow("far", {"in", "split", "half", "mid", "q", "last", "out"}, {{"split", "0"}});
  maker.flow("near", {"in", "split", "q", "last", "out"}, {{"split", "1"}});
  PipelineSpec& pipeline = maker.spec().pipeline;
  pipeline.workers = {{"a", -1}, {"b", -1}, {"c", -1}};
  pipeline.modules[2].worker = "b";
  pipeline.modules[4].worker = "c";
  add_doors(pipeline, simulated_kinds(pipeline));
  ASSERT_EQ(pipeline.modules.back().door_of, "q");
  maker.source().rate_pps = 5e6;
  Simulation sim(maker.spec());
  for (uint64_t at_ns = kMs / 100; at_ns < 2 * kMs; at_ns += kMs / 100) {
    sim.run_until(at_ns);
    expect_balanced(sim);
  }
  const exec::Snapshot now = sim.snapshot(false);
  // Each packet keeps the door that it came through, even where nothing else tells them apart any
  // more.
  EXPECT_NEAR(static_cast<double>(now.flows[0].total.pkts), 5000, 200);
  EXPECT_NEAR(static_cast<double>(now.flows[1].total.pkts), 5000, 200);
  EXPECT_EQ(now.flows[2].total.pkts, 0U);
  EXPECT_EQ(now.balance.dropped_pkts, 0U);
}

TEST(Simulation, AStallMovesItsWorkerAndNothingElse) {
  SpecMaker maker;
  maker.module("out", "sink", 100, 0).chain({"in", "out"}).flow("f", {"in", "out"}, {});
  maker.source().rate_pps = 1e6;
  Simulation sim(maker.spec());
  sim.run_until(kMs);
  (void)sim.period();
  sim.stall(0, 40'000);
  sim.run_until(2 * kMs);
  const exec::PeriodSnapshot period = sim.period();
  // The ring has room for the 40 packets that arrived meanwhile: all wait, none is lost.
  EXPECT_GE(period.flows[0].delay_max_ns, 39'000U);
  EXPECT_LE(period.flows[0].delay_max_ns, 42'000U);
  EXPECT_NEAR(static_cast<double>(period.flows[0].pkts), 1000, 2);
  const exec::Snapshot now = sim.snapshot(false);
  EXPECT_EQ(now.workers[0].stats.gaps, 1U);
  EXPECT_EQ(now.workers[0].stats.gap_ns, 40'000U);
}

TEST(Simulation, StallsComeAtTheirRateAndLengths) {
  SpecMaker maker;
  maker.module("out", "sink", 100, 0).chain({"in", "out"}).flow("f", {"in", "out"}, {});
  maker.spec().stalls = {1000, {10'000, 30'000}};
  Simulation sim(maker.spec());
  sim.run_until(4'000 * kMs);
  const exec::WorkerStats stats = sim.snapshot(false).workers[0].stats;
  EXPECT_NEAR(static_cast<double>(stats.gaps), 4000, 4 * 64);  // Poisson: 4 standard deviations
  EXPECT_NEAR(static_cast<double>(stats.gap_ns) / static_cast<double>(stats.gaps), 20'000, 640);
  EXPECT_EQ(stats.gap_max_ns, 30'000U);
  // It is busy for a tenth of its time.
  EXPECT_GT(stats.busy_gap_ns, 0U);
  EXPECT_LT(stats.busy_gap_ns, stats.gap_ns / 3);
}

TEST(Simulation, NoiseKeepsTheMeanCostAndHasItsDeviation) {
  SpecMaker maker;
  maker.module("out", "sink", 1'000, 0).chain({"in", "out"}).flow("f", {"in", "out"}, {});
  maker.spec().noise_sigma = 0.2;
  maker.source().rate_pps = 100'000;
  Simulation sim(maker.spec());
  sim.recorder().limit(0, 20'000);
  sim.update_recording();
  sim.run_until(200 * kMs);
  double sum = 0;
  double squares = 0;
  const auto& runs = sim.recorder().executions;
  ASSERT_GT(runs.size(), 19'000U);
  for (const Execution& run : runs) {
    const auto ns = static_cast<double>(run.end_ns - run.start_ns);
    sum += ns;
    squares += ns * ns;
  }
  const double n = static_cast<double>(runs.size());
  const double mean = sum / n;
  EXPECT_NEAR(mean, 1000, 4 * 200 / std::sqrt(n));
  EXPECT_NEAR(std::sqrt(squares / n - mean * mean), 200, 200 * 4 / std::sqrt(2 * n));
}

TEST(Simulation, PeriodsAddUpToTotals) {
  SpecMaker maker = make_tree(4, 500, 20, 8, 10);
  maker.source().arrivals = exec::ArrivalKind::kPoisson;
  maker.source().rate_pps = 2e6;
  Simulation sim(maker.spec());
  exec::PeriodSnapshot sum = sim.period();
  for (uint64_t t = kMs / 3; t < 6 * kMs; t += kMs / 3) {
    sim.run_until(t);
    const exec::PeriodSnapshot period = sim.period();
    EXPECT_EQ(period.period_ns, kMs / 3);
    for (size_t m = 0; m < sum.modules.size(); ++m) {
      sum.modules[m].batches += period.modules[m].batches;
      sum.modules[m].pkts += period.modules[m].pkts;
      for (uint32_t c = 0; c < exec::kCauses; ++c) {
        sum.modules[m].causes[c].firings += period.modules[m].causes[c].firings;
      }
    }
    for (size_t f = 0; f < sum.flows.size(); ++f) {
      sum.flows[f].pkts += period.flows[f].pkts;
      sum.flows[f].delay_sum_ns += period.flows[f].delay_sum_ns;
    }
    sum.tasks[0].in_pkts += period.tasks[0].in_pkts;
    sum.tasks[0].busy_ns += period.tasks[0].busy_ns;
  }
  const exec::Snapshot total = sim.snapshot(false);
  ASSERT_GT(total.balance.sent_pkts, 10'000U);
  EXPECT_EQ(sum.tasks[0].in_pkts, total.balance.in_pkts);
  EXPECT_EQ(sum.tasks[0].busy_ns, total.workers[0].stats.busy_ns);
  for (size_t m = 0; m < sum.modules.size(); ++m) {
    EXPECT_EQ(sum.modules[m].batches, total.modules[m].batches) << total.modules[m].name;
    EXPECT_EQ(sum.modules[m].pkts, total.modules[m].pkts) << total.modules[m].name;
    for (uint32_t c = 0; c < exec::kCauses; ++c) {
      EXPECT_EQ(sum.modules[m].causes[c].firings, total.modules[m].causes[c].firings);
    }
  }
  for (size_t f = 0; f < sum.flows.size(); ++f) {
    EXPECT_EQ(sum.flows[f].pkts, total.flows[f].total.pkts);
    EXPECT_EQ(sum.flows[f].delay_sum_ns, total.flows[f].total.delay_sum_ns);
  }
}

TEST(Simulation, ControllersOfTheEngineDecideHere) {
  SpecMaker maker = make_tree(4, 500, 20, 0, 10);
  maker.source().is_saturating = true;
  Simulation sim(maker.spec());
  const auto controller = slo::make_controller("fixed(8)", sim.model(), {});
  sim.run_until(kMs);
  sim.apply(controller->step(sim.period()));
  sim.run_until(2 * kMs);
  (void)sim.period();
  sim.run_until(3 * kMs);
  const exec::PeriodSnapshot period = sim.period();
  const exec::ModulePeriod& leaf = period.modules[sim.graph().at("leaf_1")];
  EXPECT_EQ(sim.trigger_pkts(sim.graph().at("leaf_1")), 8U);
  EXPECT_EQ(leaf.pkts, leaf.batches * 8);
}

}  // namespace simulation_test
}  // namespace batchplane::sim
