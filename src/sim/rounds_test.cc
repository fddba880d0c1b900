// SPDX-License-Identifier: BSD-3-Clause
// rounds_test.cc - the saturated rounds that plans are made from: against closed forms, and against
// the same pipeline with arrival times.
#include <gtest/gtest.h>

#include <memory>

#include "sim/sim_test_util.h"
#include "sim/simulation.h"

namespace batchplane::sim {
namespace rounds_test {

std::unique_ptr<Simulation> saturated(const Spec& spec) {
  auto simulation = std::make_unique<Simulation>(spec);
  simulation->saturate();
  return simulation;
}

exec::PeriodSnapshot rounds(Simulation& simulation, uint32_t n) {
  simulation.run_rounds(n);
  return simulation.period();
}

double rate_of(const exec::PeriodSnapshot& period) {
  return static_cast<double>(period.tasks[0].in_pkts) / static_cast<double>(period.period_ns);
}

// Eight leaves round robin: each poll of 32 brings each of them 4 packets.
TEST(Rounds, RateWithoutBuffersIsThatOfTheCosts) {
  const auto simulation = saturated(make_tree(8, 300, 20, 0, 50).spec());
  const exec::PeriodSnapshot period = rounds(*simulation, 100);
  EXPECT_EQ(period.tasks[0].in_pkts, 3200U);
  EXPECT_NEAR(rate_of(period), 32.0 / (50 + 8 * 300 + 32 * 20), 1e-6);
  const uint32_t leaf = simulation->graph().at("leaf_3");
  EXPECT_EQ(period.modules[leaf].batches, 100U);
  EXPECT_EQ(period.modules[leaf].arrived_pkts, 400U);
  EXPECT_EQ(period.tasks[0].idle_ns, 0U);
}

TEST(Rounds, ATriggerCollectsAndTheRestGoesOn) {
  const auto simulation = saturated(make_tree(8, 300, 20).spec());
  const uint32_t leaf = simulation->graph().at("leaf_0");
  simulation->apply({.changes = {{.module = leaf, .trigger_pkts = 10}}});
  exec::PeriodSnapshot period = rounds(*simulation, 100);
  const auto& full = period.modules[leaf].causes[static_cast<uint32_t>(exec::Cause::kFull)];
  EXPECT_EQ(full.pkts + period.modules[leaf].held_pkts, 400U);
  EXPECT_EQ(period.modules[leaf].arrived_batches, 100U);
  EXPECT_EQ(period.modules[leaf].batches, full.firings);
  const uint32_t held = period.modules[leaf].held_pkts;
  period = rounds(*simulation, 1);
  EXPECT_EQ(period.modules[leaf].pkts + period.modules[leaf].held_pkts, held + 4);
}

// A buffer that cannot fill in time releases by age, and no packet is much older than its limit.
TEST(Rounds, AgeLimitsReleaseWhatDoesNotFill) {
  const auto simulation = saturated(make_tree(16, 1000, 10).spec());
  const uint32_t leaf = simulation->graph().at("leaf_5");
  simulation->set_percentile(1);
  for (uint32_t f = 0; f < 16; ++f) simulation->set_slo("flow_" + std::to_string(f), 150'000);
  simulation->apply({.changes = {{.module = leaf, .trigger_pkts = 32, .age_limit_ns = 100'000}}});
  const exec::PeriodSnapshot period = rounds(*simulation, 500);
  const auto& causes = period.modules[leaf].causes;
  EXPECT_EQ(causes[static_cast<uint32_t>(exec::Cause::kFull)].firings, 0U);
  EXPECT_GT(causes[static_cast<uint32_t>(exec::Cause::kAge)].firings, 50U);
  EXPECT_GT(period.flows[5].delay_ns, 100'000U);
  EXPECT_LT(period.flows[5].delay_ns, 100'000U + 20'000U);
  EXPECT_EQ(period.flows[5].late_pkts, 0U);
  EXPECT_LT(period.flows[4].delay_ns, 60'000U);
}

TEST(Rounds, AMergedBranchGoesToItsSiblings) {
  const auto simulation = saturated(make_tree(4, 300, 20).spec());
  simulation->merge_branch(simulation->graph().at("split"), 2);
  const exec::PeriodSnapshot period = rounds(*simulation, 300);
  EXPECT_EQ(period.modules[simulation->graph().at("leaf_2")].pkts, 0U);
  for (const char* leaf : {"leaf_0", "leaf_1", "leaf_3"}) {
    EXPECT_EQ(period.modules[simulation->graph().at(leaf)].pkts, 3200U) << leaf;
  }
}

// Behind merged branches no route names a gate: packets take all gates in turn.
TEST(Rounds, MergedPacketsGoOnWhereTheyAreUnknown) {
  SpecMaker maker = make_tree(2, 300, 20);
  maker.spec().pipeline.edges.clear();
  maker.module("more", "l2_table", 10, 1).module("a", "sink", 0, 0).module("b", "sink", 0, 0);
  maker.edge("in", "split").edge("split", "leaf_0", "0").edge("leaf_0", "out_0");
  maker.edge("split", "more", "1").edge("more", "a", "0").edge("more", "b", "1");
  maker.module("c", "sink", 0, 0).edge("leaf_1", "c").edge("split", "leaf_1", "2");
  maker.spec().pipeline.flows = {{"one", {"in", "split", "leaf_0", "out_0"}, 0}};
  maker.spec().routes.front()[1] = {{"split", "1"}, {"more", "0"}};
  const auto simulation = saturated(maker.spec());
  simulation->merge_branch(simulation->graph().at("split"), 0);
  const exec::PeriodSnapshot period = rounds(*simulation, 400);
  const auto pkts = [&](const char* name) {
    return period.modules[simulation->graph().at(name)].pkts;
  };
  EXPECT_EQ(pkts("leaf_0"), 0U);
  EXPECT_EQ(pkts("leaf_1"), 3200U);
  EXPECT_EQ(pkts("a"), 6400U + 1600U);
  EXPECT_EQ(pkts("b"), 1600U);
}

// Trains and flows with rates of their own keep their order, whenever they would be due.
TEST(Rounds, PacketsComeInTheOrderOfTheirSchedule) {
  SpecMaker maker = make_tree(4, 300, 20);
  maker.source().rate_pps = 1000;
  maker.source().burst_pkts = 16;
  const auto trains = saturated(maker.spec());
  const exec::PeriodSnapshot period = rounds(*trains, 100);
  for (const char* leaf : {"leaf_0", "leaf_3"}) {
    // Two trains per poll, each a batch of its own.
    EXPECT_EQ(period.modules[trains->graph().at(leaf)].batches, 50U) << leaf;
    EXPECT_EQ(period.modules[trains->graph().at(leaf)].pkts, 800U) << leaf;
  }
  SpecMaker own = make_tree(2, 300, 20);
  own.source().rate_pps = 1000;
  own.source().flows[1].rate_pps = 3000;
  const auto rates = saturated(own.spec());
  EXPECT_NEAR(static_cast<double>(rounds(*rates, 100).modules[rates->graph().at("leaf_1")].pkts),
              2400, 3);
}

TEST(Rounds, ALesserSourceBringsWhatComesMeanwhile) {
  SpecMaker maker = make_tree(2, 300, 20);
  Spec& spec = maker.spec();
  spec.pipeline.ports.push_back({"q", "ring", {{"size_pkts", Value(64)}}});
  maker.module("also", "port_in", 0, 0).edge("also", "split");
  spec.pipeline.modules.back().params = {{"port", Value("q")}};
  spec.sources.front().rate_pps = 8e6;
  SourceSpec lesser = spec.sources.front();
  lesser.name = "lesser";
  lesser.port = "q";
  lesser.rate_pps = 1e6;
  spec.sources.push_back(lesser);
  spec.routes.push_back(spec.routes.front());
  spec.pipeline.flows.clear();
  const auto simulation = saturated(spec);
  const exec::PeriodSnapshot period = rounds(*simulation, 100);
  EXPECT_EQ(period.modules[simulation->graph().at("in")].pkts, 3200U);
  EXPECT_EQ(period.modules[simulation->graph().at("also")].pkts, 400U);
}

// A ring between two workers, of which the second has twice as much work.
TEST(Rounds, TheBusiestWorkerSaysHowLongItTakes) {
  SpecMaker maker;
  maker.spec().pipeline.workers = {{"first", -1}, {"second", -1}};
  maker.module("work", "cost", 100, 10).module("ring", "queue", 0, 0);
  maker.module("more", "cost", 200, 20).module("out", "sink", 0, 0);
  maker.chain({"in", "work", "ring", "more", "out"});
  maker.flow("f", {"in", "work", "ring", "more", "out"}, {}, 100'000);
  for (ModuleSpec& module : maker.spec().pipeline.modules) {
    if (module.name == "in") module.worker = "first";
    if (module.name == "ring") module.worker = "second";
  }
  const auto simulation = saturated(maker.spec());
  (void)rounds(*simulation, 100);
  const exec::PeriodSnapshot period = rounds(*simulation, 1000);
  EXPECT_NEAR(static_cast<double>(period.period_ns), 1000 * (200 + 32 * 20), 1000);
  EXPECT_NEAR(static_cast<double>(period.tasks[0].busy_ns), 1000 * (100 + 32 * 10), 1000);
  EXPECT_EQ(period.tasks[0].busy_ns + period.tasks[0].idle_ns, period.period_ns);
  EXPECT_EQ(period.flows[0].pkts, 32'000U);
  // Two polls' time in the first worker's ring, then the work of both; nothing waits between them.
  EXPECT_NEAR(static_cast<double>(period.flows[0].p50_ns), 3 * 420 + 840, 0.05 * 2100);
}

// Loop costs, and a source that is always faster than the worker.
TEST(Rounds, CountAsASaturatedRunDoes) {
  for (const uint32_t trigger : {0U, 12U, 32U}) {
    SCOPED_TRACE(trigger);
    SpecMaker maker = make_gateway(16, trigger);
    maker.source().is_saturating = true;
    maker.source().order = exec::Order::kRandom;
    maker.spec().loop = {.clock_read_ns = 9,
                         .empty_poll_ns = 50,
                         .poll_per_batch_ns = 26,
                         .poll_per_pkt_ns = 2,
                         .scatter_per_branch_ns = 2.5,
                         .scatter_per_pkt_ns = 2,
                         .firing_ns = 7,
                         .buffered_per_pkt_ns = 1.5,
                         .egress_per_pkt_ns = 3.5,
                         .far = {.per_batch_ns = 100, .per_pkt_ns = 10, .early_per_pkt_ns = 20}};
    const auto planned = saturated(maker.spec());
    Simulation running(maker.spec());
    for (uint32_t part = 0; part < 4; ++part) {
      const exec::PeriodSnapshot a = rounds(*planned, 500);
      running.run_until(planned->now_ns());
      const exec::PeriodSnapshot b = running.period();
      ASSERT_EQ(a.tasks[0].in_pkts, b.tasks[0].in_pkts);
      for (size_t m = 1; m < a.modules.size(); ++m) {
        ASSERT_EQ(a.modules[m].batches, b.modules[m].batches) << m;
        ASSERT_EQ(a.modules[m].held_pkts, b.modules[m].held_pkts) << m;
      }
      for (size_t f = 0; f < a.flows.size(); ++f) {
        EXPECT_NEAR(static_cast<double>(a.flows[f].delay_ns),
                    static_cast<double>(b.flows[f].delay_ns), 0.04 * a.flows[f].delay_ns);
      }
    }
  }
}

}  // namespace rounds_test
}  // namespace batchplane::sim
