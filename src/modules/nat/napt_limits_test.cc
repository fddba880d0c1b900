// SPDX-License-Identifier: BSD-3-Clause
// napt_limits_test.cc - limits, eviction when the table is full, live commands, and connections
// that survive an apply.
#include "base/error.h"
#include "napt_test_rig.h"

namespace batchplane {
namespace napt_limits_test {

using namespace nattest;  // NOLINT: helpers of these tests

constexpr Ep kA{kHostA, 5000};
constexpr Ep kB{kHostB, 6000};

Ep flow(uint32_t i) {
  return {ip4(10, 1, 0, 0) + i / 1000, static_cast<uint16_t>(2000 + i % 1000)};
}

TEST(NaptLimits, AFullTableDropsWhatIsNew) {
  NaptRig rig(Dict{{"max_connections", 100}});
  for (uint32_t i = 0; i < 100; ++i) EXPECT_EQ(rig.send(udp(flow(i), kServer)).drop, "");
  EXPECT_EQ(rig.send(udp(flow(100), kServer)).drop, "table_full");
  EXPECT_EQ(rig.send(udp(flow(7), kServer)).drop, "") << "what is there goes on";
  EXPECT_EQ(rig.count("connections"), 100);
}

TEST(NaptLimits, ASynFloodEvictsTheOldestTransitoryAndNoEstablished) {
  NaptRig rig(Dict{{"max_connections", 1000},
                   {"when_full", "evict_transitory"},
                   {"external", List{"203.0.113.0/28"}}});
  std::vector<Ep> ends;
  for (uint32_t i = 0; i < 50; ++i) ends.push_back(rig.connect(flow(i), kServer));
  const int64_t bytes = rig.count("table_bytes");
  // The long run opens ten million flows, as many as a botnet in a second.
  const uint32_t n_flows = std::getenv("BATCHPLANE_LONG") != nullptr ? 10'000'000 : 200'000;
  for (uint32_t i = 0; i < n_flows; ++i) {
    const Ep from{ip4(10, 64, 0, 0) + i, static_cast<uint16_t>(i)};
    ASSERT_EQ(rig.send(tcp(from, kServer, kSyn)).drop, "") << i;
  }
  EXPECT_EQ(rig.count("connections"), 1000);
  EXPECT_EQ(rig.count("evicted"), n_flows - 950);
  EXPECT_EQ(rig.count("table_bytes"), bytes);
  for (uint32_t i = 0; i < 50; ++i) {
    EXPECT_EQ(rig.send(tcp(kServer, ends[i], kAck)).dst(), flow(i));
    EXPECT_EQ(rig.out(tcp(flow(i), kServer, kAck)), ends[i]);
  }
  EXPECT_EQ(rig.send(tcp({ip4(10, 64, 0, 0) + 100, 100}, kServer, kAck)).drop, "");
}

TEST(NaptLimits, NothingIsEvictedWhenAllAreEstablished) {
  NaptRig rig(Dict{{"max_connections", 16}, {"when_full", "evict_transitory"}});
  for (uint32_t i = 0; i < 16; ++i) rig.connect(flow(i), kServer);
  EXPECT_EQ(rig.send(tcp(kA, kServer, kSyn)).drop, "table_full");
}

TEST(NaptLimits, InboundStrangersDoNotEvictTheMappingTheyUse) {
  NaptRig rig(Dict{{"max_connections", 16}, {"when_full", "evict_transitory"}});
  const Ep external = rig.out(udp(kA, kServer));
  for (uint16_t i = 1; i < 2000; ++i) {
    const Sent sent = rig.send(udp({kOther.ip, i}, external));
    ASSERT_EQ(sent.dst(), kA) << sent.drop << i;
  }
  EXPECT_EQ(rig.count("mappings"), 1);
}

TEST(NaptLimits, ExhaustedPortsAreNamedAndComeBack) {
  NaptRig rig(Dict{{"port_min", 40000}, {"port_max", 40009}});
  for (uint32_t i = 0; i < 10; ++i) EXPECT_EQ(rig.send(udp(flow(i), kServer)).drop, "");
  EXPECT_EQ(rig.send(udp(flow(10), kServer)).drop, "ports_exhausted");
  EXPECT_EQ(rig.send(tcp(flow(10), kServer, kSyn)).drop, "");
  EXPECT_EQ(rig.send(udp(flow(3), kOther)).drop, "") << "no port is needed for another remote end";
  rig.pass(301);
  for (uint32_t i = 10; i < 20; ++i) EXPECT_EQ(rig.send(udp(flow(i), kServer)).drop, "");
  EXPECT_EQ(rig.harness().module().show()["external"].as_list()[0]["udp_ports"].as_int(), 10);
}

TEST(NaptLimits, AllPortsOfAnAddressCanBeUsed) {
  NaptRig rig(Dict{{"max_connections", 65536}});
  std::set<Ep> ends;
  for (uint32_t i = 0; i < 64512; ++i) ends.insert(rig.out(udp(flow(i), kServer)));
  EXPECT_EQ(ends.size(), 64512U);
  EXPECT_EQ(rig.send(udp(flow(70'000), kServer)).drop, "ports_exhausted");
}

TEST(NaptLimits, ExhaustedPortsEvictTransitoryOnesIfWanted) {
  NaptRig rig(Dict{{"port_min", 40000}, {"port_max", 40009}, {"when_full", "evict_transitory"}});
  for (uint32_t i = 0; i < 100; ++i) EXPECT_EQ(rig.send(udp(flow(i), kServer)).drop, "") << i;
  EXPECT_EQ(rig.count("connections"), 10);
}

TEST(NaptLimits, AHostHasItsLimit) {
  NaptRig rig(Dict{{"max_per_host", 3}});
  for (uint16_t i = 0; i < 3; ++i) EXPECT_EQ(rig.send(udp({kHostA, i}, kServer)).drop, "");
  EXPECT_EQ(rig.send(udp({kHostA, 3}, kServer)).drop, "host_limit");
  EXPECT_EQ(rig.send(udp({kHostA, 1}, kOther)).drop, "host_limit");
  EXPECT_EQ(rig.send(udp({kHostB, 3}, kServer)).drop, "");
  EXPECT_EQ(rig.count("connections"), 4);
}

TEST(NaptLimits, TimersKeepToTheirBudget) {
  NaptRig rig(Dict{{"max_connections", 10'000}});
  for (uint32_t i = 0; i < 10'000; ++i) rig.send(udp(flow(i), kServer));
  rig.harness().set_now_ns(500 * kSecond);
  rig.harness().housekeep(10'000);
  EXPECT_GT(rig.count("connections"), 9'900) << "10 us are for a few dozen";
  int rounds = 0;
  for (; rig.count("connections") != 0 && rounds < 1000; ++rounds) rig.harness().housekeep(10'000);
  EXPECT_EQ(rig.count("expired"), 10'000);
  EXPECT_LT(rounds, 500);
}

TEST(NaptLimits, AClockThatLeapsIsCaughtUpWith) {
  NaptRig rig;
  rig.connect(kA, kServer);
  rig.at(1e6);
  EXPECT_EQ(rig.count("connections"), 0);
  rig.connect(kA, kServer);
  rig.at(1e6 + 7000);
  EXPECT_EQ(rig.count("connections"), 1);
  rig.at(1e6 + 7500);
  EXPECT_EQ(rig.count("connections"), 0);
}

TEST(NaptCommands, ListFiltersAndCounts) {
  NaptRig rig;
  rig.connect(kA, kServer);
  rig.out(udp(kB, kOther));
  rig.out(echo(kHostB, kServer.ip, 9));
  ModuleHarness& harness = rig.harness();
  EXPECT_EQ(harness.command("list")["matching"].as_int(), 3);
  const Value tcp_only = harness.command("list", Dict{{"protocol", "tcp"}});
  ASSERT_EQ(tcp_only["connections"].as_list().size(), 1U);
  const Value& entry = tcp_only["connections"].as_list()[0];
  EXPECT_EQ(entry["inside"].as_string(), "10.0.0.1:5000");
  EXPECT_EQ(entry["outside"].as_string(), "203.0.113.1:5000");
  EXPECT_EQ(entry["remote"].as_string(), "8.8.8.8:53");
  EXPECT_EQ(entry["state"].as_string(), "tcp_open");
  EXPECT_EQ(harness.command("list", Dict{{"inside", "10.0.0.2"}})["matching"].as_int(), 2);
  EXPECT_EQ(harness.command("list", Dict{{"remote", "9.9.9.9"}})["matching"].as_int(), 1);
  EXPECT_EQ(harness.command("list", Dict{{"state", "icmp"}})["matching"].as_int(), 1);
  const Value limited = harness.command("list", Dict{{"limit", 2}});
  EXPECT_EQ(limited["connections"].as_list().size(), 2U);
  EXPECT_EQ(limited["matching"].as_int(), 3);
  for (const Dict& bad : {Dict{{"protocol", "gre"}}, Dict{{"inside", 3}}, Dict{{"limit", -1}},
                          Dict{{"colour", "red"}}}) {
    EXPECT_THROW(harness.command("list", bad), ConfigError);
  }
}

TEST(NaptCommands, FlushEndsAllConnections) {
  NaptRig rig;
  rig.connect(kA, kServer);
  rig.out(udp(kB, kOther));
  rig.harness().command("flush");
  rig.pass(0.01);
  EXPECT_EQ(rig.count("connections"), 0);
  EXPECT_EQ(rig.count("mappings"), 0);
  EXPECT_EQ(rig.out(udp(kB, kOther)).port, kB.port);
}

TEST(NaptCommands, ExternalAddressesComeAndGo) {
  NaptRig rig;
  ModuleHarness& harness = rig.harness();
  const Ep old_end = rig.out(udp(kA, kServer));
  harness.command("add", Dict{{"external", "198.51.100.7"}});
  harness.command("delete", Dict{{"external", "203.0.113.1"}});
  rig.pass(0.01);
  EXPECT_EQ(rig.out(udp(kB, kServer)).ip, ip4(198, 51, 100, 7));
  EXPECT_EQ(rig.send(udp(kServer, old_end)).dst(), kA) << "what is there goes on";
  EXPECT_EQ(harness.module().saved_params().at("external").as_list().size(), 1U);
  EXPECT_THROW(harness.command("delete", Dict{{"external", "198.51.100.7"}}), ConfigError);
  EXPECT_THROW(harness.command("add", Dict{{"external", "198.51.100.7"}}), ConfigError);
  EXPECT_THROW(harness.command("add", Dict{{"external", "198.51.100.7/24"}}), ConfigError);
  EXPECT_THROW(harness.command("paint"), ConfigError);
}

TEST(NaptCommands, BadParametersAreRefused) {
  for (const Dict& bad :
       {Dict{{"external", List{}}}, Dict{{"external", List{"x"}}},
        Dict{{"external", List{"203.0.113.1/24"}}},
        Dict{{"external", List{"203.0.113.1", "203.0.113.1"}}},
        Dict{{"external", List{"10.0.0.0/8"}}}, Dict{{"port_min", 2000}, {"port_max", 1999}},
        Dict{{"inside", List{"10.0.0.1/8"}}}, Dict{{"udp_short_ports", List{70000}}},
        Dict{{"filtering", "none"}}}) {
    EXPECT_THROW(NaptRig rig(bad), ConfigError);
  }
}

TEST(NaptApply, ConnectionsOutliveTheModule) {
  NaptRig old;
  const Ep established = old.connect(kA, kServer);
  const Ep other = old.out(udp(kB, kOther));
  old.harness().command("add", Dict{{"external", "198.51.100.7"}});
  NaptRig next(Dict{{"max_connections", 64}, {"udp_timeout_ns", 120 * int64_t{1'000'000'000}}});
  next.harness().module().inherit(old.harness().module());
  next.harness().module().adopt(old.harness().module());
  EXPECT_EQ(next.count("connections"), 2);
  EXPECT_EQ(next.out(tcp(kA, kServer, kAck)), established);
  EXPECT_EQ(next.send(udp(kOther, other)).dst(), kB);
  EXPECT_EQ(next.harness().module().saved_params().at("external").as_list().size(), 2U);
  EXPECT_EQ(next.harness().module().show()["external"].as_list().size(), 2U);
  next.pass(122);
  EXPECT_EQ(next.send(udp(kOther, other)).drop, "no_mapping") << "times are those of the new file";
}

TEST(NaptApply, AddressesThatTheNewFileLacksGetNothingNew) {
  NaptRig old(Dict{{"external", List{"203.0.113.1"}}});
  const Ep end = old.out(udp(kA, kServer));
  NaptRig next(Dict{{"external", List{"198.51.100.7"}}});
  next.harness().module().inherit(old.harness().module());
  next.harness().module().adopt(old.harness().module());
  EXPECT_EQ(next.send(udp(kServer, end)).dst(), kA);
  EXPECT_EQ(next.out(udp(kB, kServer)).ip, ip4(198, 51, 100, 7));
}

}  // namespace napt_limits_test
}  // namespace batchplane
