// SPDX-License-Identifier: BSD-3-Clause
// scheduler_test.cc - a packet scheduler in a simulated pipeline: shares, bounds, drops, and no
// lost packet.
#include "sim/scheduler.h"

#include <gtest/gtest.h>

#include "sim/sim_test_util.h"
#include "sim/simulation.h"

namespace batchplane::sim {
namespace scheduler_test {

constexpr uint64_t kRateBps = 1'000'000'000;
constexpr double kPktNs = 60 * 8;  // on the link, without the checksum
constexpr uint64_t kSecond = 1'000'000'000;

SchedulerSpec link_of(const std::string& discipline, std::vector<uint32_t> weights) {
  SchedulerSpec spec{.discipline = discipline, .rate_bps = kRateBps, .capacity = {8, 4096}};
  for (const uint32_t weight : weights) {
    const auto number = static_cast<uint32_t>(spec.flows.size());
    spec.flows.push_back({number, {.weight = weight, .lmax_bytes = 64, .limit_pkts = 100}});
  }
  return spec;
}

// in -> split -> a | b -> link -> out: packets through a are flow 1 of the link, through b flow 2.
SpecMaker two_into_one(SchedulerSpec link, double share_of_a, double rate_pps) {
  SpecMaker maker;
  maker.module("split", "l2_table", 5, 1).module("a", "cost", 5, 1).module("b", "cost", 5, 1);
  maker.module("link", "egress", 5, 1).module("out", "sink", 1, 1);
  maker.edge("in", "split").edge("split", "a", "0").edge("split", "b", "1");
  maker.edge("a", "link").edge("b", "link").edge("link", "out");
  maker.flow("a", {"in", "split", "a", "link", "out"}, {{"split", "0"}, {"link", "1"}}, 0,
             share_of_a);
  maker.flow("b", {"in", "split", "b", "link", "out"}, {{"split", "1"}, {"link", "2"}}, 0,
             1 - share_of_a);
  maker.source().rate_pps = rate_pps;
  maker.source().order = exec::Order::kRandom;
  maker.spec().schedulers["link"] = std::move(link);
  return maker;
}

TEST(SimulatedScheduler, SharesALinkByWeightAndLosesNothingUnseen) {
  // Each flow alone would fill the link.
  SpecMaker maker = two_into_one(link_of("wf2q_plus", {1, 8, 1}), 0.5, 4e6);
  Simulation simulation(maker.spec());
  simulation.run_until(kSecond / 100);
  (void)simulation.period();
  simulation.run_until(kSecond / 10);
  const exec::PeriodSnapshot period = simulation.period();
  const auto a = static_cast<double>(period.flows[0].pkts);
  const auto b = static_cast<double>(period.flows[1].pkts);
  EXPECT_NEAR(a / b, 8, 0.05);
  EXPECT_NEAR((a + b) * kPktNs / static_cast<double>(period.period_ns), 1, 0.01);
  const exec::Snapshot now = simulation.snapshot(false);
  EXPECT_TRUE(now.balance.is_exact());
  EXPECT_GT(now.modules[simulation.graph().at("link")].drops[kEgressFull], 1000U);
  simulation.drain();
  const exec::Snapshot end = simulation.snapshot(false);
  EXPECT_TRUE(end.balance.is_exact());
  EXPECT_EQ(end.balance.held_pkts, 0U);
}

TEST(SimulatedScheduler, WaitsOfAFlowWithinItsShareStayWithinTheBoundWhateverOthersSend) {
  for (const char* discipline : {"wf2q_plus", "qfq", "qfq_plus", "drr"}) {
    // a has 4 of 6 shares and sends 0.32 of the link; b sends twice the link's rate.
    SpecMaker maker = two_into_one(link_of(discipline, {1, 4, 1}), 0.14, 4.5e6);
    maker.source().order = exec::Order::kRoundRobin;
    Simulation simulation(maker.spec());
    simulation.run_until(kSecond / 20);
    const exec::PeriodSnapshot period = simulation.period();
    const exec::EgressPromise& a = period.flows[0].egress;
    const exec::EgressPromise& b = period.flows[1].egress;
    ASSERT_TRUE(a.is_on_way && b.is_on_way);
    EXPECT_EQ(a.flow, 1U);
    EXPECT_FALSE(a.is_beyond_share);
    EXPECT_TRUE(b.is_beyond_share);
    EXPECT_NEAR(static_cast<double>(a.share_bps), kRateBps * 4.0 / 6, 1);
    // The graph adds a poll and a run.
    EXPECT_LE(period.flows[0].delay_max_ns, a.bound_ns + 2 * period.tasks[0].run_max_ns)
        << discipline;
    EXPECT_GT(period.flows[1].delay_max_ns, a.bound_ns) << discipline;
  }
}

// A further link behind the first, twice as fast: bounds add up, and the smaller share is told.
TEST(SimulatedScheduler, BoundsOfLinksInARowAddUp) {
  SpecMaker maker;
  maker.module("first", "egress", 5, 1)
      .module("second", "egress", 5, 1)
      .module("out", "sink", 1, 1);
  maker.edge("in", "first").edge("first", "second").edge("second", "out");
  maker.flow("all", {"in", "first", "second", "out"}, {{"first", "1"}, {"second", "1"}}, 0, 1);
  maker.source().rate_pps = 1e4;
  SchedulerSpec fast = link_of("wf2q_plus", {1, 1});
  fast.rate_bps *= 2;
  maker.spec().schedulers["first"] = fast;
  maker.spec().schedulers["second"] = link_of("wf2q_plus", {1, 1});
  Simulation simulation(maker.spec());
  simulation.run_until(kSecond / 100);
  const exec::PeriodSnapshot period = simulation.period();
  const exec::EgressPromise& all = period.flows[0].egress;
  EXPECT_NEAR(static_cast<double>(all.share_bps), kRateBps / 2.0, 1);
  // L / phi and two longest packets of each, and two rounds of each.
  ASSERT_EQ(period.tasks.size(), 3U);
  const double rounds_ns =
      2.0 * static_cast<double>(period.tasks[1].run_p99_ns + period.tasks[2].run_p99_ns);
  constexpr double kLongestNs = 64 * 8;  // at 1 Gbit/s
  EXPECT_NEAR(static_cast<double>(all.bound_ns), 4 * kLongestNs * 1.5 + rounds_ns, 5);
}

TEST(SimulatedScheduler, SaysSoIfThereIsNoBound) {
  SpecMaker maker = two_into_one(link_of("prio", {1, 1, 2}), 0.5, 1e5);
  Simulation simulation(maker.spec());
  simulation.run_until(kSecond / 100);
  const exec::PeriodSnapshot period = simulation.period();
  EXPECT_EQ(period.flows[0].egress.bound_ns, exec::EgressPromise::kNone);
  EXPECT_LT(period.flows[1].egress.bound_ns, exec::EgressPromise::kNone);
}

SchedulerSpec tree_of(uint64_t ceil_bps) {
  SchedulerSpec spec{.discipline = "tree", .rate_bps = kRateBps, .capacity = {3, 4096}};
  spec.tree = {.leaves = 3, .inner_nodes = 2, .shaped_leaves = 1, .pkts = 4096, .lmax_bytes = 64};
  spec.nodes = {{4, 3, {}}, {0, 3, {}}, {1, 4, {.ceil_bps = ceil_bps, .burst_bytes = 128}}};
  spec.nodes.push_back({2, 4, {}});
  return spec;
}

TEST(SimulatedScheduler, KeepsCeilingsOfATreeAndSkipsNothingThatMatters) {
  uint64_t pkts[2] = {};
  for (const bool skips : {false, true}) {
    SpecMaker maker = two_into_one(tree_of(10'000'000), 0.9, 1e5);
    Simulation simulation(maker.spec());
    simulation.set_idle_skipping(skips);
    simulation.run_until(kSecond / 2);
    const exec::Snapshot now = simulation.snapshot(false);
    pkts[skips ? 1 : 0] = now.flows[0].total.pkts;
    // 10 Mbit/s are 20,833 packets a second.
    EXPECT_NEAR(static_cast<double>(now.flows[0].total.pkts), 20'833.0 / 2, 4);
  }
  EXPECT_EQ(pkts[0], pkts[1]);
}

TEST(SimulatedScheduler, KnowsBoundsOfATree) {
  SchedulerSpec link = tree_of(0);
  link.nodes[2].params = {.min_rate_bps = kRateBps / 2};
  // a sends 0.32 of the link; b, which has no minimum, twice the link's rate.
  SpecMaker maker = two_into_one(link, 0.14, 4.5e6);
  maker.source().order = exec::Order::kRoundRobin;
  Simulation simulation(maker.spec());
  simulation.run_until(kSecond / 20);
  const exec::PeriodSnapshot period = simulation.period();
  const exec::EgressPromise& a = period.flows[0].egress;
  EXPECT_NEAR(static_cast<double>(a.share_bps), kRateBps / 2.0, 1);
  ASSERT_LT(a.bound_ns, exec::EgressPromise::kNone);
  EXPECT_LE(period.flows[0].delay_max_ns, a.bound_ns + 2 * period.tasks[0].run_max_ns);
  EXPECT_EQ(period.flows[1].egress.bound_ns, exec::EgressPromise::kNone);
  EXPECT_GT(period.flows[1].delay_max_ns, a.bound_ns);
}

TEST(SimulatedScheduler, DelaysByTheCalendar) {
  SchedulerSpec link = link_of("calendar", {1, 1, 1});
  link.rate_bps = 0;
  link.flows[1].second.delay_us = 300;
  SpecMaker maker = two_into_one(link, 0.5, 1e5);
  Simulation simulation(maker.spec());
  simulation.run_until(kSecond / 20);
  const exec::PeriodSnapshot period = simulation.period();
  EXPECT_NEAR(static_cast<double>(period.flows[0].p50_ns), 300'000, 10'000);
  EXPECT_LT(period.flows[1].delay_max_ns, 10'000U);
}

TEST(SimulatedScheduler, RefusesWhatItsDisciplineRefuses) {
  SchedulerSpec link = link_of("qfq", {1, 0});
  EXPECT_THROW((void)make_scheduler(link), ConfigError);
  link.discipline = "nobody";
  EXPECT_THROW((void)make_scheduler(link), ConfigError);
}

TEST(SimulatedScheduler, EarlyDropAndPaceRefuseWhatTheEngineRefuses) {
  const auto refusal = [](const std::string& kind, const Dict& params) -> std::string {
    SpecMaker maker;
    maker.module("first", kind, 5, 1).module("link", "egress", 5, 1).module("out", "sink", 1, 1);
    maker.spec().pipeline.modules[1].params = params;
    maker.chain({"in", "first", "link", "out"});
    maker.flow("all", {"in", "first", "link", "out"}, {{"first", "1"}, {"link", "1"}});
    maker.spec().schedulers["link"] = link_of("calendar", {1, 1});
    try {
      Simulation simulation(maker.spec());
    } catch (const ConfigError& error) {
      return error.line();
    }
    return "none";
  };
  EXPECT_EQ(refusal("early_drop", {{"scheduler", "out"}}),
            "modules.first.scheduler: there is no scheduler 'out' (name a module of kind egress)");
  EXPECT_EQ(refusal("early_drop", {{"scheduler", "link"}}), "none");
  EXPECT_EQ(refusal("pace", {{"rate_bps", 1000}}),
            "modules.first.rate_bps: the rate is too low (0 for none, or at least 16000)");
  EXPECT_EQ(refusal("pace", {{"delay_us", 3'000'000}}),
            "modules.first: delay_us and jitter_us are more than horizon_us (raise horizon_us: "
            "packets that leave later than that are dropped)");
  EXPECT_EQ(refusal("pace", {}), "none");
}

}  // namespace scheduler_test
}  // namespace batchplane::sim
