// SPDX-License-Identifier: BSD-3-Clause
// weights_test.cc - the controllers that set weights: what the weights are proportional to, and
// that they settle.
#include "slo/model/weights.h"
#include "slo/controllers.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "slo/model/plant_test_util.h"

namespace batchplane::slo {
namespace {

Model scheduled_tree(uint32_t n_branches, exec::ScheduleBy by = exec::ScheduleBy::kCycles) {
  Model model = tree_model(n_branches);
  model.tasks[0].scheduling.mode = exec::Execution::kWeightedFair;
  model.tasks[0].scheduling.by = by;
  for (exec::ControlModule& module : model.modules) module.is_unit = module.is_controlled;
  return model;
}

// A period of 10 ms in which branch i got rates[i] packets per ns in batches of `batch`, all
// served; costs as given.
Snapshot period_of(const Model& model, const std::vector<double>& rates,
                   const std::vector<double>& cost_per_pkt_ns, double batch = 8) {
  Snapshot snapshot;
  snapshot.period_ns = 10'000'000;
  snapshot.modules.resize(model.modules.size());
  snapshot.flows.resize(model.flows.size());
  snapshot.tasks.resize(1);
  double sum = 0;
  for (uint32_t i = 0; i < rates.size(); ++i) {
    const double pkts = rates[i] * 1e7;
    sum += pkts;
    for (const uint32_t m : {2 + 2 * i, 3 + 2 * i}) {
      exec::ModulePeriod& module = snapshot.modules[m];
      module.pkts = module.arrived_pkts = static_cast<uint64_t>(pkts);
      module.batches = module.arrived_batches = static_cast<uint64_t>(pkts / batch);
      module.weight = 1;
    }
    snapshot.modules[2 + 2 * i].cost = {200, cost_per_pkt_ns[i]};
    snapshot.flows[i].pkts = static_cast<uint64_t>(pkts);
  }
  for (const uint32_t m : {0U, 1U}) {
    snapshot.modules[m].pkts = static_cast<uint64_t>(sum);
    snapshot.modules[m].batches = static_cast<uint64_t>(sum / 16);
    snapshot.modules[m].weight = 1;
  }
  snapshot.modules[1].cost = {20, 2};
  snapshot.tasks[0].in_pkts = static_cast<uint64_t>(sum);
  snapshot.tasks[0].runs = static_cast<uint64_t>(sum / 16);
  snapshot.tasks[0].busy_ns = 5'000'000;
  snapshot.tasks[0].idle_ns = 5'000'000;
  return snapshot;
}

uint32_t weight_of(const Decision& decision, uint32_t module) {
  for (const exec::BufferChange& change : decision.changes) {
    if (change.module == module) return change.weight;
  }
  return 0;
}

TEST(Weights, AreInProportionAndWithinTheirRange) {
  EXPECT_EQ(weights_of({1, 2, 4}), (std::vector<uint32_t>{256, 512, 1024}));
  EXPECT_EQ(weights_of({0, 1e-9, 1}), (std::vector<uint32_t>{1, 1, 1024}));
  EXPECT_EQ(weights_of({0, 0}), (std::vector<uint32_t>{1, 1}));
}

TEST(Nfvnice, WeightsAreArrivalRateTimesCost) {
  const Model model = scheduled_tree(2);
  const auto controller = make_controller("nfvnice", model, {});
  // Per packet 200 / 8 + 75 = 100 and 200 / 8 + 25 = 50 ns.
  const Snapshot snapshot = period_of(model, {0.002, 0.001}, {75, 25});
  const Decision decision = controller->step(snapshot);
  EXPECT_EQ(weight_of(decision, 2), 1024U);
  EXPECT_EQ(weight_of(decision, 4), 256U);
  EXPECT_GE(weight_of(decision, 0), 1U);  // polling
  for (const exec::BufferChange& change : decision.changes) {
    EXPECT_EQ(change.trigger_pkts, exec::kKeepTrigger);
  }
}

// Arrivals count, not served packets: otherwise a starved unit would get even less.
TEST(Nfvnice, CountsWhatWasDroppedInFrontOfAUnit) {
  const Model model = scheduled_tree(2);
  Snapshot snapshot = period_of(model, {0.001, 0.001}, {75, 75});
  snapshot.modules[2].arrived_pkts *= 3;
  const Decision decision = make_controller("nfvnice", model, {})->step(snapshot);
  EXPECT_EQ(weight_of(decision, 2), 1024U);
  EXPECT_NEAR(weight_of(decision, 4), 1024 / 3.0, 1);
}

TEST(Nfvnice, SettlesAndEndsWhatATriggerLeft) {
  const Model model = scheduled_tree(2);
  const auto controller = make_controller("nfvnice", model, {});
  Snapshot snapshot = period_of(model, {0.002, 0.001}, {75, 25});
  snapshot.modules[2].trigger_pkts = 16;
  for (const exec::BufferChange& change : controller->step(snapshot).changes) {
    snapshot.modules[change.module].weight = change.weight;
    if (change.module == 2) {
      EXPECT_EQ(change.trigger_pkts, 0U);
    }
  }
  snapshot.modules[2].trigger_pkts = 0;
  EXPECT_TRUE(controller->step(snapshot).changes.empty());
}

TEST(Wfq, GivesPacesOfTheOptimalBatchRates) {
  const Model model = scheduled_tree(4);
  const auto explicit_model = make_controller("wfq", model, {});
  const auto optimal = make_controller("optimal", model, {});
  Snapshot snapshot = period_of(model, {0.002, 0.001, 0.001, 0.0005}, {20, 20, 40, 20}, 2);
  for (exec::FlowPeriod& flow : snapshot.flows) flow.slo_ns = 100'000;
  const Decision paced = explicit_model->step(snapshot);
  const Decision triggered = optimal->step(snapshot);
  uint32_t n_paced = 0;
  for (const exec::BufferChange& wanted : triggered.changes) {
    if (wanted.trigger_pkts == 0) continue;
    const auto it = std::ranges::find(paced.changes, wanted.module, &exec::BufferChange::module);
    ASSERT_NE(it, paced.changes.end());
    EXPECT_EQ(it->trigger_pkts, 0U);
    EXPECT_EQ(it->age_limit_ns, wanted.age_limit_ns);
    const double rate = static_cast<double>(snapshot.modules[wanted.module].pkts) / 1e7;
    EXPECT_NEAR(static_cast<double>(it->pace_ns), wanted.trigger_pkts / rate,
                0.01 * wanted.trigger_pkts / rate);
    ++n_paced;
  }
  EXPECT_GT(n_paced, 2U);
}

// By count, weights are the batch rates themselves; by cycles, the cost of these turns.
TEST(Wfq, WeightsFollowTheTurnsNeeded) {
  for (const auto by : {exec::ScheduleBy::kCount, exec::ScheduleBy::kCycles}) {
    const Model model = scheduled_tree(2, by);
    const auto controller = make_controller("wfq", model, {});
    Snapshot snapshot = period_of(model, {0.001, 0.001}, {20, 300}, 30);
    const Decision decision = controller->step(snapshot);  // batches arrive full: all bypassed
    const double ratio = static_cast<double>(weight_of(decision, 4)) / weight_of(decision, 2);
    const double wanted =
        by == exec::ScheduleBy::kCount ? 1 : (200 + 300 * 30.0) / (200 + 20 * 30.0);
    EXPECT_NEAR(ratio, wanted, 0.05 * wanted);
  }
}

TEST(Weights, NeedATaskThatIsScheduled) {
  const Model model = tree_model(2);
  for (const char* name : {"nfvnice", "wfq"}) {
    try {
      make_controller(name, model, {});
      FAIL() << name;
    } catch (const ConfigError& error) {
      EXPECT_NE(error.line().find("runs to completion"), std::string::npos) << error.line();
    }
  }
}

// No weight of a removed controller stays on polling, and no pace on units.
TEST(Weights, OfAnInputEndWithTheControllerThatSetThem) {
  Model model = scheduled_tree(2);
  model.tasks[0].scheduling.input_weight = 3;
  Snapshot left = period_of(model, {0.002, 0.001}, {75, 25});
  left.modules[0].weight = 700;
  left.modules[2].pace_ns = 5000;
  for (const char* name : {"null", "max", "fixed(8)", "onoff", "feasdir", "full", "optimal"}) {
    SCOPED_TRACE(name);
    const auto controller = make_controller(name, model, {});
    const Decision first = controller->step(left);
    EXPECT_EQ(weight_of(first, 0), 3U);
    const auto paced = std::ranges::find(first.changes, 2U, &exec::BufferChange::module);
    ASSERT_NE(paced, first.changes.end());
    EXPECT_EQ(paced->pace_ns, 0U);
    // Once: from then on weights are the operator's.
    EXPECT_EQ(weight_of(controller->step(left), 0), 0U);
  }
  for (const char* name : {"nfvnice", "wfq"}) {
    const auto controller = make_controller(name, model, {});
    EXPECT_NE(weight_of(controller->step(left), 0), 3U) << name;
  }
}

// The original's substitute for NFVnice.
TEST(Fixed, NullGivesEqualWeights) {
  const Model model = scheduled_tree(2);
  Snapshot snapshot = period_of(model, {0.001, 0.001}, {20, 20});
  snapshot.modules[2].weight = 77;
  const Decision decision = make_controller("null", model, {})->step(snapshot);
  ASSERT_EQ(decision.changes.size(), 1U);
  EXPECT_EQ(decision.changes[0].module, 2U);
  EXPECT_EQ(decision.changes[0].weight, 1U);
}

}  // namespace
}  // namespace batchplane::slo
