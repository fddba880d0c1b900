// SPDX-License-Identifier: BSD-3-Clause
// egress_simulator_test.cc - `pace`, `early_drop` and the scheduler behind them, in the engine and in the
// simulator: given the same packets, the same leave at the same times, and the same are dropped.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>

#include "engine_rig.h"
#include "engine_scenario.h"
#include "sim/scheduler_spec.h"

namespace batchplane::engine_scenario {
namespace {

using Drops = std::map<std::string, uint64_t>;  // by module and reason

template <class Reasons>
Drops drops_of(const exec::Snapshot& snapshot, const Reasons& reasons) {
  Drops found;
  for (const exec::ModuleSnapshot& module : snapshot.modules) {
    for (size_t reason = 0; reason < module.drops.size(); ++reason) {
      if (module.drops[reason] == 0) continue;
      found[module.name + " " + reasons[reason].name] += module.drops[reason];
    }
  }
  return found;
}

// in -> first (pace or early_drop) -> work -> link -> out, with the arrivals of a random scenario.
class Line {
 public:
  Line(uint64_t seed, const std::string& kind, Dict first, Dict link) : scenario_(seed, false) {
    PipelineSpec& pipeline = scenario_.pipeline_;
    pipeline.modules = {{"in", "stand_in_input", {}},
                        {"first", kind, std::move(first)},
                        {"link", "egress", std::move(link)},
                        {"out", "stand_in_end", {{"self", Value("out")}}},
                        {"work", "stand_in_pass", {{"self", Value("work")}}}};
    pipeline.edges = {
        {"in", "0", "first"}, {"first", "0", "work"}, {"work", "0", "link"}, {"link", "0", "out"}};
    World& world = scenario_.world_;
    world.costs_ns = {{"work", {100, 20}}, {"out", {50, 10}}};
    world.gates.clear();
    world.index.clear();
    for (const ModuleSpec& module : pipeline.modules) {
      world.index.emplace(module.name, static_cast<uint32_t>(world.index.size()));
    }
    // The flow of a packet is its mark, at all of these.
    for (const char* const name : {"first", "link"}) {
      for (uint32_t f = 0; f < scenario_.n_flows_; ++f) {
        world.gates[name].push_back(static_cast<uint16_t>(f));
      }
    }
  }

  // Drops, once both have done the same.
  Drops compare() {
    World& mine = scenario_.world_;
    world = &mine;
    EngineRig rig(scenario_.pipeline_, 8192, 256);
    rig.now_ns = 0;
    mine.now_ns = &rig.now_ns;
    sim::Spec spec = scenario_.simulated();
    spec.costs["first"] = spec.costs["link"] = {};
    spec.schedulers["link"] =
        sim::parse_scheduler(rig.engine().graph().at("link").module->for_simulation(), "link");
    sim::Simulation simulation(spec);
    simulation.recorder().limit(0, 1U << 22);
    simulation.update_recording();
    set_work_estimates(rig.engine(), mine);
    const uint64_t end_ns = mine.arrivals.back().time_ns + 30'000'000;
    simulation.run_until(end_ns);
    while (rig.now_ns < end_ns) {
      if (rig.worker().loop_once() == 0) rig.now_ns += scenario_.empty_poll_ns_;
    }
    expect_same_executions(scenario_, simulation);
    const exec::Snapshot a = rig.engine().snapshot(false);
    const exec::Snapshot b = simulation.snapshot(false);
    EXPECT_TRUE(a.balance.is_exact() && b.balance.is_exact());
    EXPECT_EQ(a.balance.sent_pkts, b.balance.sent_pkts);
    EXPECT_EQ(a.balance.held_pkts, b.balance.held_pkts);
    EXPECT_EQ(a.flows.back().total.delay_sum_ns, b.flows.back().total.delay_sum_ns);
    const Drops drops = drops_of(a, drop_reasons());
    EXPECT_EQ(drops, drops_of(b, sim::drop_reasons()));
    return drops;
  }

 private:
  Scenario scenario_;
};

List flows(uint32_t limit_pkts) {
  List all;
  for (uint32_t f = 0; f < 6; ++f) all.push_back(Dict{{"flow", f}, {"limit_pkts", limit_pkts}});
  return all;
}

TEST(EgressAndSimulator, PacketsLeaveAtTheTimesThatAPaceSets) {
  uint32_t n_with_drops = 0;
  for (uint64_t seed = 1; seed <= 20 && !::testing::Test::HasFatalFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    const Dict pace{{"rate_bps", 30'000'000 + rng.below(400'000'000)},
                    {"delay_us", rng.below(30)},
                    {"jitter_us", rng.below(2) * rng.below(20)},
                    {"horizon_us", 100 + rng.below(1000)},
                    {"max_flows", 1 + rng.below(6)}};
    const Drops drops = Line(seed, "pace", pace,
                             {{"discipline", "calendar"},
                              {"flows", flows(1000)},
                              {"rate_bps", rng.below(2) * 2'000'000'000}})
                            .compare();
    if (drops.contains("first pace_horizon")) ++n_with_drops;
  }
  EXPECT_GT(n_with_drops, 5U);
}

// Times that nobody keeps matter neither here nor there.
TEST(EgressAndSimulator, OtherDisciplinesIgnoreThem) {
  const Drops drops = Line(3, "pace", {{"rate_bps", 1'000'000'000}, {"delay_us", 500}},
                           {{"discipline", "drr"}, {"flows", flows(1000)}})
                          .compare();
  EXPECT_EQ(drops, Drops{});
}

TEST(EgressAndSimulator, TheSamePacketsAreDroppedBeforeAFullQueue) {
  uint64_t early_pkts = 0;
  for (uint64_t seed = 1; seed <= 20 && !::testing::Test::HasFatalFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    const char* const discipline = rng.below(2) == 0 ? "qfq_plus" : "fifo";
    Line line(seed, "early_drop", {{"scheduler", "link"}},
              {{"discipline", discipline},
               {"rate_bps", 100'000'000 + rng.below(900'000'000)},
               {"flows", flows(1 + rng.below(60))}});
    const Drops drops = line.compare();
    const auto early = drops.find("first egress_full");
    if (early != drops.end()) early_pkts += early->second;
  }
  EXPECT_GT(early_pkts, 10'000U);
}

}  // namespace
}  // namespace batchplane::engine_scenario
