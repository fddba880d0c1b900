// SPDX-License-Identifier: BSD-3-Clause
// composition_test.cc - composed periods against closed forms and the simulator, and plans on them.
#include "sim/composition.h"

#include <gtest/gtest.h>

#include "sim/planner.h"
#include "sim/sim_test_util.h"
#include "sim/simulation.h"

namespace batchplane::sim {
namespace {

double rate_of(const Composition& composition, const exec::PeriodSnapshot& period) {
  return static_cast<double>(composition.in_pkts()) / static_cast<double>(period.period_ns);
}

// Eight leaves in turn: each poll of 32 brings each of them 4 packets.
TEST(Composition, RateWithoutBuffersIsThatOfTheCosts) {
  Composition composition(make_tree(8, 300, 20, 0, 50).spec());
  const exec::PeriodSnapshot period = composition.period(100, 0.95);
  EXPECT_EQ(composition.in_pkts(), 3200U);
  EXPECT_NEAR(rate_of(composition, period), 32.0 / (50 + 8 * 300 + 32 * 20), 1e-6);
  const uint32_t leaf = composition.graph().at("leaf_3");
  EXPECT_EQ(period.modules[leaf].batches, 100U);
  EXPECT_EQ(period.modules[leaf].arrived_pkts, 400U);
  EXPECT_EQ(period.tasks[0].idle_ns, 0U);
}

TEST(Composition, ATriggerCollectsAndTheRestGoesOn) {
  Composition composition(make_tree(8, 300, 20).spec());
  const uint32_t leaf = composition.graph().at("leaf_0");
  composition.set_buffer(leaf, 10, exec::kStrandingAge);
  exec::PeriodSnapshot period = composition.period(100, 0.95);
  const auto& full = period.modules[leaf].causes[static_cast<uint32_t>(exec::Cause::kFull)];
  EXPECT_EQ(full.pkts + period.modules[leaf].held_pkts, 400U);
  EXPECT_EQ(period.modules[leaf].arrived_batches, 100U);
  EXPECT_EQ(period.modules[leaf].batches, full.firings);
  const uint32_t held = period.modules[leaf].held_pkts;
  period = composition.period(1, 0.95);
  EXPECT_EQ(period.modules[leaf].pkts + period.modules[leaf].held_pkts, held + 4);
}

// A buffer that cannot fill in time leaves by age, and no packet is much older than that.
TEST(Composition, AgeLimitsReleaseWhatDoesNotFill) {
  Composition composition(make_tree(16, 1000, 10).spec());
  const uint32_t leaf = composition.graph().at("leaf_5");
  const std::vector<uint64_t> slos(16, 150'000);
  composition.set_slos(slos);
  composition.set_buffer(leaf, 32, 100'000);
  const exec::PeriodSnapshot period = composition.period(500, 1);
  const auto& causes = period.modules[leaf].causes;
  EXPECT_EQ(causes[static_cast<uint32_t>(exec::Cause::kFull)].firings, 0U);
  EXPECT_GT(causes[static_cast<uint32_t>(exec::Cause::kAge)].firings, 50U);
  EXPECT_GT(period.flows[5].delay_ns, 100'000U);
  EXPECT_LT(period.flows[5].delay_ns, 100'000U + 20'000U);
  EXPECT_EQ(period.flows[5].late_pkts, 0U);
  EXPECT_LT(period.flows[4].delay_ns, 60'000U);
}

TEST(Composition, AMergedBranchGoesToItsSiblings) {
  Composition composition(make_tree(4, 300, 20).spec());
  composition.merge_branch(composition.graph().at("split"), 2);
  const exec::PeriodSnapshot period = composition.period(300, 0.95);
  EXPECT_EQ(period.modules[composition.graph().at("leaf_2")].pkts, 0U);
  for (const char* leaf : {"leaf_0", "leaf_1", "leaf_3"}) {
    EXPECT_EQ(period.modules[composition.graph().at(leaf)].pkts, 3200U) << leaf;
  }
}

// Counts, work and delays of the real executor, for a gateway with costs of the loop.
TEST(Composition, AgreesWithTheSimulator) {
  for (const uint32_t trigger : {0U, 12U, 32U}) {
    SCOPED_TRACE(trigger);
    SpecMaker maker = make_gateway(16, trigger);
    maker.source().is_saturating = true;
    maker.source().order = exec::Order::kRandom;
    maker.spec().loop = {.poll_ns = 26,
                         .poll_pkt_ns = 2,
                         .firing_ns = 7,
                         .firing_pkt_ns = 1.5,
                         .split_branch_ns = 2.5,
                         .split_pkt_ns = 2,
                         .egress_pkt_ns = 3.5,
                         .far = {.per_batch = 100, .per_pkt = 10, .early_per_pkt = 20},
                         .clock_read_ns = 9};
    Composition composition(maker.spec());
    composition.period(500, 0.95);
    const exec::PeriodSnapshot composed = composition.period(3000, 0.95);
    Simulation simulation(maker.spec());
    simulation.run_until(2'000'000);
    (void)simulation.period();
    simulation.run_until(12'000'000);
    const exec::PeriodSnapshot simulated = simulation.period();
    const auto per_pkt = [](double value, const exec::PeriodSnapshot& period) {
      return value / static_cast<double>(period.tasks[0].in_pkts);
    };
    const auto near = [&](double a, double b, double part) { EXPECT_NEAR(a, b, part * b); };
    near(per_pkt(static_cast<double>(composed.period_ns), composed),
         per_pkt(static_cast<double>(simulated.period_ns), simulated), 0.005);
    for (size_t m = 1; m < composed.modules.size(); ++m) {
      near(per_pkt(static_cast<double>(composed.modules[m].batches), composed),
           per_pkt(static_cast<double>(simulated.modules[m].batches), simulated), 0.05);
    }
    for (size_t f = 0; f < composed.flows.size(); ++f) {
      near(static_cast<double>(composed.flows[f].p50_ns),
           static_cast<double>(simulated.flows[f].p50_ns), 0.1);
      near(static_cast<double>(composed.flows[f].delay_ns),
           static_cast<double>(simulated.flows[f].delay_ns), 0.1);
    }
  }
}

Spec planned_gateway() {
  SpecMaker maker = make_gateway(16, 0);
  maker.source().is_saturating = true;
  return maker.spec();
}

PlanRequest with_slo(const Spec& spec, uint64_t slo_ns) {
  PlanRequest request;
  for (const FlowSpec& flow : spec.pipeline.flows) request.slo_ns[flow.name] = slo_ns;
  return request;
}

TEST(Plan, MoreTimeIsMoreRateUpToFullBatches) {
  const Spec spec = planned_gateway();
  const double none = plan(spec, {.controller = "null"})["rate_pps"].as_double();
  const double full = plan(spec, {.controller = "max"})["rate_pps"].as_double();
  const Value tight = plan(spec, with_slo(spec, 7000));
  const Value loose = plan(spec, with_slo(spec, 300'000));
  EXPECT_GT(tight["rate_pps"].as_double(), 1.02 * none);
  EXPECT_LT(tight["rate_pps"].as_double(), 0.99 * full);
  EXPECT_NEAR(loose["rate_pps"].as_double(), full, 0.005 * full);
  double price = 0;
  for (const Value& flow : tight["flows"].as_list()) {
    price += flow["multiplier_pps_per_us"].as_double();
    EXPECT_EQ(flow["late_share"].as_double(), 0);
  }
  EXPECT_GT(price, 0);
  for (const Value& flow : loose["flows"].as_list()) {
    EXPECT_EQ(flow["multiplier_pps_per_us"].as_double(), 0);
  }
}

TEST(Plan, IsTheSameEachTime) {
  const Spec spec = planned_gateway();
  EXPECT_EQ(plan(spec, with_slo(spec, 7000)), plan(spec, with_slo(spec, 7000)));
}

TEST(Plan, SaysWhichSloIsBelowTheCostOfOnePacket) {
  const Spec spec = planned_gateway();
  PlanRequest request = with_slo(spec, 100'000);
  request.slo_ns["flow_3"] = 40;
  const Value made = plan(spec, request);
  EXPECT_EQ(made["flows"].as_list()[3]["state"].as_string(), "inherent");
  EXPECT_EQ(made["flows"].as_list()[4]["state"].as_string(), "met");
}

TEST(Plan, KnowsItsFlowsAndControllers) {
  const Spec spec = planned_gateway();
  EXPECT_THROW(plan(spec, {.slo_ns = {{"flow_99", 1}}}), ConfigError);
  EXPECT_THROW(plan(spec, {.controller = "best"}), ConfigError);
  EXPECT_THROW(plan(spec, {.merged = {{"nowhere", 0}}}), ConfigError);
}

}  // namespace
}  // namespace batchplane::sim
