// SPDX-License-Identifier: BSD-3-Clause
// ipv6_lookup_test.cc - routes of all kinds, live edits, groups, interfaces, and errors.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>

#include "base/rng.h"
#include "frames6.h"
#include "modules/route/route_commands.h"

namespace batchplane {
namespace ipv6_lookup_test {

Bytes to(const std::string& dst, uint16_t port = 1000) {
  return make_frame6({.ip_dst = dst, .port_src = port});
}
Dict route(const std::string& prefix, int64_t gate) { return {{"prefix", prefix}, {"gate", gate}}; }

std::string fate(ModuleHarness& lookup, const std::string& dst) {
  const Outcome outcome = lookup.run({to(dst)});
  return outcome.drops.empty() ? std::to_string(outcome.outputs.at(0).gate)
                               : outcome.drops[0].reason;
}
std::string mistake(const std::function<void()>& act) {
  try {
    act();
  } catch (const ConfigError& error) {
    return error.line();
  }
  return "none";
}

TEST(Ipv6Lookup, LongestPrefixWins) {
  ModuleHarness lookup("ipv6_lookup",
                       {{"routes", List{route("::/0", 0), route("2001:db8::/32", 1),
                                        route("2001:db8:1::/48", 2), route("2001:db8:1::7/128", 3),
                                        Dict{{"prefix", "2001:db8:2::/48"}, {"drop", true}}}},
                        {"max_prefixes", 100}},
                       5);
  EXPECT_EQ(fate(lookup, "2a00::1"), "0");
  EXPECT_EQ(fate(lookup, "2001:db8:ffff::1"), "1");
  EXPECT_EQ(fate(lookup, "2001:db8:1::8"), "2");
  EXPECT_EQ(fate(lookup, "2001:db8:1::7"), "3");
  EXPECT_EQ(fate(lookup, "2001:db8:2::7"), "route_drop");
  EXPECT_EQ(lookup.run({Bytes(53), Bytes{}}).dropped_for("too_short"), 2U);
}

TEST(Ipv6Lookup, RoutesAreEditedLive) {
  ModuleHarness lookup("ipv6_lookup",
                       {{"routes", List{route("2001:db8::/32", 1)}}, {"max_prefixes", 100}}, 4);
  EXPECT_EQ(fate(lookup, "2a00::1"), "no_route");
  lookup.command("add", route("2a00::/16", 2));
  EXPECT_EQ(fate(lookup, "2a00::1"), "2");
  lookup.command("add", route("::/0", 3));
  EXPECT_EQ(fate(lookup, "2b00::1"), "3");
  const Value listed = lookup.command("list", Dict{{"within", "2a00::/8"}});
  EXPECT_EQ(listed["total"].as_int(), 1);
  EXPECT_EQ(listed["routes"].as_list().at(0)["prefix"].as_string(), "2a00::/16");
  lookup.command("delete", Dict{{"prefix", "2a00::/16"}});
  EXPECT_EQ(fate(lookup, "2a00::1"), "3");
  lookup.command("replace", Dict{{"routes", List{route("2c00::/16", 1)}}});
  EXPECT_EQ(fate(lookup, "2001:db8::1"), "no_route");
  EXPECT_EQ(fate(lookup, "2c00::1"), "1");
  const Value found = lookup.command("lookup", Dict{{"address", "2c00::1"}});
  EXPECT_EQ(found["route"]["prefix"].as_string(), "2c00::/16");
  const Dict saved = lookup.module().saved_params();
  EXPECT_EQ(saved.at("routes").as_list().at(0)["prefix"].as_string(), "2c00::/16");
}

TEST(Ipv6Lookup, MistakesNameTheirRemedyAndChangeNothing) {
  const auto env = environment6();
  ModuleHarness lookup("ipv6_lookup", {{"interfaces", true}, {"max_prefixes", 100}}, 2, env.get());
  const auto add = [&](Dict dict) { return mistake([&] { lookup.command("add", dict); }); };
  EXPECT_NE(add(route("2001:db8::1/32", 0)).find("host bits"), std::string::npos);
  EXPECT_NE(add(route("10.0.0.0/8", 0)).find("no IPv6 prefix"), std::string::npos);
  EXPECT_NE(add(route("2a00::/16", 7)).find("gate 7"), std::string::npos);
  EXPECT_NE(add({{"prefix", "2a00::/16"}, {"via", "fe80::1"}}).find("name the interface"),
            std::string::npos);
  EXPECT_NE(add({{"prefix", "2a00::/16"}, {"via", "ff02::1"}}).find("IPv6 address"),
            std::string::npos);
  EXPECT_NE(add({{"prefix", "2a00::/16"}, {"via", "fe80::1"}, {"interface", "lam"}}).find("'lan'"),
            std::string::npos);
  EXPECT_NE(mistake([&] {
              lookup.command("delete", Dict{{"prefix", "2a00::/16"}});
            }).find("no such route"),
            std::string::npos);
  const List half{route("2a00::/16", 0), route("2a00::/129", 0)};
  EXPECT_NE(mistake([&] {
              lookup.command("add", Dict{{"routes", half}});
            }).find("routes[1]"),
            std::string::npos);
  EXPECT_EQ(fate(lookup, "2a00::1"), "no_route");
}

TEST(Ipv6Lookup, GatewaysKnowTheirInterface) {
  const auto env = environment6();
  ModuleHarness lookup(
      "ipv6_lookup",
      {{"table", "main"},
       {"interfaces", true},
       {"max_prefixes", 100},
       {"routes", List{Dict{{"prefix", "2a00::/16"}, {"via", "2001:db8:b::2"}},
                       Dict{{"prefix", "2b00::/16"}, {"via", "fe80::5"}, {"interface", "lan"}},
                       Dict{{"prefix", "2c00::/16"}, {"via", "fe80::6%wan"}}}}},
      2, env.get());
  const auto table = shared_route_table<Ipv6Family>(*env, "main");
  const auto hop_to = [&](const char* dst) {
    const Outcome outcome = lookup.run({to(dst)});
    return *table->hops().at(outcome.outputs.at(0).meta.next_hop);
  };
  EXPECT_EQ(hop_to("2a00::1").interface, 1);
  EXPECT_EQ(hop_to("2a00::1").gateway6, ip6("2001:db8:b::2"));
  EXPECT_EQ(hop_to("2b00::1").interface, 0);
  EXPECT_EQ(hop_to("2b00::1").gateway6, ip6("fe80::5"));
  EXPECT_EQ(hop_to("2c00::1").interface, 1);
  EXPECT_EQ(hop_to("2c00::1").gateway6, ip6("fe80::6"));
  EXPECT_EQ(hop_to("2001:db8:a::77").interface, 0);  // on link
  EXPECT_TRUE(hop_to("2001:db8:a::77").gateway6.is_unspecified());
  EXPECT_EQ(hop_to("fe80::77").interface, kArrivalInterface);
  for (const char* own : {"2001:db8:a::1", "2001:db8:b::1", "fe80::ff:fe00:a",
                          "2001:db8:a::", "ff02::1", "ff02::1:ff00:1", "ff0e::7"}) {
    EXPECT_EQ(fate(lookup, own), "1") << own;
  }
}

TEST(Ipv6Lookup, GroupsSpreadFlowsAndKeepEachTogether) {
  ModuleHarness lookup(
      "ipv6_lookup",
      {{"next_hops", List{Dict{{"id", 1}, {"gate", 1}}, Dict{{"id", 2}, {"gate", 2}},
                          Dict{{"id", 3},
                               {"group", List{Dict{{"next_hop", 1}, {"weight", 1}},
                                              Dict{{"next_hop", 2}, {"weight", 3}}}}}}},
       {"routes", List{Dict{{"prefix", "2a00::/16"}, {"next_hop", 3}}}},
       {"max_prefixes", 100}},
      4);
  uint32_t n_second = 0;
  for (uint16_t port = 0; port < 2000; ++port) {
    const Outcome outcome = lookup.run({to("2a00::1", port), to("2a00::1", port)});
    ASSERT_EQ(outcome.gates()[0], outcome.gates()[1]);
    n_second += outcome.gates()[0] == 2 ? 1 : 0;
  }
  EXPECT_NEAR(n_second, 1500, 120);
}

TEST(Ipv6Lookup, FilesNameTheirFirstBadLine) {
  const std::string path = testing::TempDir() + "routes6.txt";
  std::ofstream(path) << "# a comment\n2a00::/16 1\n2b00::/16 drop\n2c00::/16 nowhere\n";
  const std::string line = mistake([&] {
    ModuleHarness lookup("ipv6_lookup", {{"file", path}}, 4);
  });
  EXPECT_NE(line.find(":4"), std::string::npos) << line;
  std::ofstream(path) << "2a00::/16 1\n2b00::/16 drop\n";
  ModuleHarness lookup("ipv6_lookup", {{"file", path}, {"max_prefixes", 100}}, 4);
  EXPECT_EQ(fate(lookup, "2a00::1"), "1");
  EXPECT_EQ(fate(lookup, "2b00::1"), "route_drop");
}

TEST(Ipv6Lookup, AgreesWithASearchOfAllRoutes) {
  ModuleHarness lookup(
      "ipv6_lookup",
      {{"synthetic", Dict{{"count", 3000}, {"gates", 7}}}, {"max_prefixes", 5000}, {"table", "t"}},
      7);
  const Value listed = lookup.command("list", Dict{{"limit", 5000}});
  std::map<net::Prefix6, uint32_t> routes;
  for (const Value& one : listed["routes"].as_list()) {
    routes[*net::parse_prefix6(one["prefix"].as_string())] =
        static_cast<uint32_t>(one["gate"].as_int());
  }
  ASSERT_EQ(routes.size(), 3000U);
  Rng rng(1);
  std::vector<net::Prefix6> all;
  for (const auto& [prefix, gate] : routes) all.push_back(prefix);
  for (uint32_t round = 0; round < 100; ++round) {
    std::vector<Bytes> frames;
    std::vector<int> wanted;
    for (uint32_t i = 0; i < 64; ++i) {
      net::Address6 address = all[rng.below(3000)].address;
      address.high ^= rng.next() >> (20 + rng.below(44));
      address.low = rng.next();
      int gate = -1;
      for (int length = 128; length >= 0 && gate < 0; --length) {
        const auto bits = static_cast<uint8_t>(length);
        const auto it = routes.find({address & net::mask6(bits), bits});
        if (it != routes.end()) gate = static_cast<int>(it->second);
      }
      frames.push_back(to(net::format_ipv6(address)));
      if (gate >= 0) wanted.push_back(gate);
    }
    std::vector<int> found;
    for (const uint32_t gate : lookup.run(frames).gates()) found.push_back(static_cast<int>(gate));
    ASSERT_EQ(found, wanted);
  }
}

}  // namespace ipv6_lookup_test
}  // namespace batchplane
