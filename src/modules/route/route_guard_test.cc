// SPDX-License-Identifier: BSD-3-Clause
// route_guard_test.cc - the reverse-path check for both IP versions, and closed interfaces.
#include <gtest/gtest.h>

#include "frames6.h"

namespace batchplane {
namespace route_guard_test {

constexpr uint16_t kLan = 0;
constexpr uint16_t kWan = 1;

// A home network behind one interface, everything else behind the other.
Environment home() {
  Environment env;
  env.interfaces = {{.name = "lan",
                     .port = "p0",
                     .index = kLan,
                     .addresses = {*net::parse_interface_address("192.168.1.1/24")},
                     .addresses6 = {{ip6("2001:db8:1::1"), 64}, {ip6("fe80::1"), 64}}},
                    {.name = "wan",
                     .port = "p1",
                     .index = kWan,
                     .addresses = {*net::parse_interface_address("203.0.113.1/24")},
                     .addresses6 = {{ip6("2001:db8:2::1"), 64}, {ip6("fe80::2"), 64}}}};
  return env;
}

std::string fate_of(const Outcome& outcome) {
  return outcome.drops.empty() ? std::to_string(outcome.outputs.at(0).gate)
                               : outcome.drops[0].reason;
}

struct Home {
  explicit Home(const std::string& mode, const Dict& more = {}) {
    Dict params{{"interfaces", true}, {"reverse_path", mode}};
    for (const auto& [key, value] : more) params[key] = value;
    params["routes"] = List{Dict{{"prefix", "0.0.0.0/0"}, {"via", "203.0.113.9"}},
                            Dict{{"prefix", "10.45.0.0/16"}, {"gate", 2}},
                            Dict{{"prefix", "10.66.0.0/16"}, {"drop", true}}};
    four = std::make_unique<ModuleHarness>("ipv4_lookup", params, 3, &env4);
    params["routes"] = List{Dict{{"prefix", "::/0"}, {"via", "2001:db8:2::9"}}};
    six = std::make_unique<ModuleHarness>("ipv6_lookup", params, 3, &env6);
  }
  std::string fate(uint16_t in, const std::string& src, const std::string& dst) {
    const bool is_six = src.find(':') != std::string::npos;
    ModuleHarness& lookup = is_six ? *six : *four;
    lookup.meta().in_interface = in;
    return fate_of(lookup.run(
        {is_six ? make_frame6({.ip_src = src, .ip_dst = dst})
                : make_frame({.ip_src = *net::parse_ipv4(src), .ip_dst = *net::parse_ipv4(dst)})}));
  }

  Environment env4 = home();
  Environment env6 = home();
  std::unique_ptr<ModuleHarness> four;
  std::unique_ptr<ModuleHarness> six;
};

TEST(ReversePath, StrictTakesASourceOnlyWhereItLives) {
  Home home("strict");
  EXPECT_EQ(home.fate(kLan, "192.168.1.5", "8.8.8.8"), "0");
  EXPECT_EQ(home.fate(kWan, "8.8.8.8", "192.168.1.5"), "0");
  EXPECT_EQ(home.fate(kLan, "8.8.4.4", "8.8.8.8"), "reverse_path");
  EXPECT_EQ(home.fate(kWan, "192.168.1.5", "192.168.1.6"), "reverse_path");
  EXPECT_EQ(home.fate(kWan, "192.168.1.5", "203.0.113.1"), "reverse_path");
  EXPECT_EQ(home.fate(kWan, "203.0.113.1", "192.168.1.6"), "reverse_path") << "an own address";
  EXPECT_EQ(home.fate(kWan, "10.66.0.1", "192.168.1.6"), "reverse_path") << "a way that drops";
  EXPECT_EQ(home.fate(kWan, "10.45.0.1", "192.168.1.6"), "reverse_path") << "a gate, no interface";
  EXPECT_EQ(home.fate(kNoInterface, "203.0.113.1", "192.168.1.6"), "0") << "from this machine";
  EXPECT_EQ(home.fate(kLan, "2001:db8:1::5", "2a00::1"), "0");
  EXPECT_EQ(home.fate(kWan, "2a00::1", "2001:db8:1::5"), "0");
  EXPECT_EQ(home.fate(kLan, "2a00::2", "2a00::1"), "reverse_path");
  EXPECT_EQ(home.fate(kWan, "2001:db8:1::5", "2001:db8:1::6"), "reverse_path");
  EXPECT_EQ(home.fate(kWan, "2001:db8:2::1", "2001:db8:1::6"), "reverse_path");
}

// Each packet's source is looked up in the table of its own VRF.
TEST(ReversePath, IsCheckedByVrf) {
  Environment env = home();
  const auto vrf = [](int id, const char* prefix) {
    return Dict{{"vrf", id},
                {"interfaces", true},
                {"routes", List{Dict{{"prefix", "0.0.0.0/0"}, {"via", "203.0.113.9"}},
                                Dict{{"prefix", prefix}, {"via", "192.168.1.9"}}}}};
  };
  ModuleHarness lookup(
      "vrf_lookup",
      {{"reverse_path", "strict"}, {"vrfs", List{vrf(1, "10.1.0.0/16"), vrf(2, "10.2.0.0/16")}}}, 3,
      &env);
  std::vector<Packet*> pkts;
  for (const uint16_t id : {1, 2, 1}) {
    for (const char* src : {"10.1.0.5", "10.2.0.5"}) {
      pkts.push_back(lookup.make_packet(
          make_frame({.ip_src = *net::parse_ipv4(src), .ip_dst = *net::parse_ipv4("8.8.8.8")})));
      pkts.back()->meta().vrf = id;
      pkts.back()->meta().in_interface = kLan;
    }
  }
  const Outcome outcome = lookup.run_packets(pkts);
  EXPECT_EQ(outcome.dropped_for("reverse_path"), 3U);
  ASSERT_EQ(outcome.outputs.size(), 3U);
  for (size_t k = 0; k < 3; ++k) {
    EXPECT_EQ(outcome.outputs[k].meta.vrf, k == 1 ? 2 : 1);
  }
}

TEST(ReversePath, NeighbourDiscoveryGoesOn) {
  Home home("strict");
  EXPECT_EQ(home.fate(kLan, "fe80::9", "fe80::1"), "1");
  EXPECT_EQ(home.fate(kWan, "fe80::9", "ff02::1:ff00:1"), "1");
  EXPECT_EQ(home.fate(kLan, "::", "ff02::1:ff00:5"), "1") << "duplicate address detection";
}

TEST(ReversePath, LooseTakesWhatCanBeReachedAtAll) {
  Home home("loose");
  EXPECT_EQ(home.fate(kLan, "8.8.4.4", "8.8.8.8"), "0");
  EXPECT_EQ(home.fate(kWan, "192.168.1.5", "192.168.1.6"), "0");
  EXPECT_EQ(home.fate(kWan, "203.0.113.1", "192.168.1.6"), "reverse_path");
  EXPECT_EQ(home.fate(kWan, "10.66.0.1", "192.168.1.6"), "reverse_path");
  home.four->command("delete", Dict{{"prefix", "0.0.0.0/0"}, {"source", "static"}});
  EXPECT_EQ(home.fate(kLan, "8.8.4.4", "192.168.1.6"), "reverse_path");
}

TEST(ReversePath, OffTakesAnything) {
  Home home("off");
  EXPECT_EQ(home.fate(kWan, "203.0.113.1", "192.168.1.6"), "0");
  EXPECT_EQ(home.fate(kWan, "2001:db8:1::5", "2001:db8:1::6"), "0");
}

TEST(ReversePath, FollowsLiveRoutesAndGroups) {
  Home home("strict");
  EXPECT_EQ(home.fate(kLan, "10.9.0.1", "8.8.8.8"), "reverse_path");
  home.four->command("add", Dict{{"prefix", "10.9.0.0/16"}, {"via", "192.168.1.7"}});
  EXPECT_EQ(home.fate(kLan, "10.9.0.1", "8.8.8.8"), "0");
  home.four->command("next_hop", Dict{{"id", 100}, {"via", "192.168.1.8"}});
  home.four->command("next_hop", Dict{{"id", 101}, {"via", "203.0.113.7"}});
  const List both{Dict{{"next_hop", 100}}, Dict{{"next_hop", 101}}};
  home.four->command("add", Dict{{"prefix", "10.8.0.0/16"}, {"group", both}});
  EXPECT_EQ(home.fate(kLan, "10.8.0.1", "8.8.8.8"), "0");
  EXPECT_EQ(home.fate(kWan, "10.8.0.1", "192.168.1.6"), "0");
}

TEST(ReversePath, EachPacketOfABatchIsJudgedByItself) {
  Home home("strict");
  std::vector<Bytes> frames;
  for (uint32_t i = 0; i < 64; ++i) {
    // Every third source is forged, every fifth packet has no header to check.
    Bytes frame =
        make_frame({.ip_src = i % 3 == 0 ? 0x08080808U : 0xc0a80105U, .ip_dst = 0x09090909});
    if (i % 5 == 0) frame.resize(20);
    frames.push_back(std::move(frame));
  }
  home.four->meta().in_interface = kLan;
  const Outcome outcome = home.four->run(frames);
  EXPECT_EQ(outcome.dropped_for("too_short"), 13U);
  EXPECT_EQ(outcome.dropped_for("reverse_path"), 22U - 5U);
  EXPECT_EQ(outcome.outputs.size(), 64U - 13 - 17);
  EXPECT_EQ(home.four->leaked_pkts(), 0U);
}

TEST(ClosedInterfaces, AreNeitherLeftByNorAddressed) {
  Home home("off", {{"closed_interfaces", List{"lan"}}});
  EXPECT_EQ(home.fate(kWan, "8.8.8.8", "192.168.1.5"), "closed_interface");
  EXPECT_EQ(home.fate(kWan, "8.8.8.8", "192.168.1.1"), "closed_interface");
  EXPECT_EQ(home.fate(kWan, "8.8.8.8", "203.0.113.1"), "1");
  EXPECT_EQ(home.fate(kWan, "8.8.8.8", "10.45.0.1"), "2");
  EXPECT_EQ(home.fate(kLan, "8.8.8.8", "9.9.9.9"), "0");
  EXPECT_EQ(home.fate(kWan, "2a00::1", "2001:db8:1::5"), "closed_interface");
  EXPECT_EQ(home.fate(kWan, "2a00::1", "2001:db8:1::1"), "closed_interface");
  EXPECT_EQ(home.fate(kLan, "2a00::1", "fe80::5"), "closed_interface");
  EXPECT_EQ(home.fate(kWan, "2a00::1", "ff02::1"), "1");
}

TEST(RouteGuard, RefusesWhatMakesNoSense) {
  const auto refusal = [](const Dict& params, Environment env) -> std::string {
    try {
      ModuleHarness lookup("ipv4_lookup", params, 2, &env);
    } catch (const ConfigError& error) {
      return error.line();
    }
    return "";
  };
  EXPECT_NE(refusal({{"reverse_path", "strict"}}, {}).find("needs interfaces"), std::string::npos);
  EXPECT_NE(refusal({{"reverse_path", "sometimes"}}, home()), "");
  EXPECT_NE(refusal({{"closed_interfaces", List{"lam"}}}, home()).find("'lan'"), std::string::npos);
  EXPECT_NE(refusal({{"closed_interfaces", List{7}}}, home()).find("names"), std::string::npos);
}

}  // namespace route_guard_test
}  // namespace batchplane
