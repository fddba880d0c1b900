// SPDX-License-Identifier: BSD-3-Clause
// planner_test.cc - plans: the gain from more delay, SLOs that cannot be kept, and invalid plans.
#include "sim/planner.h"

#include <gtest/gtest.h>

#include "sim/sim_test_util.h"

namespace batchplane::sim {
namespace planner_test {

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
    EXPECT_LE(flow["late_share"].as_double(), 0.05);
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

}  // namespace planner_test
}  // namespace batchplane::sim
