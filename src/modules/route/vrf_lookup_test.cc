// SPDX-License-Identifier: BSD-3-Clause
// vrf_lookup_test.cc - each packet's route comes from the table of its VRF, live edits included.
#include <gtest/gtest.h>

#include <random>

#include "module_harness.h"

namespace batchplane {
namespace vrf_lookup_test {

Dict route(const std::string& prefix, int gate) { return {{"prefix", prefix}, {"gate", gate}}; }
Dict vrf(int id, List routes) { return {{"vrf", id}, {"routes", std::move(routes)}}; }
Bytes to(const std::string& address) { return make_frame({.ip_dst = *net::parse_ipv4(address)}); }

Dict two_vrfs() {
  return {{"vrfs", List{vrf(1, {route("10.0.0.0/8", 1)}),
                        vrf(7, {route("10.0.0.0/8", 2), route("10.1.0.0/16", 3)})}}};
}

Outcome run(ModuleHarness& lookup, const std::vector<std::pair<uint16_t, Bytes>>& frames) {
  std::vector<Packet*> pkts;
  for (const auto& [id, bytes] : frames) {
    pkts.push_back(lookup.make_packet(bytes));
    pkts.back()->meta().vrf = id;
  }
  return lookup.run_packets(pkts);
}

std::string refusal(const std::function<void()>& act) {
  try {
    act();
  } catch (const ConfigError& error) {
    return error.line();
  }
  return "";
}

TEST(VrfLookup, TakesTheTableOfThePacketsVrf) {
  ModuleHarness lookup("vrf_lookup", two_vrfs());
  const Bytes dst = to("10.1.2.3");
  const Outcome outcome = run(lookup, {{1, dst},
                                       {1, dst},
                                       {7, dst},
                                       {1, dst},
                                       {7, to("10.9.9.9")},
                                       {0, dst},
                                       {8, dst},
                                       {7, to("11.0.0.1")},
                                       {65535, dst},
                                       {1, Bytes(33)}});
  EXPECT_EQ(outcome.gates(), (std::vector<uint32_t>{1, 1, 3, 1, 2}));
  EXPECT_EQ(outcome.dropped_for("unknown_vrf"), 3U);
  EXPECT_EQ(outcome.dropped_for("no_route"), 1U);
  EXPECT_EQ(outcome.dropped_for("too_short"), 1U);
  EXPECT_EQ(outcome.outputs[2].meta.next_hop, 3U);
  EXPECT_EQ(lookup.leaked_pkts(), 0U);
}

TEST(VrfLookup, LiveCommandsNameTheVrf) {
  ModuleHarness lookup("vrf_lookup", two_vrfs(), 4);
  lookup.command("add", Dict{{"vrf", 1}, {"prefix", "10.1.0.0/16"}, {"gate", 2}});
  const Bytes dst = to("10.1.2.3");
  EXPECT_EQ(run(lookup, {{1, dst}, {7, dst}}).gates(), (std::vector<uint32_t>{2, 3}));
  lookup.command("delete", Dict{{"vrf", 7}, {"prefix", "10.1.0.0/16"}});
  EXPECT_EQ(run(lookup, {{1, dst}, {7, dst}}).gates(), (std::vector<uint32_t>{2, 2}));
  EXPECT_EQ(lookup.command("list", Dict{{"vrf", 1}})["total"].as_int(), 2);
  EXPECT_NE(refusal([&] { lookup.command("add", route("10.2.0.0/16", 1)); }).find("vrf"),
            std::string::npos);
  EXPECT_NE(refusal([&] {
              lookup.command("list", Dict{{"vrf", 2}});
            }).find("VRF 2"),
            std::string::npos);
  EXPECT_NE(refusal([&] {
              lookup.command("add", Dict{{"vrf", 1}, {"prefix", "10.3.0.0/16"}, {"gate", 9}});
            }),
            "");
  EXPECT_EQ(lookup.module().show()["vrfs"].as_list().size(), 2U);
}

TEST(VrfLookup, SavedParametersMakeTheSameTables) {
  ModuleHarness lookup("vrf_lookup", two_vrfs(), 4);
  lookup.command("add", Dict{{"vrf", 1}, {"prefix", "10.1.0.0/16"}, {"gate", 3}});
  ModuleHarness again("vrf_lookup", lookup.module().saved_params(), 4);
  const Bytes dst = to("10.1.2.3");
  EXPECT_EQ(run(again, {{1, dst}, {7, dst}}).gates(), (std::vector<uint32_t>{3, 3}));
}

TEST(VrfLookup, TablesAreSharedByName) {
  Environment env;
  ModuleHarness plain("ipv4_lookup", {{"table", "blue"}, {"routes", List{route("10.0.0.0/8", 1)}}},
                      3, &env);
  ModuleHarness lookup("vrf_lookup", {{"vrfs", List{Dict{{"vrf", 4}, {"table", "blue"}}}}}, 3,
                       &env);
  EXPECT_EQ(run(lookup, {{4, to("10.0.0.1")}}).gates(), std::vector<uint32_t>{1});
  plain.command("add", route("10.0.0.0/16", 2));
  EXPECT_EQ(run(lookup, {{4, to("10.0.0.1")}}).gates(), std::vector<uint32_t>{2});
}

TEST(VrfLookup, LiveRoutesOutliveAnApplyThatChangesTheFile) {
  ModuleHarness old("vrf_lookup", two_vrfs(), 4);
  old.command("add", Dict{{"vrf", 7}, {"prefix", "10.1.2.0/24"}, {"gate", 1}});
  ModuleHarness next("vrf_lookup", {{"vrfs", List{vrf(7, {route("10.0.0.0/8", 3)})}}}, 4);
  next.module().inherit(old.module());
  EXPECT_EQ(run(next, {{7, to("10.1.2.3")}, {7, to("10.1.3.3")}}).gates(),
            (std::vector<uint32_t>{1, 3}));
}

TEST(VrfLookup, RefusesWhatIsWrong) {
  const auto refused = [](const Value& item) {
    return refusal([&] { ModuleHarness("vrf_lookup", {{"vrfs", List{item}}}); });
  };
  EXPECT_NE(refused(Dict{{"routes", List{}}}).find("vrf is missing"), std::string::npos);
  EXPECT_NE(refused(Dict{{"vrf", 65536}}), "");
  EXPECT_NE(refused(Dict{{"vrf", 1}, {"rutes", List{}}}).find("rutes"), std::string::npos);
  EXPECT_NE(refused(vrf(1, {route("10.0.0.1/8", 1)})), "");
  EXPECT_NE(refusal([] {
              ModuleHarness("vrf_lookup", {{"vrfs", List{vrf(1, {}), vrf(1, {})}}});
            }).find("twice"),
            std::string::npos);
}

TEST(VrfLookup, AgreesWithALookupForEachVrf) {
  std::mt19937 random(5);
  List vrfs;
  std::vector<std::map<uint32_t, uint32_t>> oracle(4);  // /16 -> gate
  for (int id = 0; id < 4; ++id) {
    List routes;
    for (uint32_t i = 0; i < 60; ++i) {
      const uint32_t net16 = (10U << 24) + (random() % 128 << 16);
      if (!oracle[static_cast<size_t>(id)].emplace(net16, random() % 8).second) continue;
      routes.push_back(route(net::format_prefix4({net16, 16}),
                             static_cast<int>(oracle[static_cast<size_t>(id)][net16])));
    }
    vrfs.push_back(vrf(id, routes));
  }
  ModuleHarness lookup("vrf_lookup", {{"vrfs", vrfs}}, 8);
  for (uint32_t run_pkts : {1U, 3U, 32U}) {
    std::vector<std::pair<uint16_t, Bytes>> frames;
    std::vector<uint32_t> expected;
    uint32_t n_lost = 0;
    for (uint32_t i = 0; i < 256; ++i) {
      const auto id = static_cast<uint16_t>(i / run_pkts % 5);
      const uint32_t dst = (10U << 24) + (random() % 128 << 16) + random() % 65536;
      frames.emplace_back(id, make_frame({.ip_dst = dst}));
      const bool is_there = id < 4 && oracle[id].contains(dst & 0xffff0000);
      if (is_there) expected.push_back(oracle[id][dst & 0xffff0000]);
      n_lost += is_there ? 0 : 1;
    }
    const Outcome outcome = run(lookup, frames);
    EXPECT_EQ(outcome.gates(), expected);
    EXPECT_EQ(outcome.dropped_for("no_route") + outcome.dropped_for("unknown_vrf"), n_lost);
  }
}

}  // namespace vrf_lookup_test
}  // namespace batchplane
