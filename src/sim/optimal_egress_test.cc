// SPDX-License-Identifier: BSD-3-Clause
// optimal_egress_test.cc - the optimal controller in front of a packet scheduler: SLOs hold when
// other flows begin to flood the link, and no budget is spent twice.
#include <gtest/gtest.h>

#include <algorithm>

#include "sim/sim_test_util.h"
#include "sim/simulation.h"
#include "slo/controllers.h"

namespace batchplane::sim {
namespace optimal_egress_test {

constexpr uint64_t kPeriodNs = 50'000'000;
constexpr uint32_t kOthers = 24;
constexpr uint32_t kCalmPeriods = 20;

// in -> tenant -> 25 works -> link (1 Gbit/s) -> out. Flow 0 has the SLO, costly work, short
// packets and 5 of 29 shares of the link; each other flow has one share and long packets.
Spec pipeline(uint64_t slo_ns, double first_pps, double other_pps) {
  SpecMaker maker;
  maker.module("tenant", "vlan_split", 0, 0).edge("in", "tenant");
  maker.module("link", "egress", 0, 0).module("out", "sink", 0, 0);
  SchedulerSpec link{
      .discipline = "qfq", .rate_bps = 1'000'000'000, .capacity = {kOthers + 2, 4096}};
  for (uint32_t i = 0; i <= kOthers; ++i) {
    const std::string n = std::to_string(i);
    const uint32_t bytes = i == 0 ? 200 : 1500;
    maker.module("work_" + n, "cost", i == 0 ? 4000 : 400, 10).edge("tenant", "work_" + n, n);
    maker.edge("work_" + n, "link");
    maker.flow("flow_" + n, {"in", "tenant", "work_" + n, "link", "out"},
               {{"tenant", n}, {"link", std::to_string(i + 1)}}, i == 0 ? slo_ns : 0, 0);
    TrafficFlow& flow = maker.source().flows.back();
    flow.rate_pps = i == 0 ? first_pps : other_pps;
    flow.size_bytes = bytes;
    link.flows.push_back(
        {i + 1, {.weight = i == 0 ? 5U : 1U, .lmax_bytes = bytes, .limit_pkts = 64}});
  }
  maker.edge("link", "out");
  maker.spec().schedulers["link"] = std::move(link);
  maker.spec().pipeline.engine.is_idle_hold = true;
  return maker.spec();
}

struct Seen {
  uint64_t late_pkts = 0;
  uint32_t idle_periods = 0;  // with nothing held for flow 0, after the first
};

// The other flows begin to send three times the link's rate.
Seen run(const Spec& spec, bool knows_promises) {
  Simulation simulation(spec);
  const auto controller = slo::make_controller("optimal", simulation.model(), {});
  const std::vector<uint32_t> may_hold = {simulation.graph().at("tenant"),
                                          simulation.graph().at("work_0")};
  Seen seen;
  for (uint32_t i = 0; i < 2 * kCalmPeriods; ++i) {
    for (uint32_t f = 1; i == kCalmPeriods && f <= kOthers; ++f) {
      simulation.source("load").set_flow_rate("flow_" + std::to_string(f), 10'000,
                                              simulation.now_ns());
    }
    simulation.run_until(simulation.now_ns() + kPeriodNs);
    exec::PeriodSnapshot period = simulation.period();
    seen.late_pkts += period.flows[0].late_pkts;
    EXPECT_FALSE(period.flows[0].egress.is_beyond_share);
    for (exec::FlowPeriod& flow : period.flows) {
      if (!knows_promises) flow.egress = {};
    }
    simulation.apply(controller->step(period));
    const bool holds =
        std::ranges::any_of(may_hold, [&](uint32_t m) { return simulation.trigger_pkts(m) > 0; });
    if (!holds) ++seen.idle_periods;
  }
  return seen;
}

TEST(OptimalEgress, MeetsSlosWhenOthersBeginToFlood) {
  const Spec spec = pipeline(200'000, 100'000, 100);
  const Seen seen = run(spec, true);
  EXPECT_EQ(seen.late_pkts, 0U);
  EXPECT_GT(run(spec, false).late_pkts, 0U);
}

// Buffers in the first module are nearly as good as buffers in each of the works.
TEST(OptimalEgress, GoesFromOneLayoutOfBuffersToAnotherButNotToNone) {
  EXPECT_EQ(run(pipeline(200'000, 100'000, 100), true).idle_periods, 0U);
}

// Packets of a flow that sends more than its share wait anyway: they are collected, and the flow's
// verdict says so.
TEST(OptimalEgress, CollectsWhatWaitsAnywayAndSaysSo) {
  Simulation simulation(pipeline(200'000, 200'000, 10'000));
  const auto controller = slo::make_controller("optimal", simulation.model(), {});
  exec::Decision decision;
  for (uint32_t i = 0; i < 10; ++i) {
    simulation.run_until(simulation.now_ns() + kPeriodNs);
    decision = controller->step(simulation.period());
    simulation.apply(decision);
  }
  EXPECT_NE(decision.flows[0].hint.find("more than its share"), std::string::npos);
  EXPECT_EQ(decision.flows[0].state, exec::FlowState::kInfeasible);
  EXPECT_EQ(simulation.trigger_pkts(simulation.graph().at("work_0")), 32U);
}

}  // namespace optimal_egress_test
}  // namespace batchplane::sim
