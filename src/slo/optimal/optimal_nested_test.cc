// SPDX-License-Identifier: BSD-3-Clause
// optimal_nested_test.cc - buffers behind others: outer buffers alone, arrivals that follow from
// them, and the controller's triggers against every choice.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/rng.h"
#include "exec/ring_size.h"
#include "slo/optimal/optimal.h"
#include "slo/optimal/optimal_age.h"
#include "slo/solver/program_test_util.h"

namespace batchplane::slo {
namespace optimal_nested_test {

constexpr uint32_t kBatch = 16;
constexpr uint32_t kLeaves = 2;

// in -> split -> look-up -> two leaves, each with an end; split and leaves may hold.
Model model_of() {
  Model model;
  model.batch_limit_pkts = kBatch;
  model.modules = {{.name = "in"}, {.name = "split", .has_buffer = true}};
  model.modules.push_back({.name = "lookup", .has_buffer = true});
  model.edges = {{0, 0, 1}, {1, 0, 2}};
  // A second way out of the split makes its batches worth collecting.
  model.modules.push_back({.name = "other", .has_buffer = true, .is_egress = true});
  model.edges.push_back({1, 1, 3});
  exec::ControlTask task{.inputs = {0}, .modules = {1, 2, 3}};
  for (uint32_t i = 0; i < kLeaves; ++i) {
    const uint32_t leaf = 4 + 2 * i;
    model.modules.push_back({.name = "leaf_" + std::to_string(i), .has_buffer = true});
    model.modules.push_back(
        {.name = "out_" + std::to_string(i), .has_buffer = true, .is_egress = true});
    model.edges.push_back({2, i, leaf});
    model.edges.push_back({leaf, 0, leaf + 1});
    model.flows.push_back({"flow_" + std::to_string(i), {0, 1, 2, leaf, leaf + 1}});
    task.modules.insert(task.modules.end(), {leaf, leaf + 1});
  }
  model.tasks.push_back(task);
  mark_controlled(model);
  return model;
}

// A saturated period in which nothing was held: half of the packets take the look-up.
Snapshot period_of(const Model& model, Rng& rng, double slo_factor) {
  Snapshot out{.now_ns = 10'000'000, .period_ns = 10'000'000};
  out.modules.resize(model.modules.size());
  out.flows.resize(model.flows.size());
  exec::TaskPeriod task{.in_pkts = 16'000, .runs = 1000};
  double work_ns = 0;
  const auto add = [&](uint32_t m, uint64_t batches, uint64_t pkts, const CostLaw& cost) {
    exec::ModulePeriod& module = out.modules[m];
    module.batches = module.arrived_batches = batches;
    module.pkts = module.arrived_pkts = pkts;
    module.cost = cost;
    work_ns += cost.line().work_ns(static_cast<double>(batches), static_cast<double>(pkts));
  };
  add(0, 1000, 16'000, {});
  add(1, 1000, 16'000, {20, 5});
  add(2, 1000, 8'000, {log_uniform(rng, 20, 800), 10});
  add(3, 1000, 8'000, {});
  for (uint32_t i = 0; i < kLeaves; ++i) {
    add(4 + 2 * i, 1000, 4'000, {log_uniform(rng, 20, 800), 20});
    add(5 + 2 * i, 1000, 4'000, {});
  }
  task.busy_ns = static_cast<uint64_t>(work_ns * 1.1);
  task.run_p99_ns = task.busy_ns / 1000;
  out.tasks = {task};
  for (exec::FlowPeriod& flow : out.flows) {
    flow.pkts = 100;  // too few to learn from
    flow.slo_ns = static_cast<uint64_t>(slo_factor * 5.5 * static_cast<double>(task.run_p99_ns));
  }
  return out;
}

// The controller's assumption: a ring that is never empty.
void saturate(ProgramView& view, const Snapshot& snapshot, const Settings& settings) {
  ProgramTask& task = view.program().tasks[0];
  task.is_saturated = true;
  task.runs_waited = 1 + static_cast<double>(exec::kDefaultRingPkts) / task.run_pkts;
  for (size_t f = 0; f < snapshot.flows.size(); ++f) {
    view.program().flows[f].budget_ns =
        Margin(settings).most_ns(static_cast<double>(snapshot.flows[f].slo_ns), 0);
  }
}

struct Judged {
  double load = 0;
  bool fits = false;
};

// The model with these triggers and the arrivals that follow from them.
Judged judge(ProgramView& view, const Snapshot& snapshot, const Triggers& triggers, double margin) {
  view.predict_arrivals(triggers);
  Evaluation at;
  evaluate(view.program(), triggers, at);
  std::vector<double> bound_ns;
  for (const exec::FlowPeriod& flow : snapshot.flows) {
    bound_ns.push_back(static_cast<double>(flow.slo_ns));
  }
  reserve_for_ages(view, at, bound_ns, triggers);
  evaluate(view.program(), triggers, at);
  Judged judged{.load = at.load, .fits = true};
  for (size_t f = 0; f < bound_ns.size(); ++f) {
    judged.fits &= at.delay_ns[f] <= view.program().flows[f].budget_ns * (1 + margin);
  }
  for (size_t v = 0; v < triggers.size(); ++v) {
    judged.fits &= triggers[v] == 0 || is_holding(view.program().modules[v], triggers[v]);
  }
  return judged;
}

// Every choice of three triggers; the controller's is within a few per cent of the best.
TEST(OptimalNested, IsCloseToEveryChoiceWithArrivalsThatFollow) {
  const Model model = model_of();
  const Settings settings{.tolerance = 0.05};
  uint32_t apart = 0;
  uint32_t outer_alone = 0;
  uint32_t held = 0;
  uint32_t feasible = 0;
  double worst = 1;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Rng rng(seed);
    const Snapshot snapshot = period_of(model, rng, log_uniform(rng, 0.8, 3));
    Optimal optimal(model, settings);
    optimal.step(snapshot);
    ProgramView view(model, settings);
    view.update(snapshot);
    saturate(view, snapshot, settings);
    const Triggers& chosen = optimal.chosen();
    ASSERT_EQ(chosen.size(), 1U + kLeaves);
    const uint32_t outer = view.head_of(2);
    const Judged mine = judge(view, snapshot, chosen, 0.03);
    double best = kNoBudgetNs;
    Triggers q(chosen.size(), 0);
    for (size_t v = 0; v < q.size();) {
      const Judged other = judge(view, snapshot, q, 0);
      if (other.fits) best = std::min(best, other.load);
      for (v = 0; v < q.size() && ++q[v] > kBatch; ++v) q[v] = 0;
    }
    if (best == kNoBudgetNs) continue;
    ++feasible;
    EXPECT_TRUE(mine.fits) << seed;
    uint32_t inner = 0;
    for (uint32_t v = 0; v < chosen.size(); ++v) inner += v != outer ? chosen[v] : 0;
    held += *std::ranges::max_element(chosen) > 0 ? 1 : 0;
    outer_alone += chosen[outer] > 0 && inner == 0 ? 1 : 0;
    worst = std::max(worst, mine.load / best);
    apart += mine.load > 1.01 * best ? 1 : 0;
  }
  RecordProperty("worst", std::to_string(worst));
  RecordProperty("apart", static_cast<int>(apart));
  EXPECT_LE(apart, 5U);
  EXPECT_LE(worst, 1.05);
  EXPECT_GT(feasible, 100U);
  EXPECT_GT(held, feasible / 2);
  EXPECT_GT(outer_alone, 1U);
}

// Without buffers behind, the cost of batches there is credited to the collecting buffer; at both
// ends of the outer trigger the load equals that of the whole program.
TEST(OptimalNested, OuterBuffersAnswerForWhatComesBehind) {
  const Model model = model_of();
  const Settings settings;
  Rng rng(3);
  const Snapshot snapshot = period_of(model, rng, 2);
  ProgramView view(model, settings);
  view.update(snapshot);
  saturate(view, snapshot, settings);
  const uint32_t outer = view.head_of(2);
  Triggers triggers(1 + kLeaves, 0);
  for (const uint32_t q : {0U, kBatch}) {
    triggers[outer] = q;
    Evaluation whole;
    view.predict_arrivals(triggers);
    evaluate(view.program(), triggers, whole);
    Evaluation folded;
    view.allow_nested(false);
    view.predict_arrivals(triggers);
    EXPECT_GT(view.program().modules[outer].cost_per_batch_ns,
              snapshot.modules[2].cost.line().cost_per_batch_ns);
    evaluate(view.program(), triggers, folded);
    EXPECT_NEAR(folded.load, whole.load, 1e-3 * whole.load) << q;
    view.allow_nested(true);
    EXPECT_DOUBLE_EQ(view.program().modules[outer].cost_per_batch_ns,
                     snapshot.modules[2].cost.line().cost_per_batch_ns);
  }
}

// The controller plans with the first buffers alone only where they could be cheaper than its plan: no trigger
// of theirs takes less time than it says.
TEST(OptimalNested, NoOuterTriggerIsCheaperThanTheBound) {
  const Model model = model_of();
  uint32_t n_reached = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Rng rng(seed);
    const Settings settings{.hold_ns_per_pkt = log_uniform(rng, 0.1, 30)};
    const Snapshot snapshot = period_of(model, rng, 2);
    ProgramView view(model, settings);
    view.update(snapshot);
    saturate(view, snapshot, settings);
    const auto cheapest = view.cheapest_outer();
    ASSERT_TRUE(cheapest);
    Evaluation bound;
    evaluate(view.program(), *cheapest, bound);
    Triggers triggers(cheapest->size(), 0);
    double least_ns = kNoBudgetNs;
    for (uint32_t q = 0; q <= kBatch; ++q) {
      triggers[view.head_of(2)] = q;
      view.predict_arrivals(triggers);
      Evaluation at;
      evaluate(view.program(), triggers, at);
      if (q > 0 && !is_holding(view.program().modules[view.head_of(2)], q)) continue;
      least_ns = std::min(least_ns, at.task_pkt_ns[0]);
    }
    EXPECT_GE(least_ns, bound.task_pkt_ns[0] * (1 - 1e-12)) << seed;
    n_reached += least_ns < bound.task_pkt_ns[0] * (1 + 1e-9);
  }
  EXPECT_GT(n_reached, 100U) << "the bound is far from what there is";
}

// in -> split 0 -> split 1 -> ..., each with a second way out; modules are listed from the last one on.
TEST(OptimalNested, ArrivalsFollowInOnePassWhateverTheOrderOfModules) {
  constexpr uint32_t kLevels = 4;
  const auto split_at = [](uint32_t level) { return kLevels - level; };
  Model model;
  model.batch_limit_pkts = kBatch;
  model.modules.push_back({.name = "in"});
  for (uint32_t i = 0; i < kLevels; ++i) {
    model.modules.push_back({.name = "split_" + std::to_string(i), .has_buffer = true});
  }
  exec::ControlTask task{.inputs = {0}};
  Snapshot period{.now_ns = 10'000'000, .period_ns = 10'000'000};
  period.modules.resize(1 + 2 * kLevels);
  const auto count = [&](uint32_t m, uint64_t pkts) {
    period.modules[m].batches = period.modules[m].arrived_batches = 1000;
    period.modules[m].pkts = period.modules[m].arrived_pkts = pkts;
    period.modules[m].cost = {100, 10};
  };
  count(0, 16'000);
  for (uint32_t level = 0; level < kLevels; ++level) {
    const auto other = static_cast<uint32_t>(model.modules.size());
    model.modules.push_back({.name = "out", .has_buffer = true, .is_egress = true});
    const uint32_t from = level == 0 ? 0 : split_at(level - 1);
    model.edges.push_back({from, 0, split_at(level)});
    model.edges.push_back({split_at(level), 1, other});
    task.modules.insert(task.modules.end(), {split_at(level), other});
    count(split_at(level), 16'000 >> level);
    count(other, 8'000 >> level);
  }
  task.inputs = {0};
  model.tasks.push_back(task);
  mark_controlled(model);
  period.tasks = {{.in_pkts = 16'000, .runs = 1000, .busy_ns = 9'000'000}};
  ProgramView view(model, {});
  view.update(period);
  Triggers triggers(view.segments().size(), 0);
  triggers[view.head_of(split_at(1))] = kBatch;
  EXPECT_TRUE(view.predict_arrivals(triggers));
  EXPECT_FALSE(view.predict_arrivals(triggers)) << "a second pass finds more";
}

}  // namespace optimal_nested_test
}  // namespace batchplane::slo
