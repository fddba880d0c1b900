// SPDX-License-Identifier: BSD-3-Clause
// spec_test.cc - a simulation as plain values: valid ones are read, invalid ones refused with their
// place and fix.
#include "sim/spec.h"

#include <gtest/gtest.h>

#include "sim/simulation.h"

namespace batchplane::sim {
namespace spec_test {

Dict costs() {
  return Dict{{"work", Dict{{"cost_per_batch_ns", 40}, {"cost_per_pkt_ns", 1.5}}},
              {"out", Dict{{"cost_per_batch_ns", 1}, {"cost_per_pkt_ns", 1}}}};
}

Dict simulation() {
  return Dict{{"costs", costs()},
              {"routes", Dict{{"load", List{Dict{{"name", "f"}, {"gates", Dict{}}}}}}}};
}

Value pipeline(Dict simulation_part, Dict generator = {{"rate_pps", 1000}}) {
  return Dict{
      {"version", 1},
      {"name", "small"},
      {"engine", Dict{{"batch_pkts", 4}}},
      {"ports", Dict{{"p", Dict{{"kind", "ring"}, {"params", Dict{{"size_pkts", 128}}}}}}},
      {"modules", Dict{{"in", Dict{{"kind", "port_in"}, {"params", Dict{{"port", "p"}}}}},
                       {"work", Dict{{"kind", "cost"}}},
                       {"out", Dict{{"kind", "sink"}}}}},
      {"edges", List{Dict{{"from", "in"}, {"gate", 0}, {"to", "work"}},
                     Dict{{"from", "work"}, {"gate", 0}, {"to", "out"}}}},
      {"generators", List{Dict{{"name", "load"}, {"port", "p"}, {"params", std::move(generator)}}}},
      {"simulation", std::move(simulation_part)}};
}

void expect_refused(const Value& value, const std::string& where, const std::string& words,
                    const std::string& fix) {
  try {
    (void)parse_spec(value);
    ADD_FAILURE() << "accepted, without a word of " << words;
  } catch (const ConfigError& error) {
    EXPECT_NE(error.where().find(where), std::string::npos) << error.line();
    EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.line();
    EXPECT_NE(error.fix().find(fix), std::string::npos) << error.line();
    EXPECT_NE(error.fix(), "") << error.line();
  }
}

TEST(Spec, WhatIsGivenIsRead) {
  Dict part = simulation();
  part["loop"] = Dict{{"poll_per_batch_ns", 20},
                      {"egress_per_pkt_ns", 0.5},
                      {"hop_take_per_pkt_ns", 3},
                      {"generator_look_ns", 7}};
  part["overflow"] = "drop";
  part["noise"] = Dict{{"sigma", 0.1}};
  part["seed"] = 9;
  part["move_ns"] = 40'000;
  part["stalls"] = Dict{{"rate_per_s", 25}, {"lengths_ns", List{100, 200}}};
  const Spec spec =
      parse_spec(pipeline(part, {{"rate_pps", 5e5}, {"arrivals", "poisson"}, {"order", "random"}}));
  EXPECT_EQ(spec.costs.at("work").line().cost_per_pkt_ns, 1.5);
  EXPECT_EQ(spec.loop.poll_per_batch_ns, 20);
  EXPECT_EQ(spec.loop.egress_per_pkt_ns, 0.5);
  EXPECT_EQ(spec.loop.hop.take_per_pkt_ns, 3);
  EXPECT_EQ(spec.loop.empty_poll_ns, 50);
  ASSERT_EQ(spec.sources.size(), 1U);
  EXPECT_EQ(spec.sources[0].costs.look_ns, 7);
  EXPECT_EQ(spec.sources[0].arrivals, exec::ArrivalKind::kPoisson);
  EXPECT_EQ(spec.sources[0].order, exec::Order::kRandom);
  EXPECT_EQ(spec.sources[0].ring_pkts, 128U);
  EXPECT_TRUE(spec.sources[0].drops_when_full);
  EXPECT_EQ(spec.noise_sigma, 0.1);
  EXPECT_EQ(spec.seed, 9U);
  EXPECT_EQ(spec.move_ns, 40'000U);
  EXPECT_EQ(spec.stalls.lengths_ns, std::vector<uint64_t>({100, 200}));
  Simulation sim(spec);
  sim.run_until(10'000'000);
  EXPECT_GT(sim.snapshot(false).balance.sent_pkts, 4000U);
}

TEST(Spec, CostsThatMakeNoSense) {
  Dict part = simulation();
  Dict bad = costs();
  bad["work"] = Dict{{"cost_per_batch_ns", -1}, {"cost_per_pkt_ns", 1}};
  part["costs"] = bad;
  expect_refused(pipeline(part), "simulation.costs.work", "'cost_per_batch_ns' is -1", "0 to");
  bad["work"] = Dict{{"cost_per_pkt_ns", 1}};
  part["costs"] = bad;
  expect_refused(pipeline(part), "simulation.costs.work", "not whole", "table_ns");
  bad["work"] = Dict{{"cost_per_batch_ns", 0}, {"cost_per_pkt_ns", 1e12}};
  part["costs"] = bad;
  expect_refused(pipeline(part), "simulation.costs.work", "cost_per_pkt_ns", "0 to");
  bad["work"] = Dict{{"table_ns", List{1, 2, 3}}};
  part["costs"] = bad;
  expect_refused(pipeline(part), "simulation.costs.work.table_ns", "ends at batches of 3 of 4",
                 "measure");
  bad["work"] = Dict{{"table_ns", List{1, 2, -3, 4}}};
  part["costs"] = bad;
  expect_refused(pipeline(part), "simulation.costs.work.table_ns", "time 3 of the table is -3",
                 "0 to");
  bad = costs();
  bad["wrok"] = Dict{};
  part["costs"] = bad;
  expect_refused(pipeline(part), "simulation.costs.wrok", "no module 'wrok'", "'work'");
  part = simulation();
  part["loop"] = Dict{{"poll_per_bach_ns", 1}};
  expect_refused(pipeline(part), "simulation.loop", "unknown cost 'poll_per_bach_ns'",
                 "'poll_per_batch_ns'");
}

TEST(Spec, TrafficThatMakesNoSense) {
  expect_refused(pipeline(simulation(), {{"rate_pps", -5}}), "simulation.traffic.load", "rate_pps",
                 "0 to");
  expect_refused(pipeline(simulation(), {{"arrivals", "possion"}}), "simulation.traffic.load",
                 "'possion'", "poisson");
  expect_refused(pipeline(simulation(), {{"order", "any"}}), "simulation.traffic.load", "'any'",
                 "round_robin, random");
  Dict part = simulation();
  part["overflow"] = "explode";
  expect_refused(pipeline(part), "simulation.overflow", "'explode'", "wait, drop");
  part = simulation();
  part.erase("routes");
  expect_refused(pipeline(part), "simulation.routes", "no routes", "gates");
  part["routes"] = Dict{{"load", List{}}};
  expect_refused(pipeline(part), "simulation.routes.load", "no flows", "one at least");
  part = simulation();
  part["move_ns"] = -1;
  expect_refused(pipeline(part), "simulation", "'move_ns' is -1", "0 to");
  part = simulation();
  part["stalls"] = Dict{{"rate_per_s", 5}};
  expect_refused(pipeline(part), "simulation.stalls", "no lengths", "lengths_ns");
  part["stalls"] = Dict{{"rate_per_s", 5}, {"lengths_ns", List{-1}}};
  expect_refused(pipeline(part), "simulation.stalls.lengths_ns", "negative", "nanoseconds");
}

TEST(Spec, TracesThatMakeNoSense) {
  const auto with = [](List times, List flows, List sizes) {
    Dict part = simulation();
    part["traces"] =
        Dict{{"load", Dict{{"time_ns", times}, {"flow", flows}, {"size_bytes", std::move(sizes)}}}};
    return pipeline(part);
  };
  EXPECT_EQ(parse_spec(with({5, 5, 7}, {0, 0, 0}, {64, 64, 64})).sources[0].trace.time_ns.size(),
            3U);
  expect_refused(with({5, 4}, {0, 0}, {64, 64}), "traces.load", "packet 1", "sort");
  expect_refused(with({5, 6}, {0, 1}, {64, 64}), "traces.load", "flow 1 of 1", "from 0");
  expect_refused(with({5, 6}, {0}, {64, 64}), "traces.load", "differ in length", "one of each");
  expect_refused(with({5, 6}, {0, 0}, {64}), "traces.load", "differ in length", "one of each");
  expect_refused(with({-5, 6}, {0, 0}, {64, 64}), "traces.load", "before time 0", "0 or later");
  expect_refused(with({5, 6}, {0, -1}, {64, 64}), "traces.load", "flow -1 of 1", "from 0");
  expect_refused(with({5, 6}, {0, int64_t{1} << 32}, {64, 64}), "traces.load", "of 1", "from 0");
}

TEST(Spec, TracesBesideThePlainValuesAreCheckedAlike) {
  const auto parsed = [](TraceArrivals trace) {
    return parse_spec(pipeline(simulation()), {{"load", std::move(trace)}});
  };
  const Spec spec = parsed({.time_ns = {5, 5, 7}, .flow = {0, 0, 0}, .size_bytes = {64, 65, 66}});
  EXPECT_EQ(spec.sources[0].trace.size_bytes, (std::vector<uint32_t>{64, 65, 66}));
  EXPECT_THROW(parsed({.time_ns = {5, 4}, .flow = {0, 0}, .size_bytes = {64, 64}}), ConfigError);
  EXPECT_THROW(parsed({.time_ns = {5, 6}, .flow = {0, 1}, .size_bytes = {64, 64}}), ConfigError);
  EXPECT_THROW(parsed({.time_ns = {5, 6}, .flow = {0}, .size_bytes = {64, 64}}), ConfigError);
}

}  // namespace spec_test
}  // namespace batchplane::sim
