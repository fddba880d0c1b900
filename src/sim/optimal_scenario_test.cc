// SPDX-License-Identifier: BSD-3-Clause
// optimal_scenario_test.cc - the optimal controller in front of the simulated engine: convergence,
// steps of rate and SLO, compared with null and max on the same traffic.
#include <gtest/gtest.h>

#include "sim/sim_test_util.h"
#include "sim/simulation.h"
#include "slo/controllers.h"

namespace batchplane::sim {
namespace optimal_scenario_test {

constexpr uint64_t kPeriodNs = 10'000'000;

struct Period {
  double mpps = 0;
  double busy = 0;
  uint32_t violated = 0;
  uint64_t worst_ns = 0;
  uint64_t first_delay_ns = 0;
};

std::vector<Period> control(Simulation& simulation, slo::Controller& controller, uint32_t n) {
  std::vector<Period> periods;
  for (uint32_t i = 0; i < n; ++i) {
    simulation.run_until(simulation.now_ns() + kPeriodNs);
    const exec::PeriodSnapshot snapshot = simulation.period();
    const auto ns = static_cast<double>(snapshot.period_ns);
    Period period{static_cast<double>(snapshot.tasks[0].in_pkts) * 1e3 / ns,
                  static_cast<double>(snapshot.tasks[0].busy_ns) / ns};
    for (const exec::FlowPeriod& flow : snapshot.flows) {
      period.violated += flow.slo_ns > 0 && flow.delay_ns > flow.slo_ns ? 1 : 0;
      period.worst_ns = std::max(period.worst_ns, flow.delay_max_ns);
    }
    period.first_delay_ns = snapshot.flows[0].delay_ns;
    periods.push_back(period);
    simulation.apply(controller.step(snapshot));
  }
  return periods;
}

std::vector<Period> control(const Spec& spec, const std::string& name, uint32_t n) {
  Simulation simulation(spec);
  const auto controller = slo::make_controller(name, simulation.model(), {});
  return control(simulation, *controller, n);
}

// The cheap, tight flow of robot_control beside fifteen flows that cost 4000 ns per batch.
Spec robots() {
  SpecMaker maker = make_tree(16, 4000, 0);
  maker.spec().costs["leaf_0"] = {0.4, 0.4};
  for (FlowSpec& flow : maker.spec().pipeline.flows) flow.delay_slo_ns = 100'000'000;
  maker.spec().pipeline.flows[0].delay_slo_ns = 35'000;
  maker.source().order = exec::Order::kRandom;
  maker.source().is_saturating = true;
  return maker.spec();
}

TEST(OptimalScenario, RobotControlIsServedThoughNullCannot) {
  const std::vector<Period> null = control(robots(), "null", 4);
  EXPECT_GT(null.back().first_delay_ns, 80'000U);
  const std::vector<Period> max = control(robots(), "max", 8);
  const std::vector<Period> optimal = control(robots(), "optimal", 20);
  EXPECT_GT(optimal.back().mpps, 0.95 * max.back().mpps);
  EXPECT_GT(optimal.back().mpps, 10 * null.back().mpps);
  for (size_t i = 3; i < optimal.size(); ++i) EXPECT_EQ(optimal[i].violated, 0U) << i;
}

Spec gateway(uint64_t slo_ns, double rate_pps) {
  SpecMaker maker = make_gateway(16, 0);
  for (FlowSpec& flow : maker.spec().pipeline.flows) flow.delay_slo_ns = slo_ns;
  maker.source().order = exec::Order::kRandom;
  maker.source().is_saturating = rate_pps == 0;
  maker.source().arrivals = exec::ArrivalKind::kPoisson;
  maker.source().rate_pps = rate_pps;
  return maker.spec();
}

TEST(OptimalScenario, GatewayConvergesInThreePeriodsAtAnyRate) {
  for (const double rate_pps : {0.0, 1e6, 8e6}) {
    for (const uint64_t slo_ns : {30'000U, 100'000U}) {
      SCOPED_TRACE(std::to_string(rate_pps) + " pps, " + std::to_string(slo_ns) + " ns");
      const std::vector<Period> null = control(gateway(slo_ns, rate_pps), "null", 5);
      const std::vector<Period> optimal = control(gateway(slo_ns, rate_pps), "optimal", 15);
      for (size_t i = 3; i < optimal.size(); ++i) {
        const double load = rate_pps > 0 ? optimal[i].busy : optimal[i].mpps;
        const double last = rate_pps > 0 ? optimal.back().busy : optimal.back().mpps;
        EXPECT_NEAR(load, last, 0.05 * last) << i;
        EXPECT_EQ(optimal[i].violated, 0U) << i;
      }
      EXPECT_GE(optimal.back().mpps, 0.98 * null.back().mpps);
    }
  }
}

TEST(OptimalScenario, RateStepsStrandNothing) {
  Simulation simulation(gateway(60'000, 4e6));
  const auto controller = slo::make_controller("optimal", simulation.model(), {});
  control(simulation, *controller, 6);
  simulation.source("load").set_rate(4e4, simulation.now_ns());
  for (const Period& period : control(simulation, *controller, 4)) {
    EXPECT_LT(period.worst_ns, 60'000U);
  }
  simulation.source("load").set_rate(4e6, simulation.now_ns());
  const std::vector<Period> fast = control(simulation, *controller, 5);
  EXPECT_EQ(fast.back().violated, 0U);
  EXPECT_LT(fast.back().worst_ns, 60'000U);
}

// An idle core that fires its buffers at once gains nothing from them until the load needs them.
TEST(OptimalScenario, IdleReleaseBuffersOnlyWhenTheLoadNeedsThem) {
  slo::Settings settings;
  settings.releases_when_idle = true;
  for (const double rate_pps : {4e6, 40e6}) {
    SCOPED_TRACE(rate_pps);
    const std::vector<Period> null = control(gateway(100'000, rate_pps), "null", 10);
    Simulation simulation(gateway(100'000, rate_pps));
    const auto controller = slo::make_controller("optimal", simulation.model(), settings);
    const std::vector<Period> optimal = control(simulation, *controller, 20);
    for (size_t i = 5; i < optimal.size(); ++i) {
      EXPECT_EQ(optimal[i].violated, 0U) << i;
      EXPECT_GE(optimal[i].mpps, rate_pps / 1e6 * 0.98) << i;
      if (rate_pps < 10e6) {
        EXPECT_LE(optimal[i].busy, 1.02 * null.back().busy) << i;
      }
    }
    if (rate_pps > 10e6) {
      EXPECT_LT(null.back().mpps, 36);
    }
  }
}

}  // namespace optimal_scenario_test
}  // namespace batchplane::sim
