// SPDX-License-Identifier: BSD-3-Clause
// many_tasks_test.cc - several tasks: closed loops against plain counting, ring credits, delays by
// task, and controllers that divide budgets among tasks.
#include <gtest/gtest.h>

#include "sim/sim_test_util.h"
#include "sim/simulation.h"
#include "slo/controllers.h"

namespace batchplane::sim {
namespace {

constexpr uint64_t kMs = 1'000'000;
constexpr double kCyclesPerNs = 2.4;

// Two modules of the multicore paper's first experiment, each on a core of its own: 100 + 10 n and
// 10,600 + 1,060 n cycles; a closed loop of 15 packets.
Spec two_tasks(uint32_t window_pkts, uint64_t slo_ns = 12'000) {
  SpecMaker maker;
  maker.module("light", "cost", 100 / kCyclesPerNs, 10 / kCyclesPerNs);
  maker.module("q", "queue", 0, 0);
  maker.module("heavy", "cost", 10'600 / kCyclesPerNs, 1'060 / kCyclesPerNs);
  maker.module("out", "sink", 0, 0);
  maker.chain({"in", "light", "q", "heavy", "out"});
  maker.flow("f", {"in", "light", "q", "heavy", "out"}, {}, slo_ns);
  Spec& spec = maker.spec();
  spec.pipeline.modules[2].worker = "b";
  spec.pipeline.workers = {{"a", -1}, {"b", -1}};
  spec.pipeline.engine.is_idle_hold = true;
  spec.loop.empty_poll_ns = 20;
  maker.source().is_saturating = true;
  maker.source().window_pkts = window_pkts;
  maker.source().rate_pps = 100'000;
  return spec;
}

struct Steady {
  double pps = 0;
  double p99_ns = 0;
};

// Runs `warm` periods, then measures as many again; `control` decides after each.
Steady run_periods(Simulation& sim, slo::Controller* control, uint32_t periods,
                   uint64_t period_ns = kMs) {
  Steady steady;
  uint64_t pkts = 0;
  for (uint32_t i = 1; i <= 2 * periods; ++i) {
    sim.run_until(sim.now_ns() + period_ns);
    const exec::PeriodSnapshot period = sim.period();
    if (control != nullptr) sim.apply(control->step(period));
    if (i <= periods) continue;
    pkts += period.flows[0].pkts;
    steady.p99_ns = std::max(steady.p99_ns, static_cast<double>(period.flows[0].p99_ns));
  }
  steady.pps = static_cast<double>(pkts) * 1e9 / static_cast<double>(periods * period_ns);
  return steady;
}

void set_trigger(Simulation& sim, const std::string& module, uint32_t trigger_pkts) {
  exec::Decision decision;
  decision.changes = {{sim.graph().at(module), trigger_pkts, 1'000'000, "test"}};
  sim.apply(decision);
}

// The batch in service and the waiting packets alternate: every packet waits for one batch and is
// in the next one. So two batches take the time of 15 packets and two fixed costs, however the
// packets are split.
TEST(ManyTasks, AClosedLoopWithoutBatchesHasTwoBatchesInsideAtAnyTime) {
  Simulation sim(two_tasks(15));
  const Steady steady = run_periods(sim, nullptr, 20);
  const double cycle_ns = (2 * 10'600 + 15 * 1'060) / kCyclesPerNs;
  EXPECT_NEAR(steady.pps, 15e9 / cycle_ns, 0.01 * 15e9 / cycle_ns);
  EXPECT_NEAR(steady.p99_ns, cycle_ns, 0.05 * cycle_ns);
}

TEST(ManyTasks, AClosedLoopHeldTogetherHasOne) {
  Simulation sim(two_tasks(15));
  set_trigger(sim, "light", 15);
  const Steady steady = run_periods(sim, nullptr, 20);
  const double cycle_ns = (10'600 + 15 * 1'060) / kCyclesPerNs;
  EXPECT_NEAR(steady.pps, 15e9 / cycle_ns, 0.03 * 15e9 / cycle_ns);
  EXPECT_NEAR(steady.p99_ns, cycle_ns, 0.05 * cycle_ns);
}

TEST(ManyTasks, AClosedLoopNeverHasMoreInside) {
  Simulation sim(two_tasks(7));
  for (uint64_t t = 0; t < kMs; t += 1'777) {
    sim.run_until(t);
    EXPECT_LE(sim.pool().in_use_pkts(), 7U);
  }
  EXPECT_GT(sim.period().flows[0].pkts, 100U);
}

// A packet's delay is split where the next task's queue receives it, so the legs add up to the
// whole.
TEST(ManyTasks, DelaysOfTasksAddUpToThatOfTheFlow) {
  Simulation sim(two_tasks(15));
  set_trigger(sim, "light", 4);
  sim.run_until(20 * kMs);
  const exec::PeriodSnapshot period = sim.period();
  ASSERT_EQ(period.legs.size(), 2U);
  EXPECT_EQ(sim.model().legs.of_flow[0], (std::vector<uint32_t>{0, 1}));
  EXPECT_NEAR(static_cast<double>(period.legs[0].pkts), static_cast<double>(period.flows[0].pkts),
              15);
  const auto mean_ns = [](const exec::FlowPeriod& flow) {
    return static_cast<double>(flow.delay_sum_ns) / static_cast<double>(flow.pkts);
  };
  // Each leg ends with a clock reading, up to one run late.
  EXPECT_NEAR(mean_ns(period.legs[0]) + mean_ns(period.legs[1]), mean_ns(period.flows[0]), 200);
}

// A ring with less credit has less delay at the same throughput: it is full whenever the task
// behind it is the slower one.
TEST(ManyTasks, CreditTakesDelayAndNoRate) {
  double pps[2] = {};
  double delay_ns[2] = {};
  for (const uint32_t i : {0, 1}) {
    Spec spec = two_tasks(0);
    spec.pipeline.modules[2].params = {{"size_pkts", Value(1024)}, {"backpressure", Value(true)}};
    Simulation sim(spec);
    exec::Decision decision;
    decision.credits = {{sim.graph().at("q"), i == 0 ? 1024U : 64U}};
    sim.apply(decision);
    const Steady steady = run_periods(sim, nullptr, 20);
    pps[i] = steady.pps;
    delay_ns[i] = steady.p99_ns;
  }
  EXPECT_NEAR(pps[1], pps[0], 0.01 * pps[0]);
  EXPECT_LT(delay_ns[1], delay_ns[0] / 5);
}

TEST(ManyTasks, ACreditBeyondTheQueueIsRefused) {
  Spec spec = two_tasks(0);
  spec.pipeline.modules[2].params = {{"size_pkts", Value(64)}, {"credit_pkts", Value(65)}};
  EXPECT_THROW(Simulation{spec}, ConfigError);
  spec.pipeline.modules[2].params["credit_pkts"] = Value(40);
  EXPECT_EQ(Simulation(spec).graph().queues.front()->credit_pkts(), 40U);
}

TEST(ManyTasks, CreditsOutOfRangeChangeNothing) {
  Simulation sim(two_tasks(0));
  exec::Decision decision;
  decision.credits = {{sim.graph().at("q"), 512}, {sim.graph().at("light"), 64}};
  EXPECT_THROW(sim.apply(decision), ConfigError);
  decision.credits = {{sim.graph().at("q"), 2000}};
  EXPECT_THROW(sim.apply(decision), ConfigError);
  EXPECT_EQ(sim.graph().queues.front()->credit_pkts(), 1024U);
  Spec spec = two_tasks(0);
  spec.pipeline.modules[2].params = {{"size_pkts", Value(1024)}, {"backpressure", Value(true)}};
  Simulation held_back(spec);
  decision.credits = {{held_back.graph().at("q"), 31}};
  EXPECT_THROW(held_back.apply(decision), ConfigError) << "a batch would never have room";
}

Steady controlled(const std::string& name, Spec spec) {
  Simulation sim(spec);
  const auto control = slo::make_controller(name, sim.model(), {});
  return run_periods(sim, control.get(), 60);
}

// The paper's best row: no triggers carry more than a full window per batch.
TEST(ManyTasks, CentralHoldsAClosedLoopTogether) {
  const Steady steady = controlled("optimal", two_tasks(15));
  const double most_pps = 15e9 / ((10'600 + 15 * 1'060) / kCyclesPerNs);
  EXPECT_GT(steady.pps, 0.98 * most_pps);
  EXPECT_LE(steady.p99_ns, 12'000);
}

// A splitter on one core, and four gateways on another whose batches arrive as quarters.
Spec split_and_work(uint64_t slo_ns) {
  SpecMaker maker;
  maker.module("front", "cost", 40, 10).module("q", "queue", 0, 1);
  maker.module("look", "l2_table", 60, 20);
  maker.chain({"in", "front", "q", "look"});
  for (uint32_t i = 0; i < 4; ++i) {
    const std::string n = std::to_string(i);
    maker.module("work_" + n, "cost", 300, 40).module("out_" + n, "sink", 0, 0);
    maker.edge("look", "work_" + n, n).edge("work_" + n, "out_" + n);
    maker.flow("f_" + n, {"in", "front", "q", "look", "work_" + n, "out_" + n}, {{"look", n}},
               slo_ns);
  }
  Spec& spec = maker.spec();
  spec.pipeline.modules[2].worker = "b";
  spec.pipeline.modules[2].params = {{"size_pkts", Value(64)}, {"backpressure", Value(true)}};
  spec.pipeline.workers = {{"a", -1}, {"b", -1}};
  spec.pipeline.engine.is_idle_hold = true;
  maker.source().is_saturating = true;
  return spec;
}

// Half of the SLO is too little for the second task to hold a packet, and the first task needs none
// of it.
TEST(ManyTasks, TheMasterGivesBudgetToWhereItIsOfUse) {
  const Steady naive = controlled("primal(static)", split_and_work(24'000));
  const Steady full = controlled("primal(fixstep)", split_and_work(24'000));
  EXPECT_GT(full.pps, 1.05 * naive.pps);
  EXPECT_LE(full.p99_ns, 24'000 * 1.05);
}

TEST(ManyTasks, BudgetsAreTold) {
  Simulation sim(split_and_work(24'000));
  const auto control = slo::make_controller("primal(fixstep)", sim.model(), {});
  exec::Decision decision;
  for (int i = 0; i < 30; ++i) {
    sim.run_until(sim.now_ns() + kMs);
    decision = control->step(sim.period());
    sim.apply(decision);
  }
  ASSERT_EQ(decision.flows.size(), 4U);
  for (const exec::FlowVerdict& flow : decision.flows) {
    ASSERT_EQ(flow.legs.size(), 2U);
    EXPECT_NEAR(flow.legs[0].budget_ns + flow.legs[1].budget_ns, 24'000, 1);
    EXPECT_GT(flow.legs[1].budget_ns, flow.legs[0].budget_ns);
    EXPECT_GT(flow.legs[1].measured_ns, 0);
  }
  EXPECT_EQ(control->explain().flows[0].legs.size(), 2U);
}

// The throughput of full batches, at an SLO that full batches keep only with the smallest possible
// ring.
TEST(ManyTasks, CentralCarriesWhatFullBatchesDoWithinTheSlo) {
  const Steady most = controlled("max", split_and_work(24'000));
  Spec spec = split_and_work(24'000);
  spec.pipeline.modules[2].params["size_pkts"] = Value(1024);
  const Steady optimal = controlled("optimal", spec);
  EXPECT_GT(optimal.pps, 0.98 * most.pps);
  EXPECT_LE(optimal.p99_ns, 24'000 * 1.05);
}

}  // namespace
}  // namespace batchplane::sim
