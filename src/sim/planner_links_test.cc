// SPDX-License-Identifier: BSD-3-Clause
// planner_links_test.cc - plans behind packet schedulers: what the link carries, ceilings of a tree,
// and the bound in the delay budget; against simulations in which the link is busy.
#include <gtest/gtest.h>

#include <algorithm>

#include "sim/planner.h"
#include "sim/sim_test_util.h"
#include "sim/simulation.h"

namespace batchplane::sim {
namespace planner_links_test {

constexpr uint32_t kFrameBytes = 1004;  // 1000 without the checksum
constexpr uint64_t kSloNs = 2'000'000;

SchedulerSpec fair_link(uint64_t rate_bps) {
  SchedulerSpec link{.discipline = "wf2q_plus", .rate_bps = rate_bps, .capacity = {2, 4096}};
  for (uint32_t f = 0; f < 2; ++f) {
    link.flows.push_back({f, {.weight = 1, .lmax_bytes = 1000, .limit_pkts = 200}});
  }
  return link;
}

// in -> split -> 2 works -> link -> out, 2 flows alike.
Spec through_link(SchedulerSpec link) {
  SpecMaker maker;
  maker.module("split", "l2_table", 20, 2).edge("in", "split");
  maker.module("link", "egress", 0, 0).module("out", "sink", 0, 0);
  for (const std::string n : {"0", "1"}) {
    maker.module("work_" + n, "cost", 4000, 100).edge("split", "work_" + n, n);
    maker.edge("work_" + n, "link");
    maker.flow("flow_" + n, {"in", "split", "work_" + n, "link", "out"},
               {{"split", n}, {"link", n}}, kSloNs);
    maker.source().flows.back().size_bytes = kFrameBytes;
  }
  maker.edge("link", "out");
  maker.source().is_saturating = true;
  maker.spec().pipeline.engine.is_idle_hold = true;
  maker.spec().schedulers["link"] = std::move(link);
  return maker.spec();
}

struct Sent {
  double rate_pps = 0;
  double first_p95_ns = 0;
  uint64_t late_pkts = 0;
};

// `null` triggers, offered by a schedule, after 20 ms.
Sent simulated(Spec spec, double offered_pps) {
  spec.sources.front().is_saturating = false;
  spec.sources.front().rate_pps = offered_pps;
  spec.sources.front().drops_when_full = true;
  Simulation simulation(spec);
  simulation.run_until(20'000'000);
  (void)simulation.period();
  simulation.run_until(220'000'000);
  const exec::PeriodSnapshot period = simulation.period();
  Sent sent;
  for (const exec::FlowPeriod& flow : period.flows) {
    sent.rate_pps += static_cast<double>(flow.pkts) * 1e9 / static_cast<double>(period.period_ns);
    sent.late_pkts += flow.late_pkts;
  }
  sent.first_p95_ns = static_cast<double>(period.flows[0].delay_ns);
  return sent;
}

const Value& only_link(const Value& plan) { return plan["links"].as_list().at(0); }

TEST(PlannedLinks, TheLeastOfCoreAndLinkIsPlanned) {
  const Value free = plan(through_link(fair_link(100'000'000'000)), {});
  EXPECT_EQ(free["limited_by"].as_string(), "core");
  EXPECT_EQ(free["rate_pps"].as_double(), free["core_pps"].as_double());
  EXPECT_LT(only_link(free)["load"].as_double(), 0.5);

  const Value slow = plan(through_link(fair_link(800'000'000)), {});
  EXPECT_EQ(slow["limited_by"].as_string(), "link");
  EXPECT_NEAR(slow["rate_pps"].as_double(), 100'000, 100);
  EXPECT_NEAR(only_link(slow)["load"].as_double(), 1, 0.002);
  EXPECT_GT(slow["core_pps"].as_double(), 1e6);
  const double load = slow["workers"].as_list().at(0)["load"].as_double();
  EXPECT_LT(load, 0.5);
}

TEST(PlannedLinks, CarryWhatASimulationSends) {
  const Spec spec = through_link(fair_link(800'000'000));
  const double planned_pps = plan(spec, {})["rate_pps"].as_double();
  for (const double times : {1.02, 1.5, 4.0}) {
    EXPECT_NEAR(simulated(spec, times * planned_pps).rate_pps, planned_pps, 0.01 * planned_pps);
  }
  const double below_pps = 0.97 * planned_pps;
  EXPECT_NEAR(simulated(spec, below_pps).rate_pps, below_pps, 0.005 * below_pps);
}

TEST(PlannedLinks, FramingCounts) {
  SchedulerSpec link = fair_link(800'000'000);
  link.framing = {.overhead_bytes = 24, .min_bytes = 84, .cells = egress::Cells::kAtm};
  const Spec spec = through_link(link);
  // 1024 bytes are 22 cells.
  EXPECT_NEAR(plan(spec, {})["rate_pps"].as_double(), 800e6 / (22 * 53 * 8), 100);
}

TEST(PlannedLinks, TheBoundIsPartOfDelaysAndOfBudgets) {
  const Spec fast = through_link(fair_link(100'000'000'000));
  const Spec slow = through_link(fair_link(800'000'000));
  const Value made = plan(slow, {.controller = "null"});
  const Value& flow = made["flows"].as_list().at(0);
  // A share of a half: L / phi + 2 Lmax are 4 packets of 10 us.
  EXPECT_NEAR(flow["link_ns"].as_double(), 40'000, 1);
  EXPECT_EQ(flow["link"].as_string(), "link");
  const Sent sent = simulated(slow, 95'000);
  const double planned_ns = flow["measured_ns"].as_double();
  EXPECT_GE(planned_ns, sent.first_p95_ns);
  EXPECT_LE(planned_ns, sent.first_p95_ns + 41'000);

  // The bound alone is longer than the SLO; half a microsecond more is not enough for the modules.
  PlanRequest tight;
  for (const char* name : {"flow_0", "flow_1"}) tight.slo_ns[name] = 40'500;
  const Value missed = plan(slow, tight);
  EXPECT_TRUE(missed["flows"].as_list().at(0)["is_broken"].as_bool());
  EXPECT_FALSE(plan(fast, tight)["flows"].as_list().at(0)["is_broken"].as_bool());
}

// Triggers are as large as fits beside the bound, and a simulation with them and the busy link keeps
// the SLO.
TEST(PlannedLinks, TriggersLeaveTheBoundItsTime) {
  PlanRequest request;
  for (const char* name : {"flow_0", "flow_1"}) request.slo_ns[name] = 200'000;
  Spec spec = through_link(fair_link(800'000'000));
  const Value made = plan(spec, request);
  uint64_t largest = 0;
  for (const Value& module : made["modules"].as_list()) {
    if (!module["is_controlled"].as_bool()) continue;
    const auto trigger = static_cast<uint32_t>(module["trigger_pkts"].as_int());
    largest = std::max<uint64_t>(largest, trigger);
    for (ModuleSpec& mine : spec.pipeline.modules) {
      if (mine.name != module["module"].as_string()) continue;
      mine.trigger_pkts = trigger;
      mine.age_limit_ns = static_cast<uint64_t>(module["age_limit_ns"].as_int());
    }
  }
  // 200 us less 40 are 8 packets of a flow at 50 kpps.
  EXPECT_GE(largest, 2U);
  EXPECT_LE(largest, 9U);
  for (FlowSpec& flow : spec.pipeline.flows) flow.delay_slo_ns = 200'000;
  EXPECT_EQ(simulated(spec, 0.98 * made["rate_pps"].as_double()).late_pkts, 0U);
}

SchedulerSpec tree_link() {
  SchedulerSpec link{.discipline = "tree", .rate_bps = 800'000'000, .capacity = {2, 4096}};
  link.tree = {.leaves = 2, .inner_nodes = 2, .shaped_leaves = 1, .pkts = 4096};
  const uint32_t root = link.tree.root();
  link.nodes.push_back({.number = root + 1, .parent = root, .params = {.ceil_bps = 80'000'000}});
  link.nodes.push_back({.number = 0, .parent = root + 1, .params = {}});
  link.nodes.push_back({.number = 1, .parent = root, .params = {}});
  return link;
}

TEST(PlannedLinks, ACeilingOfATreeLimits) {
  const Spec spec = through_link(tree_link());
  const Value made = plan(spec, {});
  // 10 kpps of flow 0 fill its node, and flow 1 sends as much.
  EXPECT_NEAR(made["rate_pps"].as_double(), 20'000, 20);
  EXPECT_EQ(only_link(made)["limited_by_node"].as_int(), 3);
  EXPECT_EQ(only_link(made)["limit_bps"].as_int(), 80'000'000);
  const Value& flow = made["flows"].as_list().at(0);
  EXPECT_TRUE(flow["link_ns"].is_null());
  EXPECT_FALSE(flow["is_broken"].as_bool());
  EXPECT_NEAR(simulated(spec, 19'800).rate_pps, 19'800, 100);
  // Beyond that only the other flow gets more.
  EXPECT_NEAR(simulated(spec, 40'000).rate_pps, 10'000 + 20'000, 300);
}

TEST(PlannedLinks, AMinimumInATreeHasABound) {
  SchedulerSpec link = tree_link();
  link.nodes.back().params.min_rate_bps = 400'000'000;
  const Value made = plan(through_link(link), {});
  EXPECT_TRUE(made["flows"].as_list().at(0)["link_ns"].is_null()) << "it has no minimum";
  EXPECT_GT(made["flows"].as_list().at(1)["link_ns"].as_double(), 10'000);
}

// A flow that has a link for itself is not beyond its share, though the planned rate is rounded.
TEST(PlannedLinks, TheWholeLinkIsNoMoreThanItsShare) {
  SchedulerSpec link = fair_link(800'000'000);
  Spec spec = through_link(link);
  spec.sources.front().flows.back().weight = 0;
  spec.schedulers["link"].flows.erase(spec.schedulers["link"].flows.begin() + 1);
  spec.schedulers["link"].flows.front().first = 0;
  const Value made = plan(spec, {});
  EXPECT_FALSE(made["flows"].as_list().at(0)["is_beyond_share"].as_bool());
}

TEST(PlannedLinks, MoreThanAShareIsSaid) {
  SchedulerSpec link = fair_link(800'000'000);
  link.flows[1].second.weight = 9;
  const Value made = plan(through_link(link), {});
  const List& flows = made["flows"].as_list();
  EXPECT_TRUE(flows.at(0)["is_beyond_share"].as_bool());
  EXPECT_FALSE(flows.at(1)["is_beyond_share"].as_bool());
}

// Without a rate there is no limit and no bound.
TEST(PlannedLinks, ALinkWithoutARateLimitsNothing) {
  const Value made = plan(through_link(fair_link(0)), {});
  EXPECT_EQ(made["limited_by"].as_string(), "core");
  EXPECT_TRUE(only_link(made)["most_pps"].is_null());
  EXPECT_TRUE(made["flows"].as_list().at(0)["link_ns"].is_null());
}

}  // namespace planner_links_test
}  // namespace batchplane::sim
