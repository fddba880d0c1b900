// SPDX-License-Identifier: BSD-3-Clause
// stage_simulation_test.cc - whole simulations of modules with devices: delays, packet balance,
// idle time, moves, periods, refused specifications.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "sim/sim_test_util.h"
#include "sim/simulation.h"
#include "sim/spec_read.h"
#include "spec/doors.h"
#include "spec/parts.h"

namespace batchplane::sim {
namespace stage_simulation_test {

constexpr uint64_t kMs = 1'000'000;

Dict law(double batch_ns, double pkt_ns = 0) {
  return Dict{{"batch_ns", batch_ns}, {"pkt_ns", pkt_ns}};
}
Dict on_gpu(const Dict& more = {}) {
  Dict device{{"on", List{"gpu"}}};
  for (const auto& [key, value] : more) device[key] = value;
  return device;
}
const Dict kLaws{{"work", Dict{{"laws", Dict{{"gpu", law(1000, 10)}}}}}};

// in -> work -> a, b: half of the packets each.
SpecMaker two_ways(const Dict& device) {
  SpecMaker maker;
  maker.module("work", "dpi", 100, 10).module("a", "sink", 0, 0).module("b", "sink", 0, 0);
  maker.edge("in", "work").edge("work", "a", "0").edge("work", "b", "1");
  maker.flow("to_a", {"in", "work:0", "a"}, {{"work", "0"}});
  maker.flow("to_b", {"in", "work:1", "b"}, {{"work", "1"}});
  maker.spec().pipeline.modules[1].device = device;
  maker.spec().pipeline.devices = {{"gpu", "simulated", {}}, {"cpu", "cores", {}}};
  return maker;
}
Spec staged(SpecMaker maker, const Value& stages = kLaws) {
  Spec& spec = maker.spec();
  read_stages(stages, spec);
  const Kinds kinds = simulated_kinds(spec.pipeline);
  add_parts(spec.pipeline, kinds);
  add_doors(spec.pipeline, kinds);
  return spec;
}
Spec random_load(const Dict& device, const Value& stages, uint64_t seed) {
  SpecMaker maker = two_ways(device);
  maker.source().arrivals = exec::ArrivalKind::kPoisson;
  maker.source().rate_pps = 1e6 * static_cast<double>(1 + seed % 5);
  maker.source().order = exec::Order::kRandom;
  maker.source().seed = seed;
  maker.spec().loop.clock_read_ns = 7;
  maker.spec().seed = seed;
  return staged(std::move(maker), stages);
}

void expect_balanced(Simulation& sim) {
  const exec::Snapshot now = sim.snapshot(false);
  EXPECT_TRUE(now.balance.is_exact())
      << now.balance.in_pkts << " in, " << now.balance.sent_pkts << " sent, "
      << now.balance.dropped_pkts << " dropped, " << now.balance.held_pkts << " held";
  EXPECT_EQ(sim.pool().in_use_pkts(), now.balance.held_pkts + sim.source("load").held_pkts());
}
Value stage_of(Simulation& sim) { return sim.show("tables").as_list().front()["stage"]; }

TEST(StageSimulation, DelaysAreThoseOfAScheduleByHand) {
  // Four packets, at 0, 1000, 2000, ... ns, form a batch of 1040 ns; otherwise only idle polls take
  // time.
  SpecMaker maker = two_ways(on_gpu({{"batch_pkts", 4}, {"idle", "hold"}}));
  maker.source().rate_pps = 1e6;
  maker.spec().loop.empty_poll_ns = 1;
  Simulation sim(staged(std::move(maker)));
  sim.run_until(kMs + 2000);  // between two batches
  const exec::Snapshot now = sim.snapshot(true);
  for (const auto& flow : now.flows) {
    if (flow.total.pkts == 0) continue;
    EXPECT_NEAR(static_cast<double>(flow.total.delay_max_ns), flow.name == "to_a" ? 4040 : 3040, 4);
  }
  EXPECT_NEAR(stage_of(sim)["mean_job_ns"].as_double(), 1040, 2);
  EXPECT_EQ(stage_of(sim)["mean_job_pkts"].as_double(), 4);
  EXPECT_NEAR(stage_of(sim)["devices"].as_list()[0]["busy_share"].as_double(), 0.26, 0.002);
  expect_balanced(sim);
}

TEST(StageSimulation, PacketsAddUpAtAnyTimeAndAllLeave) {
  Rng rng(3);
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    const bool is_split = seed % 3 == 0;
    Dict device{{"on", is_split ? List{"gpu", "inline", "cpu"} : List{"gpu"}},
                {"batch_pkts", 1 + rng.below(300)},
                {"depth", 1 + rng.below(5)},
                {"age_limit_ns", rng.below(200'000)},
                {"size_pkts", 64 + rng.below(1000)},
                {"idle", rng.below(2) == 0 ? "hold" : "release"}};
    Dict stage{{"laws", Dict{{"gpu", law(5000, 100)}, {"cpu", law(600, 150)}}}};
    if (is_split) stage["shares"] = Dict{{"gpu", 0.5}, {"inline", 0.2}, {"cpu", 0.3}};
    if (!is_split) stage["laws"] = Dict{{"gpu", law(5000, 100)}};
    Simulation sim(random_load(device, Dict{{"work", stage}}, seed));
    for (uint64_t at_ns = kMs / 4; at_ns <= kMs; at_ns += kMs / 4) {
      sim.run_until(at_ns);
      expect_balanced(sim);
    }
    EXPECT_GT(sim.snapshot(false).balance.sent_pkts, 200U);
    sim.source("load").set_on(false, sim.now_ns());
    sim.drain();
    EXPECT_EQ(sim.held_pkts(), 0U) << seed;
    expect_balanced(sim);
  }
}

TEST(StageSimulation, JumpsOverIdleTimeAndMissesNothing) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Dict device =
        on_gpu({{"batch_pkts", 50 * seed}, {"idle", seed % 2 ? "hold" : "release"}});
    const Spec spec = random_load(device, kLaws, seed);
    Simulation jumps(spec);
    Simulation walks(spec);
    walks.set_idle_skipping(false);
    for (Simulation* const sim : {&jumps, &walks}) sim->run_until(kMs);
    for (const char* const what : {"runtime", "flows", "tables", "buffers"}) {
      EXPECT_EQ(jumps.show(what), walks.show(what)) << what << ", seed " << seed;
    }
  }
}

TEST(StageSimulation, IsTheSameEachTime) {
  const Spec spec = random_load(on_gpu({{"batch_pkts", 40}}), kLaws, 5);
  Simulation first(spec);
  Simulation second(spec);
  first.run_until(kMs);
  for (uint64_t at_ns = 1000; at_ns <= kMs; at_ns += 1000) second.run_until(at_ns);
  EXPECT_EQ(first.show("tables"), second.show("tables"));
  EXPECT_EQ(first.show("flows"), second.show("flows"));
}

TEST(StageSimulation, ControllersSeeAQueue) {
  Simulation sim(random_load(on_gpu({{"batch_pkts", 200}, {"size_pkts", 512}}), kLaws, 2));
  sim.run_until(kMs);
  const exec::PeriodSnapshot period = sim.period();
  const exec::ControlModel& model = sim.model();
  ASSERT_EQ(model.inputs.size(), 2U);
  const size_t at = model.modules[model.inputs[0].module].name == "work" ? 0 : 1;
  EXPECT_TRUE(model.inputs[at].is_queue);
  EXPECT_EQ(model.inputs[at].size_pkts, 512U);
  const exec::InputPeriod& queue = period.inputs[at];
  EXPECT_GT(queue.taken_pkts, 1000U);
  EXPECT_EQ(queue.offered_pkts, queue.taken_pkts + queue.waiting_pkts + queue.lost_pkts);
  const exec::InputPeriod& source = period.inputs[1 - at];
  EXPECT_EQ(queue.offered_pkts, source.taken_pkts);
}

// One worker fills the stage, another polls it; packets inside stay there whichever worker does
// either.
TEST(StageSimulation, PartsMoveAroundAStage) {
  SpecMaker maker = two_ways(on_gpu({{"batch_pkts", 300}}));
  maker.source().rate_pps = 5e6;
  maker.module("more", "cost", 50, 1);
  Spec& written = maker.spec();
  written.pipeline.edges[0].to = "more";
  maker.edge("more", "work");
  for (FlowSpec& flow : written.pipeline.flows) flow.path.insert(flow.path.begin() + 1, "more");
  written.costs[kAnyInQueue] = {10, 1};
  written.pipeline.workers = {{"w0", -1}, {"w1", -1}, {"w2", -1}};
  Simulation sim(staged(std::move(maker)));
  const std::vector<std::vector<PartMove>> moves = {
      {{"work", "w1"}}, {{"more", "w2"}}, {{"work", "w0"}}, {{"more", "w0"}}};
  uint64_t at_ns = 0;
  for (const auto& move : moves) {
    sim.run_until(at_ns += kMs / 3);
    const uint64_t held = sim.held_pkts();
    sim.move(move);
    EXPECT_EQ(sim.held_pkts(), held);
    expect_balanced(sim);
  }
  sim.run_until(at_ns + kMs);
  expect_balanced(sim);
  EXPECT_EQ(sim.graph_number(), 4U);
  const exec::Snapshot now = sim.snapshot(false);
  EXPECT_EQ(now.flows.back().total.pkts, 0U);  // flow "other"
  EXPECT_EQ(now.balance.dropped_pkts, 0U);
  // All packets that left went through the device.
  EXPECT_GE(static_cast<uint64_t>(stage_of(sim)["pkts"].as_int()), now.balance.sent_pkts);
}

std::string refusal(const Dict& device, const Value& stages) {
  try {
    Simulation sim(staged(two_ways(device), stages));
  } catch (const ConfigError& error) {
    return error.line();
  }
  return "";
}
Value work(const Dict& stage) { return Dict{{"work", stage}}; }

TEST(StageSimulation, WhatMakesNoSenseIsRefusedInOneLine) {
  const auto has = [](const std::string& line, const std::string& part) {
    EXPECT_NE(line.find(part), std::string::npos) << line;
    EXPECT_EQ(line.find('\n'), std::string::npos) << line;
  };
  EXPECT_EQ(refusal(on_gpu(), kLaws), "");
  has(refusal(on_gpu(), {}), "nobody says what batches of 'work' take on 'gpu'");
  EXPECT_EQ(refusal(Dict{{"on", List{"gpu", "cpu"}}}, kLaws), "");
  has(refusal(Dict{{"on", List{"cpu", "gpu"}}}, kLaws), "take on 'cpu'");
  has(refusal(Dict{{"on", List{"gpuu"}}}, kLaws), "did you mean 'gpu'?");
  has(refusal(Dict{{"on", List{}}}, kLaws), "'on' has 0 devices");
  has(refusal(on_gpu({{"batch_pkts", 0}}), kLaws), "'batch_pkts' is 0");
  has(refusal(on_gpu({{"batch_pkts", 20'000}}), kLaws), "'batch_pkts' is 20000");
  has(refusal(on_gpu({{"depth", 0}}), kLaws), "'depth' is 0");
  has(refusal(on_gpu({{"idle", "wait"}}), kLaws), "'idle' is 'wait'");
  has(refusal(on_gpu({{"size_pkts", 0}}), kLaws), "'size_pkts' is 0");
  has(refusal(on_gpu(), work({{"laws", Dict{{"gpu", law(-1)}}}})), "laws.gpu.batch_ns");
  has(refusal(on_gpu(), work({{"laws", Dict{{"gpu", Dict{{"batch", 1}}}}}})), "'batch'");
  has(refusal(on_gpu(), work({{"laws", Dict{{"gpu", law(1)}}}, {"shares", Dict{{"gpu", 0}}}})),
      "no place has a share");
  has(refusal(on_gpu(), work({{"laws", Dict{{"gpu", law(1)}}}, {"shares", Dict{{"cpu", 1}}}})),
      "'cpu'");
  has(refusal(on_gpu(), Dict{{"word", Dict{}}}), "did you mean 'work'?");
}

TEST(StageSimulation, PlansRefuseStages) {
  Simulation sim(staged(two_ways(on_gpu())));
  EXPECT_THROW(sim.saturate(), ConfigError);
}

}  // namespace stage_simulation_test
}  // namespace batchplane::sim
