// SPDX-License-Identifier: BSD-3-Clause
// ipv4_lookup_test.cc - the effect of routes, next hops and live edits on packets.
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/rng.h"
#include "module_harness.h"
#include "modules/route/route_commands.h"

namespace batchplane {
namespace ipv4_lookup_test {

Bytes to(const std::string& address, uint16_t port = 2000) {
  return make_frame({.ip_dst = *net::parse_ipv4(address), .port_dst = port});
}

Dict route(const std::string& prefix, uint32_t gate, uint32_t metric = 1) {
  return {{"prefix", prefix}, {"gate", gate}, {"metric", metric}};
}

std::string refusal(ModuleHarness& harness, const std::string& verb, const Value& args) {
  try {
    harness.command(verb, args);
  } catch (const ConfigError& error) {
    return error.line();
  }
  return "";
}

// Two interfaces, as in a router.
std::unique_ptr<Environment> router_environment() {
  auto env = std::make_unique<Environment>();
  env->interfaces.push_back(
      {.name = "lan", .port = "p0", .index = 0, .addresses = {{*net::parse_ipv4("10.0.0.1"), 24}}});
  env->interfaces.push_back({.name = "wan",
                             .port = "p1",
                             .index = 1,
                             .addresses = {{*net::parse_ipv4("192.168.1.2"), 30}}});
  return env;
}

TEST(Ipv4Lookup, LongestPrefixDecidesAndTheRestIsDropped) {
  ModuleHarness lookup("ipv4_lookup",
                       {{"routes", List{route("10.0.0.0/8", 1), route("10.1.0.0/16", 2),
                                        route("10.1.1.128/25", 3)}}},
                       4);
  const Outcome outcome = lookup.run(
      {to("10.9.9.9"), to("10.1.9.9"), to("10.1.1.200"), to("10.1.1.1"), to("11.0.0.1")});
  EXPECT_EQ(outcome.gates(), (std::vector<uint32_t>{1, 2, 3, 2}));
  EXPECT_EQ(outcome.dropped_for("no_route"), 1U);
  EXPECT_EQ(outcome.outputs[0].meta.next_hop,
            1U);  // a gate's implicit next hop has the gate's number
  EXPECT_EQ(lookup.leaked_pkts(), 0U);
}

TEST(Ipv4Lookup, DefaultRouteTakesTheRestAndCanGo) {
  ModuleHarness lookup("ipv4_lookup",
                       {{"routes", List{route("0.0.0.0/0", 0), route("10.0.0.0/8", 1)}}}, 3);
  EXPECT_EQ(lookup.run({to("11.0.0.1"), to("10.0.0.1")}).gates(), (std::vector<uint32_t>{0, 1}));
  lookup.command("add", Dict{{"prefix", "0.0.0.0/0"}, {"gate", 2}, {"metric", 0}});
  EXPECT_EQ(lookup.run({to("11.0.0.1")}).gates(), std::vector<uint32_t>{2});
  lookup.command("delete", Dict{{"prefix", "0.0.0.0/0"}, {"source", "user"}});
  EXPECT_EQ(lookup.run({to("11.0.0.1")}).gates(), std::vector<uint32_t>{0});
  lookup.command("delete", Dict{{"prefix", "0.0.0.0/0"}});
  EXPECT_EQ(lookup.run({to("11.0.0.1")}).dropped_for("no_route"), 1U);
}

TEST(Ipv4Lookup, HeaderMayStandAnywhereAndShortPacketsAreDropped) {
  ModuleHarness lookup("ipv4_lookup", {{"routes", List{route("10.0.0.0/8", 1)}}}, 2);
  Bytes tagged(4);
  const Bytes plain = to("10.0.0.9");
  tagged.insert(tagged.end(), plain.begin(), plain.end());
  lookup.meta().l3_offset_bytes = 18;
  EXPECT_EQ(lookup.run({tagged}).gates(), std::vector<uint32_t>{1});
  for (uint32_t len = 0; len < 38; ++len) {
    const Outcome outcome = lookup.run({Bytes(tagged.begin(), tagged.begin() + len), tagged});
    EXPECT_EQ(outcome.dropped_for("too_short"), 1U) << len;
    EXPECT_EQ(outcome.gates(), std::vector<uint32_t>{1});
  }
  EXPECT_EQ(lookup.run({Bytes(tagged.begin(), tagged.begin() + 38)}).gates(),
            std::vector<uint32_t>{1});
}

TEST(Ipv4Lookup, LowestMetricThenSourceWinsAndDeletionFallsBack) {
  ModuleHarness lookup(
      "ipv4_lookup", {{"routes", List{route("10.0.0.0/8", 1, 10), route("10.0.0.0/8", 2, 20)}}}, 5);
  const auto gate = [&] { return lookup.run({to("10.0.0.1")}).gates().at(0); };
  EXPECT_EQ(gate(), 1U);
  lookup.command("add", route("10.0.0.0/8", 3, 10));  // user is preferred to static
  EXPECT_EQ(gate(), 3U);
  lookup.command("add", route("10.0.0.0/8", 4, 30));
  EXPECT_EQ(gate(), 3U);
  lookup.command("delete", Dict{{"prefix", "10.0.0.0/8"}, {"source", "user"}, {"metric", 10}});
  EXPECT_EQ(gate(), 1U);
  lookup.command("delete", Dict{{"prefix", "10.0.0.0/8"}, {"source", "static"}});
  EXPECT_EQ(gate(), 4U);
  EXPECT_NE(refusal(lookup, "delete", Dict{{"prefix", "10.9.0.0/16"}}).find("10.9.0.0/16"),
            std::string::npos);
}

TEST(Ipv4Lookup, NextHopChangeRedirectsAllItsRoutesAtOnce) {
  List routes;
  for (uint32_t i = 0; i < 200; ++i) {
    routes.push_back(Dict{{"prefix", "10." + std::to_string(i) + ".0.0/16"}, {"next_hop", 7}});
  }
  ModuleHarness lookup("ipv4_lookup",
                       {{"next_hops", List{Dict{{"id", 7}, {"gate", 0}}}}, {"routes", routes}}, 2);
  const std::vector<Bytes> frames = {to("10.0.0.1"), to("10.77.0.1"), to("10.199.0.1")};
  EXPECT_EQ(lookup.run(frames).gates(), (std::vector<uint32_t>{0, 0, 0}));
  lookup.command("next_hop", Dict{{"id", 7}, {"gate", 1}});
  const Outcome outcome = lookup.run(frames);
  EXPECT_EQ(outcome.gates(), (std::vector<uint32_t>{1, 1, 1}));
  EXPECT_EQ(outcome.outputs[0].meta.next_hop, 7U);
  lookup.command("next_hop", Dict{{"id", 7}, {"drop", true}});
  EXPECT_EQ(lookup.run(frames).dropped_for("route_drop"), 3U);
  EXPECT_NE(refusal(lookup, "next_hop", Dict{{"id", 7}, {"delete", true}}).find("200"),
            std::string::npos);
}

Dict group_of(std::initializer_list<std::pair<uint32_t, uint32_t>> members) {
  List list;
  for (const auto& [id, weight] : members) {
    list.push_back(Dict{{"next_hop", id}, {"weight", weight}});
  }
  return {{"id", 9}, {"group", list}};
}

Dict ecmp_params() {
  List hops{group_of({{0, 1}, {1, 1}, {2, 2}})};
  for (uint32_t id = 0; id < 3; ++id) hops.push_back(Dict{{"id", id}, {"gate", id}});
  return {{"next_hops", hops}, {"routes", List{Dict{{"prefix", "10.0.0.0/8"}, {"next_hop", 9}}}}};
}

std::vector<uint32_t> gates_of_flows(ModuleHarness& lookup, uint32_t n_flows) {
  std::vector<uint32_t> gates;
  for (uint32_t flow = 0; flow < n_flows; flow += 200) {
    std::vector<Bytes> frames;
    for (uint32_t i = flow; i < flow + 200; ++i)
      frames.push_back(to("10.0.0.9", static_cast<uint16_t>(i)));
    for (const uint32_t gate : lookup.run(frames).gates()) gates.push_back(gate);
  }
  return gates;
}

TEST(Ipv4Lookup, GroupSpreadsFlowsByWeightAndKeepsEachOnOnePath) {
  ModuleHarness lookup("ipv4_lookup", ecmp_params(), 3);
  const std::vector<uint32_t> gates = gates_of_flows(lookup, 8000);
  EXPECT_EQ(gates, gates_of_flows(lookup, 8000));
  // Binomial: the standard deviation is below 45 of 8000; the bound is six of them.
  EXPECT_NEAR(std::ranges::count(gates, 0U), 2000, 270);
  EXPECT_NEAR(std::ranges::count(gates, 1U), 2000, 270);
  EXPECT_NEAR(std::ranges::count(gates, 2U), 4000, 270);
}

TEST(Ipv4Lookup, GroupThatLosesAMemberMovesOnlyThatMembersFlows) {
  ModuleHarness lookup("ipv4_lookup", ecmp_params(), 3);
  const std::vector<uint32_t> before = gates_of_flows(lookup, 4000);
  lookup.command("next_hop", group_of({{1, 1}, {2, 2}}));
  const std::vector<uint32_t> after = gates_of_flows(lookup, 4000);
  for (size_t i = 0; i < before.size(); ++i) {
    if (before[i] != 0) {
      ASSERT_EQ(after[i], before[i]) << i;
    }
    ASSERT_NE(after[i], 0U);
  }
}

TEST(Ipv4Lookup, FragmentsOfOnePacketTakeOnePath) {
  ModuleHarness lookup("ipv4_lookup", ecmp_params(), 3);
  std::set<uint32_t> gates;
  for (uint16_t i = 0; i < 64; ++i) {
    Bytes frame = to("10.0.0.9", i);
    net::store16(&frame[14 + net::kIpFragment], i == 0 ? 0x2000 : i);
    gates.insert(lookup.run({frame}).gates().at(0));
  }
  EXPECT_EQ(gates.size(), 1U);
}

TEST(Ipv4Lookup, InterfacesGiveConnectedAndLocalRoutes) {
  const auto env = router_environment();
  ModuleHarness lookup("ipv4_lookup",
                       {{"interfaces", true},
                        {"routes", List{Dict{{"prefix", "0.0.0.0/0"}, {"via", "192.168.1.1"}}}}},
                       2, env.get());
  const Outcome outcome = lookup.run({to("10.0.0.77"), to("10.0.0.1"), to("10.0.0.255"),
                                      to("255.255.255.255"), to("192.168.1.1"), to("192.168.1.3"),
                                      to("8.8.8.8"), to("224.0.0.251"), to("239.255.255.250")});
  EXPECT_EQ(outcome.gates(), (std::vector<uint32_t>{0, 1, 1, 1, 0, 1, 0, 1, 1}));
  const NextHops& hops = shared_route_table(*env, "under_test")->hops();
  const NextHop* on_link = hops.at(outcome.outputs[0].meta.next_hop);
  EXPECT_EQ(on_link->interface, 0);
  EXPECT_EQ(on_link->gateway, 0U);
  const NextHop* gateway = hops.at(outcome.outputs[6].meta.next_hop);
  EXPECT_EQ(gateway->interface, 1);
  EXPECT_EQ(net::format_ipv4(gateway->gateway), "192.168.1.1");
  EXPECT_NE(refusal(lookup, "delete", Dict{{"prefix", "10.0.0.1/32"}}),
            "");  // interface routes need their source
}

TEST(Ipv4Lookup, MistakesNamePlaceAndRemedyAndChangeNothing) {
  ModuleHarness lookup("ipv4_lookup", {{"routes", List{route("10.0.0.0/8", 1)}}}, 2);
  EXPECT_NE(refusal(lookup, "add", route("10.0.0.1/8", 1)).find("host bits"), std::string::npos);
  EXPECT_NE(refusal(lookup, "add", route("11.0.0.0/8", 2)).find("not connected"),
            std::string::npos);
  EXPECT_NE(refusal(lookup, "add", Dict{{"prefix", "11.0.0.0/8"}}).find("gate, via"),
            std::string::npos);
  EXPECT_NE(refusal(lookup, "add", Dict{{"prefix", "11.0.0.0/8"}, {"gait", 1}}).find("gate"),
            std::string::npos);
  EXPECT_NE(
      refusal(lookup, "add", Dict{{"prefix", "11.0.0.0/8"}, {"next_hop", 5}}).find("next hop 5"),
      std::string::npos);
  EXPECT_NE(
      refusal(lookup, "add", Dict{{"prefix", "11.0.0.0/8"}, {"via", "1.2.3.4"}}).find("subnet"),
      std::string::npos);
  EXPECT_NE(refusal(lookup, "fly", Dict{}).find("fly"), std::string::npos);
  // The valid half of a bad bulk edit is not applied either.
  EXPECT_NE(refusal(lookup, "add", Dict{{"routes", List{route("12.0.0.0/8", 0), route("x", 0)}}}),
            "");
  EXPECT_EQ(lookup.run({to("12.0.0.1")}).dropped_for("no_route"), 1U);
  EXPECT_EQ(lookup.run({to("10.0.0.1")}).gates(), std::vector<uint32_t>{1});
  EXPECT_EQ(lookup.module().show()["prefixes"].as_int(), 1);
  EXPECT_EQ(lookup.module().show()["next_hops"].as_int(), 1);
}

TEST(Ipv4Lookup, FullTableLeavesBulkEditUndone) {
  ModuleHarness lookup("ipv4_lookup",
                       {{"max_prefixes", 4}, {"routes", List{route("10.0.0.0/16", 1)}}}, 2);
  List many{route("10.0.0.0/16", 0)};
  for (uint32_t i = 1; i < 9; ++i) many.push_back(route("10." + std::to_string(i) + ".0.0/16", 0));
  EXPECT_NE(refusal(lookup, "add", Dict{{"routes", many}}).find("max_prefixes"), std::string::npos);
  EXPECT_EQ(lookup.run({to("10.0.0.1")}).gates(), std::vector<uint32_t>{1});
  EXPECT_EQ(lookup.run({to("10.1.0.1")}).dropped_for("no_route"), 1U);
  many.resize(4);
  lookup.command("add", Dict{{"routes", many}});
  EXPECT_EQ(lookup.run({to("10.3.0.1"), to("10.0.0.1")}).gates(), (std::vector<uint32_t>{0, 0}));
}

class RouteFile : public testing::Test {
 protected:
  std::string write(const std::string& text) {
    const auto path = std::filesystem::temp_directory_path() /
                      ("routes_" + std::to_string(::getpid()) + "_" + std::to_string(++n_));
    std::ofstream(path) << text;
    paths_.push_back(path);
    return path;
  }
  void TearDown() override {
    for (const auto& path : paths_) std::filesystem::remove(path);
  }
  uint32_t n_ = 0;
  std::vector<std::filesystem::path> paths_;
};

TEST_F(RouteFile, IsReadWithCommentsAndBadLinesAreNamed) {
  ModuleHarness lookup(
      "ipv4_lookup",
      {{"file", write("# test\n10.0.0.0/8 1\n\n11.0.0.0/8 drop # no\n12.0.0.0/8 local\n")}}, 2);
  const Outcome outcome = lookup.run({to("10.1.1.1"), to("11.0.0.1"), to("12.0.0.1")});
  EXPECT_EQ(outcome.gates(), (std::vector<uint32_t>{1, 1}));
  EXPECT_EQ(outcome.dropped_for("route_drop"), 1U);
  const std::string bad = write("13.0.0.0/8 1\n14.0.0.0/8\n");
  EXPECT_NE(refusal(lookup, "replace", Dict{{"file", bad}}).find(bad + ":2"), std::string::npos);
  EXPECT_EQ(lookup.run({to("13.0.0.1")}).dropped_for("no_route"), 1U);
  EXPECT_EQ(lookup.run({to("10.1.1.1")}).gates(), std::vector<uint32_t>{1});
  EXPECT_NE(refusal(lookup, "replace", Dict{{"file", "/nowhere"}}).find("/nowhere"),
            std::string::npos);
}

TEST_F(RouteFile, SavedParametersGiveTheSameTableAgain) {
  Dict params{
      {"file", write("10.0.0.0/8 1\n11.0.0.0/8 2\n12.0.0.0/8 0\n")},
      {"next_hops", List{Dict{{"id", 40}, {"gate", 0}}}},
      {"routes", List{route("20.0.0.0/8", 1), Dict{{"prefix", "21.0.0.0/8"}, {"next_hop", 40}}}}};
  ModuleHarness first("ipv4_lookup", params, 3);
  first.command("delete", Dict{{"prefix", "11.0.0.0/8"}});
  first.command("add", route("10.0.0.0/8", 2, 0));
  first.command("next_hop", Dict{{"id", 40}, {"gate", 2}});
  first.command("add", route("30.0.0.0/8", 0));
  for (const auto& [key, value] : first.module().saved_params()) params[key] = value;
  ModuleHarness second("ipv4_lookup", params, 3);
  const std::vector<Bytes> frames = {to("10.0.0.1"), to("11.0.0.1"), to("12.0.0.1"), to("20.0.0.1"),
                                     to("21.0.0.1"), to("30.0.0.1"), to("31.0.0.1")};
  EXPECT_EQ(second.run(frames).gates(), first.run(frames).gates());
  EXPECT_EQ(second.run(frames).gates(), (std::vector<uint32_t>{2, 0, 1, 2, 0}));
  const Value all{Dict{{"limit", 100}}};
  EXPECT_EQ(second.command("list", all)["routes"], first.command("list", all)["routes"]);
}

TEST_F(RouteFile, ReplaceExchangesTheWholeTable) {
  ModuleHarness lookup("ipv4_lookup",
                       {{"routes", List{route("10.0.0.0/8", 1), route("0.0.0.0/0", 0)}}}, 2);
  lookup.command("add", route("11.0.0.0/8", 1));
  lookup.command("replace", Dict{{"routes", List{route("12.0.0.0/8", 1)}}});
  EXPECT_EQ(lookup.run({to("10.0.0.1"), to("11.0.0.1"), to("9.9.9.9")}).dropped_for("no_route"),
            3U);
  EXPECT_EQ(lookup.run({to("12.0.0.1")}).gates(), std::vector<uint32_t>{1});
  EXPECT_EQ(lookup.command("list", Dict{})["total"].as_int(), 1);
}

TEST(Ipv4Lookup, SyntheticTableAgreesWithTheControlSide) {
  ModuleHarness lookup("ipv4_lookup",
                       {{"synthetic", Dict{{"count", 5000}, {"seed", 3}, {"gates", 8}}}}, 8);
  std::vector<uint32_t> known;
  const Value listed = lookup.command("list", Dict{{"limit", 5000}});
  for (const Value& value : listed["routes"].as_list()) {
    known.push_back(net::parse_prefix4(value["prefix"].as_string())->address);
  }
  Rng rng(5);
  uint32_t found = 0;
  for (uint32_t round = 0; round < 40; ++round) {
    std::vector<Bytes> frames;
    std::vector<std::string> addresses;
    for (uint32_t i = 0; i < 100; ++i) {
      // Half of them near known prefixes, as the table covers little of the address space.
      uint32_t address = static_cast<uint32_t>(rng.next());
      if (i % 2 == 0)
        address = known[rng.below(static_cast<uint32_t>(known.size()))] ^ rng.below(1024);
      addresses.push_back(net::format_ipv4(address));
      frames.push_back(to(addresses.back()));
    }
    const std::vector<uint32_t> gates = lookup.run(frames).gates();
    std::vector<uint32_t> wanted;
    for (const std::string& address : addresses) {
      const Value answer = lookup.command("lookup", Dict{{"address", address}});
      if (!answer["route"].is_null())
        wanted.push_back(static_cast<uint32_t>(answer["route"]["gate"].as_int()));
    }
    EXPECT_EQ(gates, wanted);
    found += static_cast<uint32_t>(wanted.size());
  }
  EXPECT_GT(found, 400U);
  EXPECT_EQ(lookup.module().show()["prefixes"].as_int(), 5000);
}

TEST(Ipv4Lookup, ModulesShareATableByName) {
  Environment env;
  ModuleHarness user("ipv4_lookup", {{"table", "main"}}, 3, &env);
  ModuleHarness owner("ipv4_lookup", {{"table", "main"}, {"routes", List{route("10.0.0.0/8", 2)}}},
                      3, &env);
  EXPECT_EQ(user.run({to("10.0.0.1")}).gates(), std::vector<uint32_t>{2});
  owner.command("add", route("11.0.0.0/8", 1));
  EXPECT_EQ(user.run({to("11.0.0.1")}).gates(), std::vector<uint32_t>{1});
  EXPECT_TRUE(user.module().saved_params().empty());
}

// What an apply does with the environments of the two pipelines.
std::unique_ptr<Environment> next_after(const Environment& running) {
  auto next = router_environment();
  next->carry_over(running);
  return next;
}

class LookupApply : public testing::Test {
 protected:
  LookupApply() {
    before_.command("add", route("12.0.0.0/8", 2));
    before_.command("delete", Dict{{"prefix", "11.0.0.0/8"}});
    before_.command("next_hop", Dict{{"id", 9}, {"gate", 2}});
  }

  const Dict params_{{"routes", List{route("10.0.0.0/8", 1), route("11.0.0.0/8", 1)}},
                     {"next_hops", List{Dict{{"id", 9}, {"gate", 0}}}},
                     {"synthetic", Dict{{"count", 50}, {"seed", 1}}}};
  const Value all_{Dict{{"limit", 1000}}};
  std::unique_ptr<Environment> running_ = router_environment();
  ModuleHarness before_{"ipv4_lookup", params_, 3, running_.get()};
};

TEST_F(LookupApply, SameDeclarationSharesTheTableWithAllLiveEdits) {
  auto env = next_after(*running_);
  ModuleHarness same("ipv4_lookup", params_, 8, env.get());
  same.module().inherit(before_.module());
  EXPECT_EQ(same.command("list", all_), before_.command("list", all_));
  same.command("add", route("13.0.0.0/8", 0));
  EXPECT_EQ(before_.run({to("13.0.0.1"), to("12.0.0.1")}).gates(), (std::vector<uint32_t>{0, 2}));
  // While both graphs exist, routes may only use gates that both have.
  EXPECT_NE(refusal(same, "add", route("14.0.0.0/8", 5)), "");
}

TEST_F(LookupApply, AnotherDeclarationLeavesTheRunningTableAlone) {
  auto env = next_after(*running_);
  const Dict wider{{"routes", List{route("11.0.0.0/8", 7)}}, {"max_prefixes", 100}};
  ModuleHarness other("ipv4_lookup", wider, 8, env.get());
  other.module().inherit(before_.module());
  // Its own static routes, on gates that only it has, and the routes that the user had added.
  const Outcome outcome = other.run({to("12.0.0.1"), to("11.0.0.1"), to("10.0.0.1")});
  EXPECT_EQ(outcome.gates(), (std::vector<uint32_t>{2, 7}));
  EXPECT_EQ(outcome.dropped_for("no_route"), 1U);
  const Outcome old = before_.run({to("12.0.0.1"), to("11.0.0.1"), to("10.0.0.1")});
  EXPECT_EQ(old.gates(), (std::vector<uint32_t>{2, 1}));
  EXPECT_EQ(old.dropped_for("no_route"), 1U);
}

TEST_F(LookupApply, NextHopIdsOfPacketsUnderWayKeepTheirMeaning) {
  const auto via = [](const std::string& prefix, const std::string& gateway) {
    return Dict{{"prefix", prefix}, {"via", gateway}};
  };
  const List routes{via("20.0.0.0/8", "10.0.0.7"), via("21.0.0.0/8", "10.0.0.8"),
                    via("22.0.0.0/8", "10.0.0.9")};
  auto running = router_environment();
  ModuleHarness before("ipv4_lookup", {{"routes", routes}}, 1, running.get());
  auto env = next_after(*running);
  // In another order, without the second, and with a new one.
  ModuleHarness after("ipv4_lookup",
                      {{"routes", List{via("23.0.0.0/8", "10.0.0.6"), routes[2], routes[0]}}}, 1,
                      env.get());
  const auto hop_of = [](ModuleHarness& lookup, const std::string& address) {
    return lookup.run({to(address)}).outputs.at(0).meta.next_hop;
  };
  EXPECT_EQ(hop_of(after, "20.0.0.1"), hop_of(before, "20.0.0.1"));
  EXPECT_EQ(hop_of(after, "22.0.0.1"), hop_of(before, "22.0.0.1"));
  EXPECT_NE(hop_of(after, "23.0.0.1"), hop_of(before, "21.0.0.1"));
}

TEST_F(LookupApply, OtherInterfacesMakeAnotherTable) {
  auto env = next_after(*running_);
  env->interfaces[1].addresses.clear();
  ModuleHarness other("ipv4_lookup", params_, 3, env.get());
  EXPECT_EQ(other.command("lookup", Dict{{"address", "11.0.0.1"}})["next_hop"].as_int(), 1);
}

TEST_F(LookupApply, LiveRouteToAGateThatIsGoneRefusesTheApply) {
  auto env = next_after(*running_);
  ModuleHarness fewer("ipv4_lookup", {{"routes", List{route("11.0.0.0/8", 0)}}}, 1, env.get());
  EXPECT_THROW(fewer.module().inherit(before_.module()), ConfigError);
}

TEST(Ipv4Lookup, TableThatNobodyDeclaresKeepsItsLiveRoutes) {
  auto running = router_environment();
  ModuleHarness before("ipv4_lookup", {{"table", "main"}}, 3, running.get());
  before.command("add", route("12.0.0.0/8", 2));
  auto env = next_after(*running);
  ModuleHarness after("ipv4_lookup", {{"table", "main"}}, 3, env.get());
  EXPECT_EQ(after.run({to("12.0.0.1")}).gates(), std::vector<uint32_t>{2});
}

TEST(Environment, DoesNotKeepTheSharedObjectsOfItsPredecessor) {
  Environment next;
  {
    Environment old;
    const auto made = old.shared<int>("a", [] { return new int(5); });
    next.carry_over(old);
    EXPECT_EQ(next.previous<int>("a"), made);
    EXPECT_EQ(next.previous<int>("b"), nullptr);
  }
  EXPECT_EQ(next.previous<int>("a"), nullptr);
}

TEST(Ipv4Lookup, CheckingAPipelineTakesNoTableMemory) {
  Environment env;
  env.is_check = true;
  const Dict huge{
      {"max_prefixes", 15'000'000}, {"max_long_blocks", 8'000'000}, {"next_hop_bytes", 4}};
  ModuleHarness checked("ipv4_lookup", huge, 2, &env);
  Dict wrong = huge;
  wrong["routes"] = List{route("10.0.0.1/8", 0)};
  Environment other;
  other.is_check = true;
  EXPECT_THROW(ModuleHarness("ipv4_lookup", wrong, 2, &other), ConfigError);
}

// Readers see the state before or after each edit, and no other.
TEST(RouteTable, EditsWhileAWorkerLooksUp) {
  Quiescence quiescence;
  RouteTable table("live", &quiescence);
  table.build({.max_prefixes = 1024, .max_next_hops = 64});
  for (uint32_t gate = 0; gate < 3; ++gate) {
    table.hops().set(gate, {.gate = static_cast<uint16_t>(gate)});
  }
  table.add({{{0x0a000000, 8}, {.next_hop = 0}}});
  std::atomic<bool> is_done{false};
  std::atomic<uint64_t> wrong{0};
  quiescence.set_online(0, true);
  std::thread worker([&] {
    const uint32_t addresses[] = {0x0a000001, 0x0a010001, 0x0a010201};
    uint64_t ids[3];
    while (!is_done.load()) {
      table.fib().lookup(addresses, ids, 3);
      for (uint64_t id : ids) {
        const ForwardWord word = table.hops().forward(id);
        if ((word & kForwardSpecial) != 0 || static_cast<uint16_t>(word) > 3) ++wrong;
        const NextHop* hop = table.hops().at(static_cast<uint32_t>(word >> 32));
        if (hop == nullptr || hop->gate > 3) ++wrong;
      }
      if (static_cast<uint16_t>(table.hops().forward(ids[0])) != 0) ++wrong;
      quiescence.pass(0);
    }
    quiescence.set_online(0, false);
  });
  Rng rng(1);
  for (uint32_t i = 0; i < 300; ++i) {
    const bool is_short = rng.below(2) == 0;
    const net::Prefix4 prefix =
        is_short ? net::Prefix4{0x0a010000, 16} : net::Prefix4{0x0a010200, 25};
    if (rng.below(3) == 0) {
      table.erase(prefix, {}, {});
    } else {
      table.add({{prefix, {.next_hop = rng.below(3), .metric = rng.below(2)}}});
    }
    if (i % 16 == 0) table.hops().set(2, {.gate = static_cast<uint16_t>(2 + rng.below(2))});
  }
  is_done = true;
  worker.join();
  EXPECT_EQ(wrong.load(), 0U);
}

}  // namespace ipv4_lookup_test
}  // namespace batchplane
