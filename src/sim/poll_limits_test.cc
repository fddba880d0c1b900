// SPDX-License-Identifier: BSD-3-Clause
// poll_limits_test.cc - how many packets a poll may take: what it does to delays and rates, what is refused,
// and that parts that move keep it.
#include <gtest/gtest.h>

#include "exec/poll_limits.h"
#include "sim/sim_test_util.h"
#include "sim/simulation.h"
#include "slo/controllers.h"

namespace batchplane::sim {
namespace poll_limits_test {

constexpr uint64_t kMs = 1'000'000;

// 320 + 10 n ns: a full poll of 32 takes 640 ns, one of 8 takes 400 ns.
Spec saturated() {
  SpecMaker maker;
  maker.module("a", "cost", 320, 10);
  maker.module("out", "sink", 0, 0);
  maker.chain({"in", "a", "out"});
  maker.flow("f", {"in", "a", "out"}, {});
  maker.spec().loop.empty_poll_ns = 20;
  maker.source().is_saturating = true;
  return maker.spec();
}

exec::PeriodSnapshot period_at(Simulation& sim, uint32_t poll_pkts) {
  exec::Decision decision;
  decision.polls = {{0, poll_pkts}};
  sim.apply(decision);
  sim.run_until(sim.now_ns() + kMs);
  (void)sim.period();
  sim.run_until(sim.now_ns() + 10 * kMs);
  return sim.period();
}

TEST(PollLimits, LessOfThemIsLessAtATime) {
  Simulation sim(saturated());
  const exec::PeriodSnapshot full = period_at(sim, 32);
  const exec::PeriodSnapshot small = period_at(sim, 8);
  EXPECT_EQ(full.tasks[0].poll_pkts, 32U);
  EXPECT_EQ(small.tasks[0].poll_pkts, 8U);
  EXPECT_EQ(small.tasks[0].in_pkts, small.tasks[0].runs * 8);
  const auto ns_per_pkt = [](const exec::PeriodSnapshot& period) {
    return static_cast<double>(period.period_ns) / static_cast<double>(period.flows[0].pkts);
  };
  EXPECT_NEAR(ns_per_pkt(full), 640.0 / 32, 0.5);
  EXPECT_NEAR(ns_per_pkt(small), 400.0 / 8, 0.5);
  EXPECT_NEAR(static_cast<double>(small.tasks[0].run_p99_ns), 400, 20);
}

TEST(PollLimits, OutOfRangeTheyChangeNothing) {
  Simulation sim(saturated());
  (void)period_at(sim, 8);
  const auto refused = [&](uint32_t task, uint32_t poll_pkts) -> std::string {
    exec::Decision decision;
    decision.changes = {{sim.graph().at("a"), 4, exec::kKeepAge, "test"}};
    decision.polls = {{task, poll_pkts}};
    try {
      sim.apply(decision);
    } catch (const ConfigError& error) {
      return error.line();
    }
    return "";
  };
  EXPECT_EQ(refused(0, 0), "in: a poll of 0 packets is out of range (1 to engine.batch_pkts, 32)");
  EXPECT_EQ(refused(0, 33),
            "in: a poll of 33 packets is out of range (1 to engine.batch_pkts, 32)");
  EXPECT_NE(refused(1, 4).find("a change names task 1 of 1"), std::string::npos);
  EXPECT_EQ(sim.period().tasks[0].poll_pkts, 8U);
  EXPECT_EQ(sim.trigger_pkts(sim.graph().at("a")), 0U);
}

TEST(PollLimits, BelongToTheTaskThatPollsTheModule) {
  Simulation sim(saturated());
  const uint32_t in = sim.graph().at("in");
  const std::vector<exec::PollChange> polls = exec::poll_changes(sim.model(), {{in, 9}, {in, 5}});
  ASSERT_EQ(polls.size(), 1U);
  EXPECT_EQ(polls[0].poll_pkts, 5U) << "the least counts";
  EXPECT_THROW((void)exec::poll_changes(sim.model(), {{sim.graph().at("a"), 5}}), ConfigError);
  Spec spec = saturated();
  spec.pipeline.modules[in].poll_pkts = 7;
  EXPECT_EQ(Simulation(spec).graph().tasks.front()->poll_pkts, 7U);
}

TEST(PollLimits, StayWhenPartsMove) {
  Spec spec = saturated();
  spec.pipeline.workers = {{"w0", -1}, {"w1", -1}};
  spec.costs[kAnyInQueue] = {};
  Simulation sim(spec);
  (void)period_at(sim, 8);
  sim.move({{"a", "w1"}});
  const auto of = [&](const std::string& input) {
    for (const auto& task : sim.graph().tasks) {
      for (const TaskInput& each : task->inputs) {
        if (each.module->name == input) return task->poll_pkts;
      }
    }
    return 0U;
  };
  EXPECT_EQ(of("in"), 8U);
  EXPECT_EQ(of("a/in"), 32U) << "a new queue's task has no limit yet";
  exec::Decision decision;
  decision.polls = exec::poll_changes(sim.model(), {{sim.graph().at("a/in"), 3}});
  sim.apply(decision);
  sim.move({{"out", "w0"}});
  EXPECT_EQ(of("in"), 8U);
  EXPECT_EQ(of("a/in"), 3U);
}

// A loop that polled as much as it may most likely finds more, which saves looking; the result is the same.
TEST(PollLimits, AreTheSameWithoutSkippingIdleLoops) {
  uint64_t pkts[2] = {};
  uint64_t delay_ns[2] = {};
  for (const uint32_t i : {0, 1}) {
    Spec spec = saturated();
    spec.sources[0].is_saturating = false;
    spec.sources[0].flows[0].rate_pps = 0;
    spec.sources[0].rate_pps = 3'000'000;
    spec.sources[0].burst_pkts = 20;
    Simulation sim(spec);
    sim.set_idle_skipping(i == 0);
    const exec::PeriodSnapshot period = period_at(sim, 6);
    pkts[i] = period.flows[0].pkts;
    delay_ns[i] = period.flows[0].delay_sum_ns;
  }
  EXPECT_GT(pkts[0], 1000U);
  EXPECT_EQ(pkts[0], pkts[1]);
  EXPECT_EQ(delay_ns[0], delay_ns[1]);
}

}  // namespace poll_limits_test
}  // namespace batchplane::sim
