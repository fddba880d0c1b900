// SPDX-License-Identifier: BSD-3-Clause
// gtpu_test.cc - users' packets survive encap and decap unchanged; peers get replies within the
// rate limit; no reads outside the packet.
#include <gtest/gtest.h>

#include "base/rng.h"
#include "modules/session/session_test_util.h"

namespace batchplane {
namespace {

const Dict kSessions{{"sessions", List{test_session()}}};

Dict with(const Dict& params, const std::string& key, const Value& value) {
  Dict all = params;
  all[key] = value;
  return all;
}

TEST(GtpuDecap, TakesTheUsersPacketOut) {
  ModuleHarness decap("gtpu_decap", kSessions, 4);
  const Bytes inner = make_frame({.ip_src = kTestUe, .len_bytes = 90});
  const Outcome outcome = decap.run({gtpu_frame(100, ip_of(inner))});
  ASSERT_EQ(outcome.at(0).size(), 1U);
  EXPECT_EQ(ip_of(outcome.at(0)[0]), ip_of(inner));
  EXPECT_EQ(outcome.outputs[0].meta.tunnel_id, 100U);
  EXPECT_EQ(outcome.outputs[0].meta.l3_offset_bytes, net::kEthBytes);
}

TEST(GtpuDecap, UnknownTunnelsAreReportedAtALimitedRate) {
  ModuleHarness decap("gtpu_decap", {{"errors_per_s", 100}, {"burst", 5}}, 4);
  decap.set_now_ns(1'000'000'000);
  std::vector<Bytes> frames(20, uplink_frame(77));
  Outcome outcome = decap.run(frames);
  EXPECT_EQ(outcome.dropped_for("unknown_teid"), 20U);
  EXPECT_EQ(outcome.at(1).size(), 5U);
  decap.set_now_ns(1'000'000'000 + 30'000'000);
  outcome = decap.run(frames);
  EXPECT_EQ(outcome.at(1).size(), 3U);
  const Value shown = decap.module().show();
  EXPECT_EQ(shown["error_indications_sent"].as_int(), 8);
  EXPECT_EQ(shown["messages_held_back"].as_int(), 32);
  // TEID 0 gets no error indication (TS 29.281, 7.3.1).
  decap.set_now_ns(9'000'000'000);
  EXPECT_EQ(decap.run({uplink_frame(0)}).at(1).size(), 0U);
  EXPECT_EQ(decap.leaked_pkts(), 0U);
}

TEST(GtpuDecap, AnErrorIndicationNamesTunnelAndAddress) {
  ModuleHarness decap("gtpu_decap", {}, 4);
  const Bytes reply = decap.run({uplink_frame(0x01020304)}).at(1).at(0);
  const Bytes expected = {
      0x36, 26,        0,           20, 0, 0,   0, 0, 0,    0, 0, 0x40,  // header
      1,    2152 >> 8, 2152 & 0xff, 0,                                   // UDP port
      16,   1,         2,           3,  4, 133, 0, 4, 0xc0, 0, 2, 1};
  EXPECT_EQ(Bytes(reply.begin() + 42, reply.end()), expected);
  EXPECT_EQ(net::load32(&reply[26]), 0xc0000201U);
  EXPECT_EQ(net::load32(&reply[30]), 0xc0000202U);
}

TEST(GtpuDecap, WhatNobodyTakesHasAReason) {
  const Bytes other = make_frame({});
  const Bytes note = gtpu_frame(0, {}, 31);
  ModuleHarness alone("gtpu_decap", kSessions, 2);
  const Outcome outcome = alone.run({other, note});
  EXPECT_EQ(outcome.dropped_for("not_gtpu"), 1U);
  EXPECT_EQ(outcome.dropped_for("gtpu_signalling"), 1U);
  ModuleHarness connected("gtpu_decap", kSessions, 4);
  EXPECT_EQ(connected.run({other, note}).gates(), (std::vector<uint32_t>{2, 3}));
}

TEST(GtpuDecap, EndMarkersAreCountedAndPassed) {
  ModuleHarness decap("gtpu_decap", kSessions, 4);
  const Outcome outcome = decap.run({gtpu_frame(100, {}, 254), gtpu_frame(101, {}, 254)});
  EXPECT_EQ(outcome.gates(), (std::vector<uint32_t>{3}));
  EXPECT_EQ(outcome.dropped_for("unknown_teid"), 1U);
  EXPECT_EQ(decap.module().show()["end_markers"].as_int(), 1);
}

Bytes inner6(const char* source) {
  Bytes ip(net::kIpv6Bytes + 8);
  ip[0] = 0x60;
  ip[5] = 8;
  ip[net::kIp6NextHeader] = net::kProtoUdp;
  ip[net::kIp6HopLimit] = 64;
  net::store_address6(&ip[net::kIp6Src], *net::parse_ipv6(source));
  net::store_address6(&ip[net::kIp6Dst], *net::parse_ipv6("2001:db8:99::1"));
  return ip;
}

// Modules behind `inner` write an IPv4 TTL and checksum into every packet, so IPv6 must not go
// there.
TEST(GtpuDecap, Ipv6HasItsOwnGateOrEnds) {
  Dict session = test_session();
  session["ue6"] = "2001:db8:45:2::/64";
  const Dict params{{"sessions", List{session}}};
  const Bytes frame = gtpu_frame(100, inner6("2001:db8:45:2:c633:6407:0:1"));
  ModuleHarness without("gtpu_decap", params, 4);
  EXPECT_EQ(without.run({frame}).dropped_for("gtpu_inner6"), 1U);
  ModuleHarness connected("gtpu_decap", params, 5);
  const Outcome outcome = connected.run({frame, uplink_frame()});
  EXPECT_EQ(outcome.gates(), (std::vector<uint32_t>{4, 0}));
  EXPECT_EQ(ip_of(outcome.at(4).at(0)), inner6("2001:db8:45:2:c633:6407:0:1"));
}

TEST(GtpuDecap, AVersionWithoutAnAddressHasNoSource) {
  ModuleHarness only4("gtpu_decap", kSessions, 5);
  EXPECT_EQ(only4.run({gtpu_frame(100, inner6("::5"))}).dropped_for("ue_source"), 1U);
  Dict session = test_session();
  session.erase("ue");
  session["ue6"] = "2001:db8:45:2::/64";
  ModuleHarness only6("gtpu_decap", {{"sessions", List{session}}}, 5);
  EXPECT_EQ(only6.run({uplink_frame(100, 0)}).dropped_for("ue_source"), 1U);
  EXPECT_EQ(only6.run({gtpu_frame(100, inner6("2001:db8:45:2::5"))}).gates(),
            (std::vector<uint32_t>{4}));
}

TEST(GtpuDecap, OtherAddressesAreNotOurs) {
  ModuleHarness decap("gtpu_decap", with(kSessions, "local", "192.0.2.9"), 4);
  EXPECT_EQ(decap.run({uplink_frame()}).gates(), (std::vector<uint32_t>{2}));
  EXPECT_NE(refusal_of([] { ModuleHarness("gtpu_decap", {{"local", "here"}}); }), "");
}

TEST(GtpuDecap, WithoutSessionsEveryTunnelIsTaken) {
  ModuleHarness decap("gtpu_decap", {{"any_teid", true}}, 4);
  const Outcome outcome = decap.run({uplink_frame(4711, 0x01020304)});
  ASSERT_EQ(outcome.at(0).size(), 1U);
  EXPECT_EQ(outcome.outputs[0].meta.tunnel_id, 4711U);
}

// Random byte changes and cuts: the message is dropped with a reason or comes out, and the
// sanitizers find no read outside it.
TEST(GtpuDecap, SurvivesAnything) {
  ModuleHarness decap("gtpu_decap", kSessions, 4);
  Rng rng(5);
  for (uint32_t round = 0; round < 3000; ++round) {
    std::vector<Bytes> frames;
    for (uint32_t i = 0; i < 8; ++i) {
      Bytes frame = uplink_frame();
      frame[42] = static_cast<uint8_t>(0x30 | rng.below(8));
      for (uint32_t k = rng.below(4); k > 0; --k) {
        frame[34 + rng.below(24)] = static_cast<uint8_t>(rng.below(256));
      }
      if (rng.below(3) == 0) frame.resize(rng.below(static_cast<uint32_t>(frame.size() + 1)));
      frames.push_back(std::move(frame));
    }
    const Outcome outcome = decap.run(frames);
    ASSERT_EQ(outcome.outputs.size() + outcome.drops.size(), frames.size());
  }
  EXPECT_EQ(decap.leaked_pkts(), 0U);
}

struct Tunnel {
  Environment env;
  ModuleHarness downlink;
  ModuleHarness encap;

  explicit Tunnel(const Dict& encap_params = {})
      : downlink("session_downlink", kSessions, 1, &env),
        encap("gtpu_encap", with(encap_params, "local", "192.0.2.1"), 1, &env) {}

  Outcome send(const std::vector<Bytes>& frames) {
    std::vector<Packet*> pkts;
    for (const Bytes& frame : frames) {
      Packet* pkt = downlink.make_packet(frame);
      Packet* one[] = {pkt};
      downlink.info().run(&downlink.module(), downlink.ctx(), one, 1);
      Packet* sent = encap.make_packet(frame);
      sent->set_mark(pkt->mark());
      downlink.ctx().free(pkt);
      pkts.push_back(sent);
    }
    return encap.run_packets(std::move(pkts));
  }
};

TEST(GtpuEncap, WhatGoesInComesOut) {
  Tunnel tunnel;
  const Bytes frame = downlink_frame();
  const Bytes out = tunnel.send({frame}).at(0).at(0);
  ASSERT_EQ(out.size(), frame.size() + 36);
  EXPECT_EQ(net::load32(&out[46]), 901U);
  EXPECT_EQ(net::load32(&out[30]), 0xc0000202U);
  EXPECT_EQ(net::checksum_finish(net::checksum_add(&out[14], 20)), 0);
  ModuleHarness decap("gtpu_decap", {{"any_teid", true}}, 4);
  EXPECT_EQ(ip_of(decap.run({out}).at(0).at(0)), ip_of(frame));
}

TEST(GtpuEncap, EachBearerHasItsTunnel) {
  Tunnel tunnel;
  const std::vector<Bytes> out = tunnel.send({downlink_frame(), downlink_frame(5000)}).at(0);
  EXPECT_EQ(net::load32(&out.at(0)[46]), 901U);
  EXPECT_EQ(net::load32(&out.at(1)[46]), 902U);
}

TEST(GtpuEncap, FlowsHavePortsOfTheirOwnWhereWanted) {
  Tunnel tunnel({{"source_port", 0}});
  const std::vector<Bytes> out = tunnel.send({downlink_frame(1), downlink_frame(2)}).at(0);
  EXPECT_GE(net::load16(&out.at(0)[34]), 49152);
  EXPECT_NE(net::load16(&out.at(0)[34]), net::load16(&out.at(1)[34]));
}

TEST(GtpuEncap, OuterHeaderTakesClassAndCongestion) {
  Bytes frame = downlink_frame();
  frame[15] = 0xb9;
  EXPECT_EQ(Tunnel().send({frame}).at(0).at(0)[15], 0xb9);
  const Bytes out = Tunnel({{"dscp", 10}, {"ttl", 9}, {"df", false}}).send({frame}).at(0).at(0);
  EXPECT_EQ(out[15], 10 << 2 | 1);
  EXPECT_EQ(out[22], 9);
  EXPECT_EQ(net::load16(&out[20]), 0);
  EXPECT_EQ(net::checksum_finish(net::checksum_add(&out[14], 20)), 0);
}

Value far_with_peer(const char* peer) {
  return Dict{{"seid", 1}, {"fars", List{Dict{{"id", 1}, {"peer", peer}}}}};
}

TEST(GtpuEncap, APeerMayHaveAnIpv6Address) {
  Tunnel tunnel({{"local6", "2001:db8::1"}, {"source_port", 0}, {"dscp", 10}});
  const Bytes frame = downlink_frame();
  tunnel.encap.command("modify", far_with_peer("2001:db8::2"));
  const Outcome sent = tunnel.send({frame});
  ASSERT_EQ(sent.outputs.size(), 1U) << sent.drops.at(0).reason;
  const Bytes out = sent.at(0).at(0);
  ASSERT_EQ(out.size(), frame.size() + 56);
  EXPECT_EQ(net::load16(&out[12]), net::kTypeIpv6);
  EXPECT_EQ(net::load16(&out[14]) >> 4 & 0xff, 10 << 2);
  EXPECT_EQ(net::load32(&out[66]), 901U);
  EXPECT_GE(net::load16(&out[54]), 49152);
  ModuleHarness decap("gtpu_decap", {{"any_teid", true}, {"local6", "2001:db8::2"}}, 4);
  const Outcome whole = decap.run({out});
  ASSERT_EQ(whole.gates(), (std::vector<uint32_t>{0}));
  EXPECT_EQ(ip_of(whole.at(0).at(0)), ip_of(frame));
  // A corrupted byte, no checksum, another address.
  Bytes changed = out;
  changed.back() ^= 1;
  Bytes unsummed = out;
  net::store16(&unsummed[60], 0);
  EXPECT_EQ(decap.run({changed, unsummed}).dropped_for("bad_l4_checksum"), 2U);
  Bytes other = out;
  other[53] = 9;
  EXPECT_EQ(decap.run({other}).gates(), (std::vector<uint32_t>{2}));
  // The other bearer's tunnel is unchanged, and this one can go back to IPv4.
  EXPECT_EQ(tunnel.send({downlink_frame(5000)}).at(0).at(0).size(), frame.size() + 36);
  tunnel.encap.command("modify", far_with_peer("192.0.2.2"));
  EXPECT_EQ(tunnel.send({frame}).at(0).at(0).size(), frame.size() + 36);
}

TEST(GtpuEncap, WithoutAnIpv6AddressHereThatIsSaid) {
  Tunnel tunnel;
  tunnel.encap.command("modify", far_with_peer("2001:db8::2"));
  EXPECT_EQ(tunnel.send({downlink_frame()}).dropped_for("no_local6"), 1U);
  EXPECT_NE(refusal_of([&] { tunnel.encap.command("modify", far_with_peer("::")); }), "");
  EXPECT_NE(refusal_of([] {
              ModuleHarness("gtpu_encap", {{"local", "192.0.2.1"}, {"local6", "192.0.2.1"}});
            }),
            "");
  EXPECT_NE(refusal_of([] { ModuleHarness("gtpu_decap", {{"local6", "here"}}); }), "");
}

// Slots of peer addresses are reused: each tunnel keeps its own address.
TEST(GtpuEncap, Ipv6PeersComeAndGo) {
  Tunnel tunnel(Dict{{"local6", "2001:db8::1"}});
  for (int round = 0; round < 20; ++round) {
    const std::string peer = "2001:db8::" + std::to_string(100 + round);
    tunnel.encap.command("modify", far_with_peer(round % 4 == 3 ? "192.0.2.7" : peer.c_str()));
    const Bytes out = tunnel.send({downlink_frame()}).at(0).at(0);
    if (round % 4 == 3) continue;
    EXPECT_EQ(net::format_ipv6(net::load_address6(&out[38])), peer);
  }
}

TEST(GtpuEncap, RefusesWhatDoesNotFit) {
  Tunnel tunnel;
  Bytes too_long = downlink_frame();
  net::store16(&too_long[16], 2000);
  mend_ipv4_checksum(too_long);
  EXPECT_EQ(tunnel.send({too_long}).dropped_for("bad_total_length"), 1U);
  EXPECT_EQ(tunnel.encap.run({downlink_frame()}).dropped_for("session_gone"), 1U);
  tunnel.encap.command(
      "modify",
      Dict{{"seid", 1}, {"fars", List{Dict{{"id", 1}, {"remove", true}}, Dict{{"id", 1}}}}});
  EXPECT_EQ(tunnel.send({downlink_frame()}).dropped_for("no_tunnel"), 1U);
  EXPECT_NE(refusal_of([] { ModuleHarness("gtpu_encap", {{"local", "0.0.0.0"}}); }), "");
}

}  // namespace
}  // namespace batchplane
