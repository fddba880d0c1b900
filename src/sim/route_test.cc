// SPDX-License-Identifier: BSD-3-Clause
// route_test.cc - the gates that packets take, the time of each part of their path, and
// specifications refused before anything runs.
#include <gtest/gtest.h>

#include <functional>

#include "sim/sim_test_util.h"
#include "sim/simulation.h"

namespace batchplane::sim {
namespace route_test {

// A refusal's place, message and fix, so that a test can look for words of each.
ConfigError refusal(const Spec& spec) {
  try {
    const Simulation sim(spec);
  } catch (const ConfigError& error) {
    EXPECT_NE(error.where(), "") << error.what();
    EXPECT_NE(error.fix(), "") << error.what();
    return error;
  }
  ADD_FAILURE() << "nothing was refused";
  return ConfigError("");
}

void expect_refused(const Spec& spec, const std::string& where, const std::string& words,
                    const std::string& fix) {
  const ConfigError error = refusal(spec);
  EXPECT_NE(error.where().find(where), std::string::npos) << error.line();
  EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.line();
  EXPECT_NE(error.fix().find(fix), std::string::npos) << error.line();
}

TEST(Routes, FlowsLeaveWhereTheirGatesLead) {
  SpecMaker maker = make_tree(3, 100, 1);
  maker.source().flows[0].weight = 2;
  maker.source().limit_pkts = 4000;
  maker.source().rate_pps = 1e6;
  Simulation sim(maker.spec());
  sim.run_until(10'000'000);
  const exec::Snapshot now = sim.snapshot(false);
  EXPECT_EQ(now.flows[0].total.pkts, 2000U);
  EXPECT_EQ(now.flows[1].total.pkts, 1000U);
  EXPECT_EQ(now.flows[2].total.pkts, 1000U);
  EXPECT_EQ(now.flows[3].total.pkts, 0U);  // other
  EXPECT_EQ(now.modules[sim.graph().at("out_1")].pkts, 1000U);
}

TEST(Routes, AFlowMayEndAnywhereByAReason) {
  SpecMaker maker = make_tree(3, 100, 1);
  maker.spec().routes[0][0] = {{"split", "0"}, {"leaf_0", "drop"}};
  maker.spec().routes[0][1] = {{"split", "drop"}};
  maker.source().limit_pkts = 3000;
  maker.source().rate_pps = 1e6;
  Simulation sim(maker.spec());
  sim.run_until(10'000'000);
  const exec::Snapshot now = sim.snapshot(false);
  EXPECT_EQ(now.modules[sim.graph().at("leaf_0")].drops[kRouteEnds], 1000U);
  EXPECT_EQ(now.modules[sim.graph().at("split")].drops[kRouteEnds], 1000U);
  EXPECT_EQ(now.modules[sim.graph().at("out_0")].pkts, 0U);
  EXPECT_EQ(now.balance.dropped_pkts, 2000U);
  EXPECT_EQ(now.balance.sent_pkts, 1000U);
}

TEST(Routes, DropsGoOnByTheDropGate) {
  SpecMaker maker;
  maker.module("check", "ipv4_check", 10, 1).module("bad", "sink", 1, 0);
  maker.module("good", "sink", 1, 0).edge("in", "check").edge("check", "good");
  maker.edge("check", "bad", "drop");
  maker.flow("fine", {"in", "check", "good"}, {});
  maker.flow("broken", {"in", "check:drop", "bad"}, {{"check", "drop"}});
  maker.source().limit_pkts = 200;
  Simulation sim(maker.spec());
  sim.run_until(10'000'000);
  const exec::Snapshot now = sim.snapshot(false);
  EXPECT_EQ(now.flows[0].total.pkts, 100U);
  EXPECT_EQ(now.flows[1].total.pkts, 100U);
  EXPECT_EQ(now.modules[1].handed_on[kRouteEnds], 100U);
  EXPECT_EQ(now.balance.dropped_pkts, 0U);
}

// A packet's delay consists of ring, fill, service and turnaround.
TEST(Recorder, TheWayOfAPacketAddsUp) {
  SpecMaker maker = make_tree(4, 600, 25, 8, 40);
  maker.source().arrivals = exec::ArrivalKind::kPoisson;
  maker.source().rate_pps = 3e6;
  maker.spec().loop.poll_per_batch_ns = 30;
  maker.spec().loop.firing_ns = 10;
  Simulation sim(maker.spec());
  sim.recorder().limit(2000, 0);
  sim.update_recording();
  sim.run_until(5'000'000);
  const Recorder& recorder = sim.recorder();
  std::vector<std::vector<Hop>> hops(recorder.packets.size());
  for (const Hop& hop : recorder.hops) hops[hop.packet].push_back(hop);
  uint64_t filled_ns = 0;
  uint64_t waited_ns = 0;
  for (size_t p = 0; p < recorder.packets.size(); ++p) {
    const PacketRecord& pkt = recorder.packets[p];
    ASSERT_NE(pkt.exit_ns, 0U);
    ASSERT_EQ(hops[p].size(), 3U);  // splitter, leaf, end
    uint64_t at_ns = pkt.poll_ns;
    waited_ns += pkt.poll_ns - pkt.entry_ns;
    for (const Hop& hop : hops[p]) {
      EXPECT_GE(hop.arrive_ns, at_ns);  // the difference is turnaround
      EXPECT_GE(hop.start_ns, hop.arrive_ns);
      filled_ns += hop.start_ns - hop.arrive_ns;
      const double service_ns = sim.graph().modules[hop.module]->cost.ns(hop.batch_pkts);
      EXPECT_NEAR(static_cast<double>(hop.end_ns - hop.start_ns), service_ns, 1);
      at_ns = hop.end_ns;
    }
    EXPECT_EQ(pkt.exit_ns, at_ns);
  }
  EXPECT_GT(filled_ns, 0U);
  EXPECT_GT(waited_ns, 0U);
}

// Leaves that run one after the other behind one splitter, and releases one after the other from
// one buffer: the later ones' cost is no delay for the earlier ones' packets.
TEST(Recorder, MeteredDelaysAreWithinAMicrosecondAboveTheTrueOnes) {
  for (const uint32_t trigger : {0U, 2U}) {
    SpecMaker maker = make_tree(4, 4000, 10, trigger);
    maker.source().is_saturating = true;
    maker.source().order = exec::Order::kRandom;
    maker.source().limit_pkts = 5000;
    Simulation sim(maker.spec());
    sim.recorder().limit(5000, 0);
    sim.update_recording();
    sim.run_until(100'000'000);
    uint64_t true_ns = 0;
    for (const PacketRecord& pkt : sim.recorder().packets) true_ns += pkt.exit_ns - pkt.entry_ns;
    uint64_t metered_ns = 0;
    uint64_t pkts = 0;
    for (const exec::FlowPeriod& flow : sim.period().flows) {
      metered_ns += flow.delay_sum_ns;
      pkts += flow.pkts;
    }
    ASSERT_EQ(pkts, 5000U);
    EXPECT_GE(metered_ns, true_ns);
    EXPECT_LE(metered_ns, true_ns + 1000 * pkts);
  }
}

TEST(BadInput, CostsThatAreMissingAreNamed) {
  Spec spec = make_tree(2, 1, 1).spec();
  spec.costs.erase("leaf_1");
  expect_refused(spec, "simulation.costs", "leaf_1 (cost)", "batchplane profile");
}

TEST(BadInput, RoutesThatLeadNowhere) {
  Spec spec = make_tree(2, 1, 1).spec();
  spec.routes[0][1].clear();
  expect_refused(spec, "simulation.routes", "'flow_1' comes to 'split'", "gate");
  spec.routes[0][1] = {{"split", "2"}};
  expect_refused(spec, "simulation.routes.load[1]", "no gate '2'", "");
  spec.routes[0][1] = {{"splti", "1"}};
  expect_refused(spec, "modules", "no module 'splti'", "'split'");
}

TEST(BadInput, CyclesAndCirclesWithoutAWayOut) {
  Spec cycle = make_tree(2, 1, 1).spec();
  cycle.pipeline.edges.push_back({"leaf_0", "1", "split"});
  expect_refused(cycle, "edges", "cycle", "queue");

  SpecMaker maker;
  maker.module("a", "l2_table", 1, 1).module("q", "queue", 1, 1).module("out", "sink", 1, 1);
  maker.chain({"in", "a"}).edge("a", "out", "0").edge("a", "q", "1").edge("q", "a");
  maker.flow("f", {"in", "a", "out"}, {{"a", "1"}});
  expect_refused(maker.spec(), "simulation.routes", "can never leave", "way out");
}

TEST(BadInput, NamesThatNobodyDeclared) {
  Spec spec = make_tree(2, 1, 1).spec();
  spec.sources[0].port = "q";
  expect_refused(spec, "generators.load", "no input reads port 'q'", "port_in");
  spec = make_tree(2, 1, 1).spec();
  spec.pipeline.modules[0].worker = "w7";
  expect_refused(spec, "modules.in", "no worker 'w7'", "workers");
  spec = make_tree(2, 1, 1).spec();
  spec.pipeline.flows[1].path = {"leaf_0", "leaf_1"};
  expect_refused(spec, "flows[1]", "no way leads from 'leaf_0' to 'leaf_1'", "every module");
  spec.pipeline.flows[1].path = spec.pipeline.flows[0].path;
  expect_refused(spec, "flows[1]", "same path", "join them");
}

TEST(BadInput, EditsAreMadeWholeOrNotAtAll) {
  Simulation sim(make_tree(2, 1, 1).spec());
  const uint32_t leaf = sim.graph().at("leaf_0");
  exec::Decision decision;
  decision.changes = {{leaf, 4, exec::kKeepAge, ""}, {99, 4, exec::kKeepAge, ""}};
  EXPECT_THROW(sim.apply(decision), ConfigError);
  decision.changes[1] = {leaf, 33, exec::kKeepAge, ""};
  EXPECT_THROW(sim.apply(decision), ConfigError);
  decision.changes[1] = {0, 3, exec::kKeepAge, ""};  // an input
  EXPECT_THROW(sim.apply(decision), ConfigError);
  EXPECT_EQ(sim.trigger_pkts(leaf), 0U);
  EXPECT_THROW(sim.set_slo("flow_9", 1), ConfigError);
  EXPECT_THROW(sim.set_slo("other", 1), ConfigError);
  EXPECT_THROW(sim.set_cost("leaf_9", {}), ConfigError);
  EXPECT_THROW((void)sim.source("lod"), ConfigError);
  EXPECT_THROW((void)sim.show("weather"), ConfigError);
}

TEST(Edits, CostSloAndRateActWhileItRuns) {
  SpecMaker maker;
  maker.module("out", "sink", 100, 0).chain({"in", "out"}).flow("f", {"in", "out"}, {}, 500);
  maker.source().rate_pps = 100'000;
  Simulation sim(maker.spec());
  sim.run_until(10'000'000);
  EXPECT_EQ(sim.period().flows[0].late_pkts, 0U);
  sim.set_cost("out", {900, 0});
  sim.run_until(20'000'000);
  const exec::FlowPeriod late = sim.period().flows[0];
  EXPECT_EQ(late.late_pkts, late.pkts);
  sim.set_slo("f", 2'000);
  sim.source("load").set_rate(200'000, sim.now_ns());
  sim.run_until(30'000'000);
  const exec::FlowPeriod met = sim.period().flows[0];
  EXPECT_EQ(met.late_pkts, 0U);
  EXPECT_EQ(met.slo_ns, 2'000U);
  EXPECT_NEAR(static_cast<double>(met.pkts), 2000, 2);
}

}  // namespace route_test
}  // namespace batchplane::sim
