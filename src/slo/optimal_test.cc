// SPDX-License-Identifier: BSD-3-Clause
// optimal_test.cc - the optimal controller in the loop with a small simulated task.
#include "slo/optimal.h"

#include <gtest/gtest.h>

#include "slo/plant_test_util.h"

namespace batchplane::slo {
namespace {

constexpr double kPeriodNs = 10e6;

struct Trace {
  std::vector<double> mpps;
  std::vector<double> busy;
  std::vector<uint32_t> violated;  // flows whose percentile was above their SLO
  std::vector<uint32_t> changed;
  std::vector<double> worst_ns;
  Snapshot last;
  Decision decision;
};

// Periods under a controller by name.
Trace control(Plant& plant, Controller& controller, uint32_t periods) {
  Trace trace;
  for (uint32_t i = 0; i < periods; ++i) {
    trace.last = plant.run(kPeriodNs, 0.95);
    const exec::TaskPeriod& task = trace.last.tasks[0];
    trace.mpps.push_back(static_cast<double>(task.in_pkts) * 1e3 / kPeriodNs);
    trace.busy.push_back(static_cast<double>(task.busy_ns) / kPeriodNs);
    trace.worst_ns.push_back(plant.worst_delay_ns);
    uint32_t violated = 0;
    for (const exec::FlowPeriod& flow : trace.last.flows) {
      violated += flow.slo_ns > 0 && flow.delay_ns > flow.slo_ns ? 1 : 0;
    }
    trace.violated.push_back(violated);
    trace.decision = controller.step(trace.last);
    trace.changed.push_back(0);
    for (const exec::BufferChange& change : trace.decision.changes) {
      trace.changed.back() +=
          change.trigger_pkts != trace.last.modules[change.module].trigger_pkts ? 1 : 0;
    }
    plant.apply(trace.decision);
  }
  return trace;
}

std::vector<PlantLeaf> robots() {
  std::vector<PlantLeaf> leaves(16, {4000, 0, 1, 100e6});
  leaves[0] = {0.4, 0.4, 1, 35e3};
  return leaves;
}

// All bypassed the tight flow waits 100 us and more; with full batches elsewhere a fifth of that.
TEST(Optimal, FindsTriggersThatMakeAnInfeasibleStateFeasible) {
  Plant null_plant(robots(), 0, 1);
  const auto null = make_controller("null", null_plant.model, {});
  const Trace bypassed = control(null_plant, *null, 5);
  EXPECT_GT(bypassed.last.flows[0].delay_ns, 100'000U);
  Plant max_plant(robots(), 0, 1);
  const Trace full = control(max_plant, *make_controller("max", max_plant.model, {}), 10);

  Plant plant(robots(), 0, 1);
  const auto optimal = make_controller("optimal", plant.model, {});
  const Trace trace = control(plant, *optimal, 20);
  EXPECT_GT(trace.mpps.back(), 0.95 * full.mpps.back());
  EXPECT_GT(trace.mpps.back(), 10 * bypassed.mpps.back());
  for (size_t i = 3; i < trace.mpps.size(); ++i) {
    EXPECT_EQ(trace.violated[i], 0U) << i;
    EXPECT_NEAR(trace.mpps[i], trace.mpps.back(), 0.05 * trace.mpps.back()) << i;
  }
  EXPECT_EQ(trace.decision.flows[0].state, exec::FlowState::kMet);
}

std::vector<PlantLeaf> gateways(uint32_t n, double slo_ns) {
  return std::vector<PlantLeaf>(n, {300, 25, 1, slo_ns});
}

TEST(Optimal, ConvergesFromBypassedInThreePeriodsAndStaysQuiet) {
  for (const double slo_ns : {20e3, 40e3, 80e3, 200e3}) {
    for (const double mpps : {0.0, 0.5, 2.0, 4.0}) {
      Plant plant(gateways(16, slo_ns), mpps * 1e-3, 3);
      const auto optimal = make_controller("optimal", plant.model, {});
      const Trace trace = control(plant, *optimal, 40);
      uint32_t changed = 0;
      uint32_t violated = 0;
      for (size_t i = 3; i < trace.mpps.size(); ++i) {
        violated += trace.violated[i];
        if (i >= 5) changed += trace.changed[i];
        const double load = mpps > 0 ? trace.busy[i] : 1 / trace.mpps[i];
        const double last = mpps > 0 ? trace.busy.back() : 1 / trace.mpps.back();
        EXPECT_NEAR(load, last, 0.05 * last) << slo_ns << " ns " << mpps << " Mpps, period " << i;
      }
      EXPECT_EQ(violated, 0U) << slo_ns << " ns " << mpps << " Mpps";
      EXPECT_LE(changed, 35 * 16 / 10) << slo_ns << " ns " << mpps << " Mpps";
      if (getenv("SHOW")) printf("slo %.0f mpps %.1f: busy %.3f -> %.3f mpps %.2f q %u delay %lu worst %.0f changed %u viol %u\n", slo_ns, mpps, trace.busy[0], trace.busy.back(), trace.mpps.back(), trace.last.modules[2].trigger_pkts, trace.last.flows[0].delay_ns, trace.worst_ns.back(), changed, violated);
    }
  }
}

}  // namespace
}  // namespace batchplane::slo
