// SPDX-License-Identifier: BSD-3-Clause
// napt_test.cc - mappings, filtering and timers as RFC 4787 and RFC 5382 require.
#include "napt_test_rig.h"

namespace batchplane {
namespace napt_test {

using namespace nattest;  // NOLINT: helpers of these tests

constexpr Ep kA{kHostA, 5000};
constexpr Ep kB{kHostB, 5000};

TEST(Napt, Rfc4787Req1MappingDoesNotDependOnTheRemoteEnd) {
  NaptRig rig;
  const Ep first = rig.out(udp(kA, kServer));
  EXPECT_EQ(rig.out(udp(kA, kOther)), first);
  EXPECT_EQ(rig.out(udp(kA, {kServer.ip, 7777})), first);
  EXPECT_EQ(rig.count("mappings"), 1);
  EXPECT_EQ(rig.count("connections"), 3);
}

TEST(Napt, Rfc5382Req1TcpMappingDoesNotDependOnTheRemoteEnd) {
  NaptRig rig;
  EXPECT_EQ(rig.connect(kA, kServer), rig.connect(kA, kOther));
}

TEST(Napt, Rfc4787Req2PairedPoolingKeepsAHostOnOneAddress) {
  NaptRig rig(Dict{{"external", List{"203.0.113.0/28"}}});
  std::set<uint32_t> used;
  for (uint32_t host = 0; host < 200; ++host) {
    const uint32_t ip = kHostA + host;
    const uint32_t address = rig.out(udp({ip, 1000}, kServer)).ip;
    used.insert(address);
    EXPECT_EQ(rig.out(udp({ip, 1001}, kOther)).ip, address);
    EXPECT_EQ(rig.out(tcp({ip, 1002}, kOther, kSyn)).ip, address);
    EXPECT_EQ(rig.out(echo(ip, kServer.ip, 3)).ip, address);
  }
  EXPECT_EQ(used.size(), 16U);
}

// With any seed.
TEST(Napt, HostsAreSpreadOverAllAddresses) {
  for (int start = 0; start < 40; ++start) {
    NaptRig rig(Dict{{"external", List{"203.0.113.0/28"}}});
    std::map<uint32_t, uint32_t> hosts;
    for (uint32_t host = 0; host < 240; ++host) {
      ++hosts[rig.out(udp({kHostA + host, 1000}, kServer)).ip];
    }
    EXPECT_EQ(hosts.size(), 16U) << "start " << start;
    for (const auto& [address, n] : hosts) EXPECT_LT(n, 45U) << "start " << start;
  }
}

TEST(Napt, Rfc4787Req3PortsArePreservedAndNeverOverloaded) {
  NaptRig rig;
  EXPECT_EQ(rig.out(udp(kA, kServer)), (Ep{kExternal, kA.port}));
  const Ep second = rig.out(udp(kB, kServer));
  EXPECT_EQ(second.ip, kExternal);
  EXPECT_NE(second.port, kA.port);
  EXPECT_GE(second.port, 1024);
  EXPECT_EQ(rig.out(tcp(kB, kServer, kSyn)).port, kB.port) << "TCP has ports of its own";
}

TEST(Napt, Rfc4787Req5UdpMappingLastsFiveMinutesAndNotMuchLonger) {
  NaptRig rig;
  const Ep external = rig.out(udp(kA, kServer));
  rig.at(100 + 299.9);
  EXPECT_EQ(rig.send(udp(kServer, external)).dst(), kA);
  rig.at(100 + 299.9 + 299.9);
  EXPECT_EQ(rig.count("connections"), 1);
  rig.at(100 + 299.9 + 301);
  EXPECT_EQ(rig.count("connections"), 0);
  EXPECT_EQ(rig.count("mappings"), 0);
  EXPECT_EQ(rig.count("inside_hosts"), 0);
  EXPECT_EQ(rig.send(udp(kServer, external)).drop, "no_mapping");
}

TEST(Napt, ExpiredConnectionsAreNotFoundEvenBeforeTheTimersRun) {
  NaptRig rig;
  const Ep external = rig.out(udp(kA, kServer));
  rig.harness().set_now_ns(402 * kSecond);
  EXPECT_EQ(rig.send(udp(kServer, external)).drop, "no_mapping");
}

TEST(Napt, Rfc4787Req5aDeclaredPortsHaveShorterTimes) {
  NaptRig rig(Dict{{"udp_short_ports", List{53}}});
  rig.out(udp(kA, kServer));
  rig.out(udp(kA, kOther));
  rig.pass(31);
  EXPECT_EQ(rig.count("connections"), 1);
  rig.pass(270);
  EXPECT_EQ(rig.count("connections"), 0);
}

TEST(Napt, Rfc4787Req6OutboundPacketsRefreshInboundOnesIfWanted) {
  for (const bool inbound : {true, false}) {
    NaptRig rig(Dict{{"udp_inbound_refresh", inbound}});
    const Ep external = rig.out(udp(kA, kServer));
    rig.pass(200);
    EXPECT_EQ(rig.send(udp(kServer, external)).drop, "");
    rig.pass(200);
    EXPECT_EQ(rig.count("connections"), inbound ? 1 : 0);
    rig.out(udp(kA, kServer));
    rig.pass(200);
    rig.out(udp(kA, kServer));
    rig.pass(200);
    EXPECT_EQ(rig.count("connections"), 1);
  }
}

TEST(Napt, Rfc4787Req8FilteringIsSelectable) {
  const struct {
    const char* filtering;
    const char* same_address;
    const char* stranger;
  } rows[] = {{"endpoint_independent", "", ""},
              {"address_dependent", "", "nat_filtered"},
              {"address_and_port_dependent", "nat_filtered", "nat_filtered"}};
  for (const auto& row : rows) {
    NaptRig rig(Dict{{"filtering", row.filtering}});
    const Ep external = rig.out(udp(kA, kServer));
    EXPECT_EQ(rig.send(udp(kServer, external)).drop, "") << row.filtering;
    EXPECT_EQ(rig.send(udp({kServer.ip, 5}, external)).drop, row.same_address) << row.filtering;
    EXPECT_EQ(rig.send(udp(kOther, external)).drop, row.stranger) << row.filtering;
    const Ep tcp_external = rig.connect(kA, kServer);
    EXPECT_EQ(rig.send(tcp(kOther, tcp_external, kSyn)).drop, row.stranger) << row.filtering;
  }
}

TEST(Napt, AddressFilterForgetsARemoteWithItsLastConnection) {
  NaptRig rig(Dict{{"filtering", "address_dependent"}});
  const Ep external = rig.out(udp(kA, kServer));
  rig.pass(200);
  rig.out(udp(kA, kOther));
  EXPECT_EQ(rig.send(udp({kServer.ip, 1}, external)).drop, "");
  rig.pass(200);
  rig.out(udp(kA, kOther));
  rig.pass(200);
  EXPECT_EQ(rig.send(udp({kServer.ip, 1}, external)).drop, "nat_filtered");
}

TEST(Napt, Rfc5382Req2SimultaneousOpenPasses) {
  NaptRig rig(Dict{{"filtering", "address_and_port_dependent"}});
  const Ep external = rig.out(tcp(kA, kServer, kSyn));
  EXPECT_EQ(rig.send(tcp(kServer, external, kSyn)).dst(), kA);
  rig.out(tcp(kA, kServer, kSyn | kAck));
  EXPECT_EQ(rig.send(tcp(kServer, external, kAck)).dst(), kA);
  EXPECT_EQ(rig.in_state("tcp_open"), 1);
}

TEST(Napt, Rfc5382Req4UnsolicitedSynIsDroppedSilently) {
  NaptRig rig;
  EXPECT_EQ(rig.send(tcp(kServer, {kExternal, 80}, kSyn)).drop, "no_mapping");
  EXPECT_EQ(rig.count("connections"), 0);
}

TEST(Napt, Rfc5382Req5EstablishedLastsTwoHoursAndFourMinutes) {
  NaptRig rig;
  rig.connect(kA, kServer);
  EXPECT_EQ(rig.in_state("tcp_open"), 1);
  rig.pass(7439);
  rig.out(tcp(kA, kServer, kAck));
  rig.pass(7439);
  EXPECT_EQ(rig.count("connections"), 1);
  rig.pass(2);
  EXPECT_EQ(rig.count("connections"), 0);
}

TEST(Napt, Rfc5382Req5PartiallyOpenIsTransitory) {
  NaptRig rig;
  const Ep external = rig.out(tcp(kA, kServer, kSyn));
  EXPECT_EQ(rig.send(tcp(kServer, external, kSyn | kAck)).drop, "");
  EXPECT_EQ(rig.in_state("tcp_opening"), 1) << "the client has not confirmed";
  rig.pass(239);
  EXPECT_EQ(rig.count("connections"), 1);
  rig.pass(2);
  EXPECT_EQ(rig.count("connections"), 0);
}

TEST(Napt, Rfc5382Req5ClosingIsTransitoryAfterBothFins) {
  NaptRig rig;
  const Ep external = rig.connect(kA, kServer);
  rig.out(tcp(kA, kServer, kFin | kAck));
  EXPECT_EQ(rig.in_state("tcp_open"), 1) << "half closed";
  rig.pass(300);
  EXPECT_EQ(rig.send(tcp(kServer, external, kFin | kAck)).drop, "");
  EXPECT_EQ(rig.in_state("tcp_closing"), 1);
  rig.out(tcp(kA, kServer, kAck));
  rig.pass(239);
  EXPECT_EQ(rig.count("connections"), 1);
  rig.pass(2);
  EXPECT_EQ(rig.count("connections"), 0);
}

TEST(Napt, Rfc7857Req2AResetIsTranslatedAndLeavesATransitoryConnection) {
  NaptRig rig;
  const Ep external = rig.connect(kA, kServer);
  EXPECT_EQ(rig.send(tcp(kServer, external, kRst)).dst(), kA);
  EXPECT_EQ(rig.in_state("tcp_closing"), 1);
  rig.pass(241);
  EXPECT_EQ(rig.count("connections"), 0);
}

TEST(Napt, TheSameEndsMayConnectAgain) {
  NaptRig rig;
  rig.connect(kA, kServer);
  rig.out(tcp(kA, kServer, kRst));
  rig.connect(kA, kServer);
  EXPECT_EQ(rig.in_state("tcp_open"), 1);
  EXPECT_EQ(rig.count("connections"), 1);
}

TEST(Napt, TcpWithoutSynOpensOnlyWhenLoose) {
  NaptRig loose;
  EXPECT_EQ(loose.send(tcp(kA, kServer, kAck)).drop, "");
  EXPECT_EQ(loose.send(tcp(kB, kServer, kRst)).drop, "no_mapping");
  NaptRig strict(Dict{{"tcp_loose", false}});
  EXPECT_EQ(strict.send(tcp(kA, kServer, kAck)).drop, "no_mapping");
  EXPECT_EQ(strict.send(tcp(kA, kServer, kSyn)).drop, "");
}

TEST(Napt, InboundConnectionsFollowTheMapping) {
  NaptRig rig;
  const Ep external = rig.connect(kA, kServer);
  EXPECT_EQ(rig.send(tcp(kOther, external, kSyn)).dst(), kA);
  EXPECT_EQ(rig.out(tcp(kA, kOther, kSyn | kAck)), external);
  EXPECT_EQ(rig.send(tcp(kOther, external, kAck)).gate, 1U);
  EXPECT_EQ(rig.in_state("tcp_open"), 2);
}

TEST(Napt, UnmappedIsDroppedOrLocal) {
  const Ep own{kExternal, 22};
  NaptRig drop;
  EXPECT_EQ(drop.send(tcp(kOther, own, kSyn)).drop, "no_mapping");
  EXPECT_EQ(drop.send(udp(own, kOther)).drop, "nat_own_source");
  NaptRig local(Dict{{"unmapped", "local"}});
  for (const Bytes& frame : {tcp(kOther, own, kSyn), tcp(kA, own, kSyn), udp(kOther, own),
                             echo(kOther.ip, kExternal, 1)}) {
    const Sent sent = local.send(frame);
    EXPECT_EQ(sent.gate, 2U) << sent.drop;
    EXPECT_EQ(sent.bytes, frame);
  }
  const Sent answer = local.send(tcp(own, kOther, kSyn | kAck));
  EXPECT_EQ(answer.gate, 0U);
  EXPECT_EQ(answer.src(), own);
  EXPECT_EQ(local.count("connections"), 0);
}

TEST(Napt, UdpWithoutChecksumStaysSo) {
  NaptRig rig;
  const Sent sent =
      rig.send(frame_of(ipv4({.src = kA.ip, .dst = kServer.ip}, udp_part(kA, kServer, 10, false))));
  EXPECT_EQ(net::load16(l4_of(sent.bytes) + 6), 0);
  for (int i = 0; i < 3; ++i) rig.send(udp(kServer, sent.src()));
}

TEST(Napt, HeaderOptionsMoveTheTransportHeader) {
  NaptRig rig;
  const Sent sent = rig.send(frame_of(
      ipv4({.src = kA.ip, .dst = kServer.ip, .options_bytes = 12}, udp_part(kA, kServer))));
  EXPECT_EQ(sent.src(), (Ep{kExternal, kA.port}));
  EXPECT_EQ(rig.send(udp(kServer, sent.src())).dst(), kA);
}

TEST(Napt, ABatchIsTranslatedPacketByPacketInOrder) {
  NaptRig rig;
  std::vector<Bytes> frames;
  for (uint16_t i = 0; i < 100; ++i) frames.push_back(udp({kHostA + i % 7U, 4000}, kServer));
  const Outcome outcome = rig.harness().run(frames);
  ASSERT_EQ(outcome.outputs.size(), 100U);
  EXPECT_EQ(rig.count("connections"), 7);
  for (uint16_t i = 7; i < 100; ++i)
    EXPECT_EQ(outcome.outputs[i].bytes, outcome.outputs[i - 7U].bytes);
}

}  // namespace napt_test
}  // namespace batchplane
