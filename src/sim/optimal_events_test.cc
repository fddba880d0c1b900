// SPDX-License-Identifier: BSD-3-Clause
// optimal_events_test.cc - the optimal controller during events: SLO edits, flows that stop and
// return, modules that become slower, stalls, branches that meet again, trees.
#include <gtest/gtest.h>

#include "sim/sim_test_util.h"
#include "sim/simulation.h"
#include "slo/controllers.h"

namespace batchplane::sim {
namespace optimal_events_test {

constexpr uint64_t kPeriodNs = 10'000'000;

// A pipeline under `optimal`, period by period.
struct Loop {
  explicit Loop(const Spec& spec)
      : simulation(spec), controller(slo::make_controller("optimal", simulation.model(), {})) {
    simulation.set_idle_hold(true);
  }
  // Returns the flows that were late in the period; the decision applies to the next period.
  uint32_t step() {
    simulation.run_until(simulation.now_ns() + kPeriodNs);
    period = simulation.period();
    decision = controller->step(period);
    simulation.apply(decision);
    uint32_t n_late = 0;
    for (const exec::FlowPeriod& flow : period.flows) {
      n_late += flow.slo_ns > 0 && flow.delay_ns > flow.slo_ns ? 1 : 0;
    }
    return n_late;
  }
  void settle() {
    for (int i = 0; i < 6; ++i) step();
  }
  [[nodiscard]] double mpps() const {
    return static_cast<double>(period.tasks[0].in_pkts) * 1e3 /
           static_cast<double>(period.period_ns);
  }
  [[nodiscard]] double busy() const {
    return static_cast<double>(period.tasks[0].busy_ns) / static_cast<double>(period.period_ns);
  }

  Simulation simulation;
  std::unique_ptr<slo::Controller> controller;
  exec::PeriodSnapshot period;
  exec::Decision decision;
};

Spec under_load(SpecMaker maker, double rate_pps, uint64_t slo_ns) {
  for (FlowSpec& flow : maker.spec().pipeline.flows) flow.delay_slo_ns = slo_ns;
  maker.source().order = exec::Order::kRandom;
  maker.source().arrivals = exec::ArrivalKind::kPoisson;
  maker.source().is_saturating = rate_pps == 0;
  maker.source().rate_pps = rate_pps;
  return maker.spec();
}

TEST(OptimalEvents, ATighterSloIsKeptFromTheNextPeriodOnAndTheOthersStay) {
  Loop loop(under_load(make_gateway(8, 0), 2e6, 150'000));
  loop.settle();
  const uint64_t before_ns = loop.period.flows[3].delay_ns;
  EXPECT_GT(before_ns, 50'000U);
  loop.simulation.set_slo("flow_3", 30'000);
  loop.step();  // decided for the old SLO
  loop.step();  // its first packets were still held as before
  for (int i = 0; i < 10; ++i) EXPECT_EQ(loop.step(), 0U) << i;
  EXPECT_GT(loop.period.flows[2].delay_ns, 50'000U) << "nobody else pays";
}

TEST(OptimalEvents, WhatALooserSloAllowsIsUsed) {
  Loop loop(under_load(make_gateway(8, 0), 2e6, 150'000));
  loop.settle();
  const double busy = loop.busy();
  for (const uint64_t slo_ns : {20'000U, 150'000U}) {
    for (int i = 0; i < 8; ++i) loop.simulation.set_slo("flow_" + std::to_string(i), slo_ns);
    loop.settle();
    EXPECT_EQ(loop.step(), 0U);
    if (slo_ns == 20'000) {
      EXPECT_GT(loop.busy(), 1.02 * busy);
    }
  }
  EXPECT_NEAR(loop.busy(), busy, 0.015 * busy);
}

TEST(OptimalEvents, FlowsMayStopAndReturn) {
  for (const double rate_pps : {0.0, 3e6}) {
    SCOPED_TRACE(rate_pps);
    Loop loop(under_load(make_gateway(8, 0), rate_pps, 100'000));
    loop.settle();
    Source& source = loop.simulation.source("load");
    source.set_weights({0, 0, 1, 1, 1, 1, 1, 1});
    for (int i = 0; i < 8; ++i) EXPECT_EQ(loop.step(), 0U) << "stopped, period " << i;
    EXPECT_EQ(loop.period.flows[0].pkts, 0U);
    source.set_weights({1, 1, 1, 1, 1, 1, 1, 1});
    for (int i = 0; i < 8; ++i) EXPECT_EQ(loop.step(), 0U) << "returned, period " << i;
    EXPECT_GT(loop.period.flows[0].pkts, 0U);
  }
}

TEST(OptimalEvents, CostsThatDoubleAreFollowed) {
  Loop loop(under_load(make_tree(8, 300, 20, 0, 20), 3e6, 60'000));
  loop.settle();
  const double busy = loop.busy();
  for (int i = 0; i < 8; ++i) {
    loop.simulation.set_cost("leaf_" + std::to_string(i), {600, 40});
  }
  loop.step();  // triggers are still those for the old costs
  loop.step();
  for (int i = 0; i < 10; ++i) EXPECT_EQ(loop.step(), 0U) << i;
  EXPECT_GT(loop.busy(), 1.5 * busy);
  EXPECT_LT(loop.busy(), 2.2 * busy);
}

TEST(OptimalEvents, AStallIsOverWhenItIsOver) {
  for (const double rate_pps : {0.0, 3e6}) {
    SCOPED_TRACE(rate_pps);
    Loop loop(under_load(make_gateway(8, 0), rate_pps, 100'000));
    loop.settle();
    loop.step();
    const double mpps = loop.mpps();
    loop.simulation.stall(0, 2'000'000);
    loop.step();
    loop.step();
    for (int i = 0; i < 8; ++i) {
      EXPECT_EQ(loop.step(), 0U) << i;
      EXPECT_NEAR(loop.mpps(), mpps, 0.05 * mpps) << i;
    }
  }
}

// Branches of unequal cost that meet in one module and part again behind it.
SpecMaker make_merge(uint32_t n) {
  SpecMaker maker;
  maker.module("split", "l2_table", 20, 1).module("join", "ipv4_lookup", 200, 10);
  maker.edge("in", "split");
  for (uint32_t i = 0; i < n; ++i) {
    const std::string k = std::to_string(i);
    maker.module("leaf_" + k, "cost", 150.0 * (i + 1), 15).module("out_" + k, "sink", 5, 1);
    maker.edge("split", "leaf_" + k, k).edge("leaf_" + k, "join").edge("join", "out_" + k, k);
    maker.flow("flow_" + k, {"in", "split", "leaf_" + k, "join", "out_" + k},
               {{"split", k}, {"join", k}});
  }
  return maker;
}

// Two levels of branches, a flow to each of the nine leaves.
SpecMaker make_deep_tree() {
  SpecMaker maker;
  maker.module("root", "l2_table", 20, 1).edge("in", "root");
  for (uint32_t i = 0; i < 3; ++i) {
    const std::string k = std::to_string(i);
    maker.module("mid_" + k, "ipv4_lookup", 150, 8).edge("root", "mid_" + k, k);
    for (uint32_t j = 0; j < 3; ++j) {
      const std::string l = k + std::to_string(j);
      maker.module("leaf_" + l, "cost", 200.0 + 100 * j, 12).module("out_" + l, "sink", 5, 1);
      maker.edge("mid_" + k, "leaf_" + l, std::to_string(j)).edge("leaf_" + l, "out_" + l);
      maker.flow("flow_" + l, {"in", "root", "mid_" + k, "leaf_" + l, "out_" + l},
                 {{"root", k}, {"mid_" + k, std::to_string(j)}});
    }
  }
  return maker;
}

TEST(OptimalEvents, MergesAndTreesStartKeepAndGain) {
  for (const bool is_tree : {false, true}) {
    for (const double rate_pps : {0.0, 3e6}) {
      SCOPED_TRACE(std::string(is_tree ? "tree" : "merge") + " at " + std::to_string(rate_pps));
      const Spec spec = under_load(is_tree ? make_deep_tree() : make_merge(6), rate_pps, 80'000);
      Loop loop(spec);
      for (int i = 0; i < 3; ++i) loop.step();
      std::vector<double> loads;
      for (int i = 0; i < 12; ++i) {
        EXPECT_EQ(loop.step(), 0U) << i;
        loads.push_back(rate_pps > 0 ? loop.busy() : loop.mpps());
      }
      for (const double load : loads) EXPECT_NEAR(load, loads.back(), 0.05 * loads.back());
      Simulation null(spec);
      null.run_until(5 * kPeriodNs);
      null.period();
      null.run_until(10 * kPeriodNs);
      const exec::PeriodSnapshot plain = null.period();
      if (rate_pps == 0) {
        EXPECT_GT(loop.mpps(), 1.2 * static_cast<double>(plain.tasks[0].in_pkts) * 1e3 /
                                   static_cast<double>(plain.period_ns));
      }
    }
  }
}

}  // namespace optimal_events_test
}  // namespace batchplane::sim
