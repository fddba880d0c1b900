// SPDX-License-Identifier: BSD-3-Clause
// engine_simulator_test.cc - engine and simulator, given the same graph, the same arrivals and the
// same costs, execute the same batches of the same modules for the same reasons at the same time.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "engine_rig.h"
#include "engine_scenario.h"

namespace batchplane::engine_scenario {
namespace {

// Weights and paces of units, the input's weight.
void add_unit_changes(Scenario& scenario, const exec::ControlModel& model,
                      exec::Decision& decision) {
  for (exec::BufferChange& change : decision.changes) {
    if (!model.modules[change.module].is_unit) continue;
    if (scenario.rng_.below(2) == 0) change.weight = 1 + scenario.rng_.below(exec::kMaxWeight);
    if (scenario.rng_.below(2) == 0) change.pace_ns = scenario.rng_.below(20'000);
  }
  if (scenario.rng_.below(2) != 0) return;
  decision.changes.push_back({.module = scenario.world_.index["in"],
                              .trigger_pkts = exec::kKeepTrigger,
                              .age_limit_ns = exec::kKeepAge,
                              .reason = "test",
                              .weight = 1 + scenario.rng_.below(100)});
}

// What the last period has seen come to each input. The recorded arrivals have no ring to be full.
// `has_edits`: limits of polls may have changed meanwhile.
void expect_same_demand(Engine& engine, sim::Simulation& simulation, bool has_edits) {
  const exec::PeriodSnapshot& a = engine.period(0.95);
  const exec::PeriodSnapshot b = simulation.period();
  const exec::ControlModel& model = simulation.model();
  ASSERT_EQ(a.inputs.size(), b.inputs.size());
  for (size_t i = 0; i < a.inputs.size(); ++i) {
    size_t j = 0;
    while (engine.control_model().inputs.at(j).module != model.inputs[i].module) ++j;
    const exec::InputPeriod& mine = a.inputs[j];
    const exec::InputPeriod& theirs = b.inputs[i];
    const std::string& name = model.modules[model.inputs[i].module].name;
    SCOPED_TRACE(name);
    EXPECT_EQ(mine.offered_pkts, theirs.offered_pkts);
    EXPECT_EQ(mine.taken_pkts, theirs.taken_pkts);
    EXPECT_EQ(mine.lost_pkts, theirs.lost_pkts);
    EXPECT_EQ(mine.waiting_pkts, theirs.waiting_pkts);
    if (name == "in") continue;
    EXPECT_EQ(mine.ring_pkts, theirs.ring_pkts);
    EXPECT_EQ(mine.credit_pkts, theirs.credit_pkts);
    EXPECT_EQ(mine.fill_max_pkts, theirs.fill_max_pkts);
    EXPECT_EQ(mine.fill_mean_pkts, theirs.fill_mean_pkts);
  }
  for (const exec::PeriodSnapshot* period : {&a, &b}) {
    for (const exec::TaskPeriod& task : period->tasks) {
      EXPECT_TRUE(has_edits || task.in_pkts <= task.runs * task.poll_pkts);
    }
  }
}

// The same limits of polls for both, by what the tasks poll.
class PollLimits {
 public:
  PollLimits(uint64_t seed, Scenario& scenario) : rng_(seed) {
    most_pkts_ = scenario.pipeline_.engine.batch_pkts;
    for (ModuleSpec& module : scenario.pipeline_.modules) {
      const bool is_polled = module.kind == "queue" || module.kind == "stand_in_input";
      if (is_polled && rng_.below(2) == 0) module.poll_pkts = 1 + rng_.below(most_pkts_);
    }
  }
  void change(Engine& engine, const exec::ControlModel& model, exec::Decision& decision) {
    for (uint32_t t = 0; t < model.tasks.size(); ++t) {
      if (rng_.below(3) != 0) continue;
      decision.polls.push_back({t, 1 + rng_.below(most_pkts_)});
      const std::string& name = model.modules[model.tasks[t].inputs.front()].name;
      engine.change_polls(engine.poll_changes({{name, decision.polls.back().poll_pkts}}));
    }
  }

 private:
  Rng rng_;
  uint32_t most_pkts_ = 0;
};

// Both from zero to `end_ns`, with the same edits of triggers and limits on the way.
void expect_same(uint64_t seed, bool is_scheduled, bool has_poll_limits = false) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  Scenario scenario(seed, is_scheduled);
  std::optional<PollLimits> polls;
  if (has_poll_limits) polls.emplace(seed, scenario);
  World& mine = scenario.world_;
  world = &mine;
  sim::Simulation simulation(scenario.simulated());
  simulation.recorder().limit(0, 1U << 22);
  simulation.update_recording();
  EngineRig rig(scenario.pipeline_, 8192, 256);
  rig.now_ns = 0;
  mine.now_ns = &rig.now_ns;
  set_work_estimates(rig.engine(), mine);

  const uint64_t end_ns = mine.arrivals.back().time_ns + 3'000'000;
  uint64_t until_ns = 0;
  while (until_ns < end_ns) {
    until_ns += 1 + scenario.rng_.below(400'000);
    simulation.run_until(until_ns);
    while (rig.now_ns < until_ns) {
      if (rig.worker().loop_once() == 0) rig.now_ns += scenario.empty_poll_ns_;
    }
    mine.seen_ns = until_ns;
    // Taking a period reads the clock, and units are charged up to there: only at the end then.
    if (!is_scheduled || until_ns >= end_ns)
      expect_same_demand(rig.engine(), simulation, is_scheduled);
    std::vector<Engine::TriggerEdit> triggers;
    std::vector<Engine::AgeEdit> ages;
    exec::Decision decision;
    for (const ModuleSpec& module : scenario.pipeline_.modules) {
      if (module.params.count("self") == 0 || scenario.rng_.below(3) != 0) continue;
      const uint32_t trigger = scenario.rng_.below(scenario.pipeline_.engine.batch_pkts + 1);
      const uint64_t age_ns = 1 + scenario.rng_.below(30'000);
      triggers.push_back({module.name, trigger});
      ages.push_back({module.name, age_ns});
      decision.changes.push_back({mine.index[module.name], trigger, age_ns, "test"});
    }
    if (polls) polls->change(rig.engine(), simulation.model(), decision);
    if (is_scheduled) add_unit_changes(scenario, simulation.model(), decision);
    simulation.apply(decision);
    is_scheduled ? rig.engine().change_buffers(decision.changes)
                 : rig.engine().set_buffers(triggers, ages);
    set_work_estimates(rig.engine(), mine);
  }

  ASSERT_GT(mine.executed.size(), 100U);
  expect_same_executions(scenario, simulation);
  const exec::Snapshot a = rig.engine().snapshot(false);
  const exec::Snapshot b = simulation.snapshot(false);
  EXPECT_TRUE(a.balance.is_exact() && b.balance.is_exact());
  EXPECT_EQ(a.balance.sent_pkts, b.balance.sent_pkts);
  EXPECT_EQ(a.balance.dropped_pkts, b.balance.dropped_pkts);
  EXPECT_EQ(a.flows.back().total.delay_sum_ns, b.flows.back().total.delay_sum_ns);
  EXPECT_EQ(a.flows.back().total.delay_max_ns, b.flows.back().total.delay_max_ns);
}

TEST(EngineAndSimulator, ExecuteTheSameBatchesAtTheSameTime) {
  // A release by age through modules that cost nothing: what left, then a long rest.
  expect_same(2799, false);
  const uint64_t n_seeds = std::getenv("BATCHPLANE_LONG") != nullptr ? 3000 : 150;
  for (uint64_t seed = 1; seed <= n_seeds && !HasFatalFailure(); ++seed) expect_same(seed, false);
}

TEST(EngineAndSimulator, TakeTheSamePollsUnderTheSameLimits) {
  const uint64_t n_seeds = std::getenv("BATCHPLANE_LONG") != nullptr ? 3000 : 100;
  for (uint64_t seed = 1; seed <= n_seeds && !HasFatalFailure(); ++seed) {
    expect_same(seed, seed % 4 == 0, true);
  }
}

TEST(EngineAndSimulator, AgreeUnderExplicitScheduling) {
  const uint64_t n_seeds = std::getenv("BATCHPLANE_LONG") != nullptr ? 3000 : 150;
  for (uint64_t seed = 1; seed <= n_seeds && !HasFatalFailure(); ++seed) expect_same(seed, true);
}

}  // namespace
}  // namespace batchplane::engine_scenario
