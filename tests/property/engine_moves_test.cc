// SPDX-License-Identifier: BSD-3-Clause
// engine_moves_test.cc - engine and simulator agree to the last batch while parts of the graph change
// workers, whoever's turn it is.
#include <gtest/gtest.h>

#include <set>

#include "engine_rig.h"
#include "engine_scenario.h"
#include "spec/doors.h"
#include "spec/parts.h"

namespace batchplane::engine_scenario {
namespace {

constexpr uint32_t kWorkers = 3;

// The ways of all traffic flows, each once, as declared flows.
void declare_flows(Scenario& scenario) {
  PipelineSpec& pipeline = scenario.pipeline_;
  std::set<std::vector<std::string>> known;
  for (uint32_t f = 0; f < scenario.n_flows_; ++f) {
    std::vector<std::string> path;
    std::string at = "in";
    for (;;) {
      const auto gates = scenario.world_.gates.find(at);
      const std::string gate =
          gates == scenario.world_.gates.end() ? "0" : std::to_string(gates->second[f]);
      path.push_back(at + ":" + gate);
      const auto edge = std::ranges::find_if(pipeline.edges, [&](const EdgeSpec& each) {
        return each.from == at && each.gate == gate;
      });
      if (edge == pipeline.edges.end()) break;
      at = edge->to;
    }
    path.back() = at;
    if (known.insert(path).second)
      pipeline.flows.push_back({"f" + std::to_string(f), path, 20'000});
  }
}

std::vector<PartMove> random_moves(Scenario& scenario) {
  std::vector<PartMove> moves;
  const uint32_t n = 1 + scenario.rng_.below(2);
  for (uint32_t i = 0; i < n; ++i) {
    const auto& modules = scenario.pipeline_.modules;
    const auto m = scenario.rng_.below(static_cast<uint32_t>(modules.size()));
    moves.push_back({modules[m].name, "w" + std::to_string(scenario.rng_.below(kWorkers))});
  }
  return moves;
}

void change_buffers(Scenario& scenario, Engine& engine, sim::Simulation& simulation) {
  exec::Decision decision;
  for (const ModuleSpec& module : scenario.pipeline_.modules) {
    if (module.params.count("self") == 0 || scenario.rng_.below(3) != 0) continue;
    const uint32_t trigger = scenario.rng_.below(scenario.pipeline_.engine.batch_pkts + 1);
    decision.changes.push_back(
        {scenario.world_.index[module.name], trigger, 1 + scenario.rng_.below(30'000), "test"});
  }
  simulation.apply(decision);
  engine.change_buffers(decision.changes);
}

void expect_same(uint64_t seed, uint32_t& n_moves) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  Scenario scenario(seed, false);
  for (uint32_t w = 0; w < kWorkers; ++w)
    scenario.pipeline_.workers.push_back({"w" + std::to_string(w), -1});
  declare_flows(scenario);
  const sim::Spec spec = [&] {
    sim::Spec made = scenario.simulated();
    made.costs[kAnyInQueue] = {};
    add_doors(made.pipeline, sim::simulated_kinds(made.pipeline));
    return made;
  }();
  PipelineSpec pipeline = scenario.pipeline_;
  add_doors(pipeline, module_kind_facts());
  world = &scenario.world_;
  sim::Simulation simulation(spec);
  simulation.recorder().limit(0, 1U << 22);
  simulation.update_recording();
  EngineRig rig(pipeline, 1U << 17, 256);
  rig.now_ns = 0;
  scenario.world_.now_ns = &rig.now_ns;
  set_work_estimates(rig.engine(), scenario.world_);

  const uint64_t end_ns = scenario.world_.arrivals.back().time_ns + 1'000'000;
  while (rig.now_ns < end_ns) {
    const uint32_t worker = scenario.rng_.below(kWorkers);
    const uint64_t simulated_ns = simulation.loop_alone(worker, rig.now_ns);
    const bool is_idle = rig.worker(worker).loop_once() == 0;
    if (is_idle) rig.now_ns += scenario.empty_poll_ns_;
    ASSERT_EQ(rig.now_ns, simulated_ns) << "worker " << worker << " after " << n_moves << " moves";
    if (is_idle) continue;
    if (scenario.rng_.below(20) == 0) {
      const std::vector<PartMove> moves = random_moves(scenario);
      simulation.move(moves);
      (void)rig.engine().move(moves);
      set_work_estimates(rig.engine(), scenario.world_);
      ++n_moves;
    }
    if (scenario.rng_.below(40) == 0) {
      change_buffers(scenario, rig.engine(), simulation);
      set_work_estimates(rig.engine(), scenario.world_);
    }
  }
  expect_same_executions(scenario, simulation);
  const exec::Snapshot a = rig.engine().snapshot(false);
  const exec::Snapshot b = simulation.snapshot(false);
  EXPECT_TRUE(a.balance.is_exact() && b.balance.is_exact());
  EXPECT_EQ(a.balance.in_pkts, b.balance.in_pkts);
  EXPECT_EQ(a.balance.sent_pkts, b.balance.sent_pkts);
  EXPECT_EQ(a.balance.dropped_pkts, b.balance.dropped_pkts);
  ASSERT_EQ(a.flows.size(), b.flows.size());
  for (size_t f = 0; f < a.flows.size(); ++f) {
    EXPECT_EQ(a.flows[f].total.pkts, b.flows[f].total.pkts) << a.flows[f].name;
    EXPECT_EQ(a.flows[f].total.delay_sum_ns, b.flows[f].total.delay_sum_ns) << a.flows[f].name;
  }
  for (size_t m = 0; m < scenario.pipeline_.modules.size(); ++m) {
    EXPECT_EQ(a.modules[m].pkts, b.modules[m].pkts) << a.modules[m].name;
    EXPECT_EQ(a.modules[m].batches, b.modules[m].batches) << a.modules[m].name;
    EXPECT_EQ(a.modules[m].worker, b.modules[m].worker) << a.modules[m].name;
  }
}

TEST(EngineAndSimulator, AgreeWhilePartsMove) {
  const uint64_t n_seeds = std::getenv("BATCHPLANE_LONG") != nullptr ? 600 : 8;
  uint32_t n_moves = 0;
  for (uint64_t seed = 1; seed <= n_seeds && !HasFailure(); ++seed) expect_same(seed, n_moves);
  EXPECT_GT(n_moves, 10 * n_seeds);
}

}  // namespace
}  // namespace batchplane::engine_scenario
