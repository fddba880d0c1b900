// SPDX-License-Identifier: BSD-3-Clause
// optimal_test.cc - the optimal controller in the loop with a small simulated task.
#include "slo/optimal/optimal.h"
#include "slo/controllers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <type_traits>

#include "slo/model/ring_plant_test_util.h"
#include "slo/solver/program_test_util.h"

namespace batchplane::slo {
namespace optimal_test {

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

// Runs periods under a controller.
Trace control(RingPlant& plant, Controller& controller, uint32_t periods) {
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

double sum_of_triggers(const Snapshot& snapshot) {
  double sum = 0;
  for (const exec::ModulePeriod& module : snapshot.modules) sum += module.trigger_pkts;
  return sum;
}

std::vector<RingPlantLeaf> robots() {
  std::vector<RingPlantLeaf> leaves(16, {4000, 0, 1, 100e6});
  leaves[0] = {0.4, 0.4, 1, 35e3};
  return leaves;
}

// A gap that is too short to make the others late: one flow has no SLO, so nothing makes it late.
TEST(Optimal, GapsDoNotExcuseForFlowsWithoutSlos) {
  std::vector<RingPlantLeaf> leaves(4, {400, 30, 1, 14e3});
  leaves[3] = {400, 30, 6, 0};
  std::vector<Triggers> chosen[2];
  for (const uint64_t gaps : {0U, 1U}) {
    RingPlant plant(leaves, 0, 1);
    Optimal optimal(plant.model, {});
    for (int i = 0; i < 300; ++i) {
      Snapshot seen = plant.run(kPeriodNs, 0.95);
      seen.tasks[0].gaps = gaps;
      seen.tasks[0].gap_ns = gaps;
      plant.apply(optimal.step(seen));
      chosen[gaps].push_back(optimal.chosen());
    }
  }
  EXPECT_EQ(chosen[0], chosen[1]);
  EXPECT_NE(chosen[0][5], chosen[0][299]) << "else no try was judged";
}

// Periods tell the limit that is in force where a controller has set none.
TEST(Optimal, SaysNothingMoreOnceItHasSettled) {
  RingPlant plant(std::vector<RingPlantLeaf>(4, {400, 30, 1, 0}), 0, 1);
  const auto optimal = make_controller("optimal", plant.model, {});
  const Trace before = control(plant, *optimal, 20);
  ASSERT_GT(sum_of_triggers(before.last), 100) << "full batches, as there are no SLOs";
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(control(plant, *optimal, 1).decision.changes.empty()) << i;
  }
}

// With all buffers bypassed the tight flow waits 100 us and more; with full batches elsewhere, a
// fifth of that.
TEST(Optimal, FindsTriggersThatMakeAnInfeasibleStateFeasible) {
  RingPlant null_plant(robots(), 0, 1);
  const auto null = make_controller("null", null_plant.model, {});
  const Trace bypassed = control(null_plant, *null, 5);
  EXPECT_GT(bypassed.last.flows[0].delay_ns, 100'000U);
  RingPlant max_plant(robots(), 0, 1);
  const Trace full = control(max_plant, *make_controller("max", max_plant.model, {}), 10);

  RingPlant plant(robots(), 0, 1);
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

std::vector<RingPlantLeaf> gateways(uint32_t n, double slo_ns) {
  return std::vector<RingPlantLeaf>(n, {300, 25, 1, slo_ns});
}

// From the third period on the load, or the time per packet where the input is never empty, is
// within 5 % of its last value; triggers rest; no flow's percentile exceeds its SLO.
TEST(Optimal, ConvergesFromBypassedInThreePeriodsAndStaysQuiet) {
  constexpr uint32_t kPeriods = 24;
  for (const double slo_ns : {20e3, 40e3, 200e3}) {
    for (const double mpps : {0.0, 0.5, 4.0}) {
      SCOPED_TRACE(std::to_string(slo_ns) + " ns, " + std::to_string(mpps) + " Mpps");
      RingPlant plant(gateways(16, slo_ns), mpps * 1e-3, 3);
      const auto optimal = make_controller("optimal", plant.model, {});
      const Trace trace = control(plant, *optimal, kPeriods);
      uint32_t changed = 0;
      uint32_t violated = 0;
      for (size_t i = 3; i < trace.mpps.size(); ++i) {
        violated += trace.violated[i];
        if (i >= 5) changed += trace.changed[i];
        const double load = mpps > 0 ? trace.busy[i] : 1 / trace.mpps[i];
        const double last = mpps > 0 ? trace.busy.back() : 1 / trace.mpps.back();
        EXPECT_NEAR(load, last, 0.05 * last) << "period " << i;
      }
      EXPECT_EQ(violated, 0U);
      EXPECT_LE(changed, (kPeriods - 5) * 16 / 10);
    }
  }
}

// With a loose SLO, no throughput is lost against full batches. With a tight SLO, batches are as
// large as it allows, and the load is well below that without buffers.
TEST(Optimal, UsesWhatTheSloAllows) {
  RingPlant max_plant(gateways(16, 60e3), 0, 4);
  const auto max = make_controller("max", max_plant.model, {});
  const Trace full = control(max_plant, *max, 6);
  RingPlant plant(gateways(16, 60e3), 0, 4);
  const auto optimal = make_controller("optimal", plant.model, {});
  EXPECT_GT(control(plant, *optimal, 10).mpps.back(), 0.98 * full.mpps.back());

  RingPlant null_plant(gateways(16, 40e3), 4e-3, 4);
  const double null_busy =
      control(null_plant, *make_controller("null", null_plant.model, {}), 5).busy.back();
  RingPlant tight(gateways(16, 40e3), 4e-3, 4);
  const auto controller = make_controller("optimal", tight.model, {});
  const Trace trace = control(tight, *controller, 10);
  EXPECT_LT(trace.busy.back(), 0.55 * null_busy);
  EXPECT_GT(trace.last.flows[0].delay_ns, 30'000U);
}

// Between periods: the rate falls a hundredfold, flows stop, and no packet is older than its SLO.
TEST(Optimal, KeepsTheSloBetweenPeriods) {
  RingPlant plant(gateways(16, 60e3), 3e-3, 5);
  const auto optimal = make_controller("optimal", plant.model, {});
  control(plant, *optimal, 6);
  plant.set_rate(3e-5);
  const Trace slow = control(plant, *optimal, 3);
  EXPECT_LT(slow.worst_ns[0], 60e3);
  EXPECT_LT(slow.worst_ns[2], 60e3);
  plant.set_rate(3e-3);
  control(plant, *optimal, 4);
  for (uint32_t i = 0; i < 8; ++i) plant.set_weight(i, 1e-4);
  const Trace few = control(plant, *optimal, 4);
  for (const double worst_ns : few.worst_ns) EXPECT_LT(worst_ns, 60e3);
}

// No buffer stands before what takes most of the time there: an input, or a module that all packets pass.
TEST(Optimal, NamesWhatTakesTheTimeBeforeItsBuffers) {
  std::vector<RingPlantLeaf> leaves = gateways(16, 100e3);
  leaves[0].slo_ns = 60e3;
  RingPlant plant(leaves, 0, 6);
  plant.front_pkt_ns = 2000;
  const auto optimal = make_controller("optimal", plant.model, {});
  const exec::FlowVerdict verdict = control(plant, *optimal, 8).decision.flows[0];
  EXPECT_EQ(verdict.state, exec::FlowState::kInfeasible);
  EXPECT_NE(verdict.hint.find("move " + plant.model.modules[1].name), std::string::npos)
      << verdict.hint;
}

TEST(Optimal, SaysWhatCannotBeMetAndWhy) {
  std::vector<RingPlantLeaf> leaves = gateways(16, 100e3);
  leaves[0].slo_ns = 200;   // below the cost of one packet
  leaves[1].slo_ns = 3000;  // below the time until its turn comes
  leaves[2].slo_ns = 0;
  RingPlant plant(leaves, 0, 6);
  const auto optimal = make_controller("optimal", plant.model, {});
  const Trace trace = control(plant, *optimal, 8);
  const std::vector<exec::FlowVerdict>& flows = trace.decision.flows;
  EXPECT_EQ(flows[0].state, exec::FlowState::kInherent);
  EXPECT_NE(flows[0].hint.find("modules alone"), std::string::npos) << flows[0].hint;
  EXPECT_EQ(flows[1].state, exec::FlowState::kInfeasible);
  EXPECT_NE(flows[1].hint.find("turnaround"), std::string::npos) << flows[1].hint;
  EXPECT_LT(flows[1].slack_ns, 0);
  EXPECT_EQ(flows[2].state, exec::FlowState::kNoSlo);
  for (size_t f = 3; f < flows.size(); ++f) EXPECT_EQ(flows[f].state, exec::FlowState::kMet) << f;
  // Hopeless flows do not cost the other flows their batches.
  EXPECT_GT(trace.last.modules[2 + 2 * 5].trigger_pkts, 16U);
}

// Empty, partial and random snapshots: every number stays finite, every trigger within 0..B.
TEST(Optimal, SurvivesAnySnapshot) {
  RingPlant plant(gateways(4, 50e3), 2e-3, 7);
  Rng rng(8);
  const auto optimal = make_controller("optimal", plant.model, {});
  for (int i = 0; i < 3000; ++i) {
    Snapshot snapshot = plant.run(1e5, 0.95);
    const auto spoil = [&](auto& value) {
      if (rng.below(6) != 0) return;
      using T = std::remove_reference_t<decltype(value)>;
      value = rng.below(2) == 0 ? T{} : static_cast<T>(log_uniform(rng, 1, 1e9));
    };
    for (exec::ModulePeriod& module : snapshot.modules) {
      spoil(module.batches);
      spoil(module.pkts);
      spoil(module.arrived_batches);
      spoil(module.arrived_pkts);
      CostLaw::Line cost = module.cost.line();
      spoil(cost.cost_per_batch_ns);
      spoil(cost.cost_per_pkt_ns);
      module.cost = CostLaw(cost);
      spoil(module.causes[rng.below(4)].firings);
    }
    for (exec::FlowPeriod& flow : snapshot.flows) {
      spoil(flow.slo_ns);
      spoil(flow.pkts);
      spoil(flow.delay_ns);
      spoil(flow.delay_max_ns);
    }
    spoil(snapshot.tasks[0].in_pkts);
    spoil(snapshot.tasks[0].runs);
    spoil(snapshot.tasks[0].busy_ns);
    spoil(snapshot.tasks[0].idle_ns);
    spoil(snapshot.tasks[0].run_p99_ns);
    spoil(snapshot.period_ns);
    const Decision decision = optimal->step(snapshot);
    for (const exec::BufferChange& change : decision.changes) {
      EXPECT_LE(change.trigger_pkts, 32U);
      EXPECT_TRUE(plant.model.modules[change.module].is_controlled);
    }
    for (const exec::FlowVerdict& flow : decision.flows) {
      EXPECT_TRUE(std::isfinite(flow.turnaround_ns) && std::isfinite(flow.fill_ns) &&
                  std::isfinite(flow.service_ns) && std::isfinite(flow.slack_ns) &&
                  std::isfinite(flow.multiplier_pps_per_us));
    }
    EXPECT_TRUE(std::isfinite(decision.predicted_load) && std::isfinite(decision.predicted_pps));
    plant.apply(decision);
  }
}

TEST(Optimal, AnSloEditActsInTheSameStep) {
  RingPlant plant(gateways(16, 200e3), 2e-3, 9);
  const auto optimal = make_controller("optimal", plant.model, {});
  control(plant, *optimal, 6);
  Snapshot snapshot = plant.run(kPeriodNs, 0.95);
  ASSERT_GT(snapshot.modules[2].trigger_pkts, 10U);
  snapshot.flows[0].slo_ns = 40'000;
  plant.apply(optimal->step(snapshot));
  const Snapshot after = plant.run(kPeriodNs, 0.95);
  EXPECT_LT(after.flows[0].delay_ns, 40'000U);
  EXPECT_GT(after.flows[1].delay_ns, 60'000U);
}

TEST(Optimal, ExplainsEachFlowAndModule) {
  RingPlant plant(gateways(4, 30e3), 2e-3, 10);
  const auto optimal = make_controller("optimal", plant.model, {});
  const Trace trace = control(plant, *optimal, 15);
  const Explanation explained = optimal->explain();
  ASSERT_EQ(explained.flows.size(), 4U);
  const FlowExplanation& flow = explained.flows[1];
  EXPECT_NEAR(flow.slo_ns,
              flow.turnaround_ns + flow.bias_ns + flow.fill_ns + flow.service_ns + flow.slack_ns,
              1);
  EXPECT_GT(flow.turnaround_ns, 0);
  EXPECT_GT(flow.multiplier_pps_per_us, 0);
  const ModuleExplanation& module = explained.modules[1];
  EXPECT_EQ(plant.model.modules[module.module].name, "leaf_1");
  EXPECT_EQ(plant.model.flows[module.binding_flow].name, "flow_1");
  EXPECT_EQ(module.why, "a flow's budget");
}

// Packets in batches of 32 cost as much as in batches of 16.
TEST(Optimal, DoesNotNameABudgetWhereNoneBinds) {
  RingPlant plant(gateways(4, 10e6), 0, 10);
  const auto optimal = make_controller("optimal", plant.model, {});
  for (int i = 0; i < 10; ++i) {
    Snapshot snapshot = plant.run(kPeriodNs, 0.95);
    for (exec::ModulePeriod& module : snapshot.modules) {
      std::vector<CostLaw::Point> points;
      for (uint32_t n = 1; n <= 32; ++n) points.push_back({n, 2000 * std::ceil(n / 16.0) + 10 * n});
      module.cost = CostLaw(points);
    }
    plant.apply(optimal->step(snapshot));
  }
  const ModuleExplanation leaf = optimal->explain().modules[1];
  EXPECT_EQ(leaf.trigger_pkts, 16U);
  EXPECT_EQ(leaf.why, "larger batches gain nothing");
}

TEST(Optimal, ExplainsWhichModuleOfASegmentTakesMost) {
  RingPlant plant(gateways(4, 30e3), 0, 10);
  const auto optimal = make_controller("optimal", plant.model, {});
  control(plant, *optimal, 5);
  const auto part_of_leaf = [&] {
    const Explanation explained = optimal->explain();
    const auto& parts = explained.flows[1].modules;
    return *std::ranges::find(parts, 4U, &FlowExplanation::Part::module);
  };
  EXPECT_EQ(part_of_leaf().heaviest, 4U);
  Snapshot snapshot = plant.run(kPeriodNs, 0.95);
  snapshot.modules[5].cost = CostLaw(4000, 300);  // the port behind it
  plant.apply(optimal->step(snapshot));
  const FlowExplanation::Part part = part_of_leaf();
  EXPECT_EQ(part.heaviest, 5U);
  EXPECT_GT(part.heaviest_ns, 4000);
  EXPECT_LT(part.heaviest_ns, part.service_ns);
}

// Late packets that gaps in the worker's time explain lower no trigger; the same packets without
// gaps do.
TEST(Optimal, GapsExcuseThePacketsThatTheyDelay) {
  double changed_pkts[2] = {0, 0};
  for (const bool has_holes : {true, false}) {
    RingPlant plant(gateways(16, 30e3), 0, 11);
    const auto optimal = make_controller("optimal", plant.model, {});
    control(plant, *optimal, 8);
    double before = 0;
    double after = 0;
    for (int i = 0; i < 6; ++i) {
      Snapshot snapshot = plant.run(kPeriodNs, 0.95);
      if (i == 0) before = sum_of_triggers(snapshot);
      after = sum_of_triggers(snapshot);
      for (exec::FlowPeriod& flow : snapshot.flows) {
        const uint64_t late = flow.pkts / 12;
        flow.late_pkts += late;
        flow.delay_max_ns = 80'000;
        flow.delay_ns = 45'000;
        flow.slo_buckets[20] = flow.pkts - late;
        flow.slo_buckets[exec::SloBuckets::kWithin + 2] = late;
      }
      snapshot.tasks[0].gaps = has_holes ? 30 : 0;
      snapshot.tasks[0].gap_ns = has_holes ? 30 * 50'000 : 0;
      plant.apply(optimal->step(snapshot));
    }
    changed_pkts[has_holes ? 0 : 1] = after / before;
  }
  EXPECT_GT(changed_pkts[0], 0.9);
  EXPECT_LT(changed_pkts[1], 0.8);
}

}  // namespace optimal_test
}  // namespace batchplane::slo
