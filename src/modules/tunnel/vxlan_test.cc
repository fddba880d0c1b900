// SPDX-License-Identifier: BSD-3-Clause
// vxlan_test.cc - frames survive encap and decap unchanged; fields of the outer headers.
#include <gtest/gtest.h>

#include <set>

#include "module_harness.h"

namespace batchplane {
namespace {

constexpr uint32_t kOuter = 50;

Dict tunnel(int64_t id, int vni, const std::string& remote = "192.0.2.2") {
  return {{"id", id}, {"vni", vni}, {"remote", remote}, {"local", "192.0.2.1"}};
}
Dict one_tunnel() { return {{"tunnels", List{tunnel(0, 0x123456)}}}; }

Bytes wrapped(const Bytes& frame, const Dict& params = one_tunnel()) {
  ModuleHarness encap("vxlan_encap", params, 1, nullptr, 9800);
  return encap.run({frame}).at(0).at(0);
}
const uint8_t* outer_ip(const Bytes& frame) { return &frame[net::kEthBytes]; }
uint32_t source_port(const Bytes& frame) { return net::load16(&frame[34]); }
Bytes inner_of(const Bytes& frame) { return {frame.begin() + kOuter, frame.end()}; }

TEST(VxlanEncap, WritesEveryOuterHeader) {
  Dict t = tunnel(0, 0x123456);
  t["dst_mac"] = "02:00:00:00:00:0a";
  t["src_mac"] = "02:00:00:00:00:0b";
  const Bytes frame = make_frame({.len_bytes = 101});
  const Bytes out = wrapped(frame, {{"tunnels", List{t}}});
  ASSERT_EQ(out.size(), frame.size() + kOuter);
  EXPECT_EQ(inner_of(out), frame);
  EXPECT_EQ(out[5], 0x0a);
  EXPECT_EQ(out[11], 0x0b);
  EXPECT_EQ(net::load16(&out[12]), net::kTypeIpv4);
  const uint8_t* ip = outer_ip(out);
  EXPECT_EQ(ip[0], 0x45);
  EXPECT_EQ(net::load16(ip + 2), out.size() - 14);
  EXPECT_EQ(net::load16(ip + 6), 0x4000);
  EXPECT_EQ(ip[8], 64);
  EXPECT_EQ(ip[9], 17);
  EXPECT_EQ(net::checksum_finish(net::checksum_add(ip, 20)), 0);
  EXPECT_EQ(net::load32(ip + 12), 0xc0000201U);
  EXPECT_EQ(net::load32(ip + 16), 0xc0000202U);
  EXPECT_GE(source_port(out), 49152U);
  EXPECT_EQ(net::load16(&out[36]), 4789);
  EXPECT_EQ(net::load16(&out[38]), out.size() - 34);
  EXPECT_EQ(net::load16(&out[40]), 0);  // no UDP checksum
  EXPECT_EQ(net::load32(&out[42]), 0x08000000U);
  EXPECT_EQ(net::load32(&out[46]), 0x12345600U);
}

TEST(VxlanEncap, SourcePortFollowsTheFlow) {
  std::set<uint32_t> ports;
  for (uint16_t i = 0; i < 500; ++i) {
    const Bytes small = wrapped(make_frame({.port_src = i, .ttl = 3}));
    const Bytes large = wrapped(make_frame({.port_src = i, .len_bytes = 700}));
    EXPECT_EQ(source_port(small), source_port(large));
    ports.insert(source_port(small));
  }
  EXPECT_GT(ports.size(), 470U);
  std::set<uint32_t> ports6;
  for (uint8_t i = 0; i < 100; ++i) {
    Bytes v6(80);
    v6[12] = 0x86, v6[13] = 0xdd, v6[14] = 0x60, v6[20] = 17;
    v6[14 + 39] = i;
    ports6.insert(source_port(wrapped(v6)));
    v6[14 + 39] = 0, v6[14 + 41] = i;  // the source port
    ports6.insert(source_port(wrapped(v6)));
  }
  EXPECT_GT(ports6.size(), 185U);
}

TEST(VxlanEncap, TakesTtlAndTrafficClassFromInsideOrNot) {
  Bytes frame = make_frame({.ttl = 9});
  frame[15] = 0xb9;  // DSCP 46, ECT(1)
  Dict params = one_tunnel();
  Bytes out = wrapped(frame, params);
  EXPECT_EQ(outer_ip(out)[1], 0xb9);
  EXPECT_EQ(outer_ip(out)[8], 64);
  params["ttl"] = 0;
  params["dscp"] = 10;
  params["df"] = false;
  out = wrapped(frame, params);
  EXPECT_EQ(outer_ip(out)[1], 10 << 2 | 1);
  EXPECT_EQ(outer_ip(out)[8], 9);
  EXPECT_EQ(net::load16(outer_ip(out) + 6), 0);
  EXPECT_EQ(net::checksum_finish(net::checksum_add(outer_ip(out), 20)), 0);
  params["copy_ecn"] = false;
  EXPECT_EQ(outer_ip(wrapped(frame, params))[1], 40);
  Bytes v6(60);
  v6[12] = 0x86, v6[13] = 0xdd, v6[14] = 0x6b, v6[15] = 0x90, v6[21] = 77;
  params["dscp"] = -1, params["copy_ecn"] = true;
  out = wrapped(v6, params);
  EXPECT_EQ(outer_ip(out)[1], 0xb9);
  EXPECT_EQ(outer_ip(out)[8], 77);
  EXPECT_EQ(net::checksum_finish(net::checksum_add(outer_ip(out), 20)), 0);
  Bytes arp = make_frame();
  arp[13] = 6;
  EXPECT_EQ(outer_ip(wrapped(arp, params))[1], 0);
  // IDs differ where routers may fragment.
  ModuleHarness encap("vxlan_encap", params);
  const Outcome two = encap.run({frame, frame});
  EXPECT_NE(net::load16(outer_ip(two.at(0)[0]) + 4), net::load16(outer_ip(two.at(0)[1]) + 4));
}

TEST(VxlanEncap, ChoosesTheTunnelByWhatItIsToldTo) {
  Dict with_vrf = tunnel(7, 70);
  with_vrf["vrf"] = 5;
  const List tunnels{tunnel(3, 30), with_vrf};
  for (const std::string by : {"tunnel_id", "vrf", "mark"}) {
    ModuleHarness encap("vxlan_encap", {{"tunnels", tunnels}, {"by", by}});
    std::vector<Packet*> pkts;
    for (const uint32_t id : {3U, 7U, 7U, 4U, 3U}) {
      Packet* pkt = encap.make_packet(make_frame());
      if (by == "vrf") pkt->meta().vrf = static_cast<uint16_t>(id);
      if (by == "tunnel_id") pkt->meta().tunnel_id = id;
      if (by == "mark") pkt->set_mark(id);
      pkt->meta().l3_offset_bytes = 14;
      pkts.push_back(pkt);
    }
    const Outcome outcome = encap.run_packets(pkts);
    EXPECT_EQ(outcome.dropped_for("unknown_tunnel"), 1U);
    ASSERT_EQ(outcome.outputs.size(), 4U);
    const uint32_t vnis[] = {30, 70, 70, 30};
    for (uint32_t i = 0; i < 4; ++i) {
      EXPECT_EQ(net::load32(&outcome.outputs[i].bytes[46]) >> 8, vnis[i]);
    }
    EXPECT_EQ(outcome.outputs[1].meta.vrf, 5);
    EXPECT_EQ(outcome.outputs[1].meta.l3_offset_bytes, 14);
    EXPECT_EQ(outcome.outputs[1].meta.l4_offset_bytes, 34);
  }
}

TEST(VxlanEncap, RefusesWhatIsShortLongOrWithoutRoom) {
  ModuleHarness encap("vxlan_encap", one_tunnel(), 1, nullptr, kMaxFrameBytes + 64);
  std::vector<Bytes> frames;
  for (uint32_t len = 0; len < 60; ++len) frames.emplace_back(len);
  frames.push_back(make_frame({.len_bytes = kMaxFrameBytes - 50}));
  frames.push_back(make_frame({.len_bytes = kMaxFrameBytes - 49}));
  const Outcome outcome = encap.run(frames);
  EXPECT_EQ(outcome.dropped_for("too_short"), 14U);
  EXPECT_EQ(outcome.dropped_for("frame_too_long"), 1U);
  EXPECT_EQ(outcome.outputs.size(), 47U);
  Packet* full = encap.make_packet(make_frame());
  full->push_front(kHeadroomBytes - 49);
  EXPECT_EQ(encap.run_packets({full}).dropped_for("no_headroom"), 1U);
  // The headroom fits two levels.
  const Bytes twice = wrapped(wrapped(make_frame()));
  EXPECT_EQ(inner_of(inner_of(twice)), make_frame());
}

TEST(VxlanEncap, LiveEditsAreWholeOrNothing) {
  ModuleHarness encap("vxlan_encap", one_tunnel());
  encap.meta().tunnel_id = 4;
  EXPECT_EQ(encap.run({make_frame()}).dropped_for("unknown_tunnel"), 1U);
  encap.command("add", Dict{{"items", List{tunnel(4, 9), tunnel(5, 10)}}});
  EXPECT_EQ(encap.run({make_frame()}).outputs.size(), 1U);
  const Value before = encap.command("list");
  for (const Value& bad :
       {Value(tunnel(-1, 1)), Value(tunnel(6, 0x1000000)), Value(tunnel(6, 1, "nowhere")),
        Value(Dict{{"id", 6}, {"vni", 1}}), Value(List{tunnel(6, 1), tunnel(6, 2)}), Value("x")}) {
    EXPECT_NE(refusal_of([&] { encap.command("add", bad); }), "");
  }
  EXPECT_NE(refusal_of([&] { encap.command("delete", Dict{{"items", List{4, 99}}}); }), "");
  EXPECT_EQ(encap.command("list"), before);
  encap.command("delete", Dict{{"id", 4}});
  EXPECT_EQ(encap.run({make_frame()}).dropped_for("unknown_tunnel"), 1U);
  encap.command("replace", Dict{{"tunnels", List{tunnel(4, 1)}}});
  EXPECT_EQ(encap.module().saved_params().at("tunnels").as_list().size(), 1U);
  ModuleHarness again("vxlan_encap", encap.module().saved_params());
}

Dict vni(int number, int gate) { return {{"vni", number}, {"gate", gate}}; }

TEST(VxlanDecap, GivesBackTheFrameAndNotesWhereItCameFrom) {
  Dict with_vrf = vni(0x123456, 2);
  with_vrf["vrf"] = 8;
  with_vrf["tunnel_id"] = 77;
  ModuleHarness decap("vxlan_decap", {{"vnis", List{with_vrf, vni(5, 1)}}});
  const Bytes frame = make_frame({.len_bytes = 99});
  Bytes padded = wrapped(frame, {{"tunnels", List{tunnel(0, 5)}}});
  padded.resize(padded.size() + 7);
  const Outcome outcome = decap.run({wrapped(frame), padded, wrapped(frame)});
  EXPECT_EQ(outcome.gates(), (std::vector<uint32_t>{2, 1, 2}));
  for (const Output& output : outcome.outputs) EXPECT_EQ(output.bytes, frame);
  EXPECT_EQ(outcome.outputs[0].meta.vrf, 8);
  EXPECT_EQ(outcome.outputs[0].meta.tunnel_id, 77U);
  EXPECT_EQ(outcome.outputs[1].meta.vrf, 0);
  EXPECT_EQ(outcome.outputs[1].meta.tunnel_id, 5U);
  EXPECT_EQ(outcome.outputs[0].meta.l3_offset_bytes, 14);
  EXPECT_EQ(decap.leaked_pkts(), 0U);
  Bytes tagged = frame;
  const uint8_t tag[] = {0x81, 0, 0, 9};
  tagged.insert(tagged.begin() + 12, tag, tag + 4);
  EXPECT_EQ(decap.run({wrapped(tagged)}).outputs[0].meta.l3_offset_bytes, 18);
}

TEST(VxlanDecap, DropsWhatItCannotTrust) {
  ModuleHarness decap("vxlan_decap", {{"vnis", List{vni(0x123456, 0)}}});
  const Bytes good = wrapped(make_frame());
  const auto reason = [&](Bytes frame, bool mend = true) -> std::string {
    if (mend) mend_ipv4_checksum(frame);
    const Outcome outcome = decap.run({frame});
    return outcome.drops.empty() ? "" : outcome.drops[0].reason;
  };
  const auto changed = [&](size_t at, uint8_t value) {
    Bytes frame = good;
    frame[at] = value;
    return frame;
  };
  EXPECT_EQ(reason(good), "");
  EXPECT_EQ(reason(changed(48, 0)), "unknown_vni");
  EXPECT_EQ(reason(changed(37, 0)), "not_vxlan");     // another port
  EXPECT_EQ(reason(changed(23, 6)), "not_vxlan");     // TCP
  EXPECT_EQ(reason(changed(20, 0x20)), "not_vxlan");  // a fragment
  EXPECT_EQ(reason(changed(42, 0xf7)), "bad_vxlan");  // no VNI flag
  EXPECT_EQ(reason(changed(39, 29)), "bad_vxlan");    // too short for an inner frame
  EXPECT_EQ(reason(changed(38, 1)), "bad_vxlan");     // longer than the packet
  EXPECT_EQ(reason(changed(41, 1)), "bad_l4_checksum");
  EXPECT_EQ(reason(changed(16, 9)), "bad_total_length");
  EXPECT_EQ(reason(changed(14, 0x44), false), "bad_header_length");
  std::vector<Bytes> cut;
  for (size_t len = 0; len < good.size(); ++len)
    cut.emplace_back(good.begin(), good.begin() + static_cast<long>(len));
  EXPECT_EQ(decap.run(cut).drops.size(), good.size());
  ModuleHarness other(
      "vxlan_decap",
      {{"vnis", List{vni(1, 0)}}, {"other_gate", 1}, {"verify_udp_checksum", false}});
  const Outcome outcome = other.run({changed(37, 0), good, make_frame()});
  EXPECT_EQ(outcome.gates(), (std::vector<uint32_t>{1, 1}));
  EXPECT_EQ(outcome.outputs[0].bytes, changed(37, 0));
}

TEST(VxlanDecap, MayAskForTheOtherEndOfTheTunnel) {
  Dict from_peer = vni(0x123456, 0);
  from_peer["remote"] = "192.0.2.1";
  Dict from_other = vni(5, 0);
  from_other["remote"] = "192.0.2.9";
  ModuleHarness decap("vxlan_decap", {{"vnis", List{from_peer, from_other}}});
  const Bytes frame = make_frame();
  const Outcome outcome =
      decap.run({wrapped(frame), wrapped(frame, {{"tunnels", List{tunnel(0, 5)}}})});
  EXPECT_EQ(outcome.at(0), std::vector<Bytes>{frame});
  EXPECT_EQ(outcome.dropped_for("unknown_remote"), 1U);
  ModuleHarness again("vxlan_decap", decap.module().saved_params());
  EXPECT_EQ(again.command("list"), decap.command("list"));
  from_peer["remote"] = "nowhere";
  EXPECT_NE(refusal_of([&] { decap.command("add", from_peer); }), "");
}

TEST(VxlanDecap, ReadsHeadersWithOptionsAndRightUdpChecksums) {
  const Bytes frame = make_frame();
  Bytes outer = wrapped(frame);
  outer.insert(outer.begin() + 34, {1, 1, 1, 0});
  outer[14] = 0x46;
  net::store16(&outer[16], static_cast<uint16_t>(outer.size() - 14));
  mend_ipv4_checksum(outer);
  ModuleHarness sum("l4_checksum", {{"mode", "update"}, {"fill_zero_udp", true}});
  outer = sum.run({outer}).at(0).at(0);
  EXPECT_NE(net::load16(&outer[44]), 0);
  ModuleHarness decap("vxlan_decap", {{"vnis", List{vni(0x123456, 0)}}});
  EXPECT_EQ(decap.run({outer}).at(0), std::vector<Bytes>{frame});
}

TEST(VxlanDecap, CongestionMarksGoInside) {
  ModuleHarness decap("vxlan_decap", {{"vnis", List{vni(0x123456, 0)}}});
  Bytes v6(60);
  v6[12] = 0x86, v6[13] = 0xdd, v6[14] = 0x60, v6[15] = 0x20;
  // RFC 6040, figure 4: [inner][outer]; 4 = drop.
  const uint8_t expected[4][4] = {{0, 0, 0, 4}, {1, 1, 1, 3}, {2, 1, 2, 3}, {3, 3, 3, 3}};
  for (uint8_t inner = 0; inner < 4; ++inner) {
    for (uint8_t outer = 0; outer < 4; ++outer) {
      Bytes v4 = make_frame();
      v4[15] = static_cast<uint8_t>(0xa0 | inner);
      mend_ipv4_checksum(v4);
      v6[15] = static_cast<uint8_t>(0x40 | inner << 4);
      for (const Bytes& frame : {v4, v6}) {
        Bytes packet = wrapped(frame);
        packet[15] = static_cast<uint8_t>((packet[15] & 0xfc) | outer);
        const Outcome outcome = decap.run({packet});
        if (expected[inner][outer] == 4) {
          EXPECT_EQ(outcome.dropped_for("ecn_mismatch"), 1U);
          continue;
        }
        Bytes wanted = frame;
        if (frame[12] == 8) {
          wanted[15] = static_cast<uint8_t>(0xa0 | expected[inner][outer]);
          mend_ipv4_checksum(wanted);
        } else {
          wanted[15] = static_cast<uint8_t>(0x40 | expected[inner][outer] << 4);
        }
        EXPECT_EQ(outcome.at(0), std::vector<Bytes>{wanted}) << int{inner} << int{outer};
      }
    }
  }
}

TEST(VxlanDecap, LiveEdits) {
  ModuleHarness decap("vxlan_decap", {{"vnis", List{vni(1, 0)}}}, 2);
  decap.command("add", vni(0x123456, 1));
  EXPECT_EQ(decap.run({wrapped(make_frame())}).gates(), std::vector<uint32_t>{1});
  const Value before = decap.command("list");
  for (const Value& bad : {Value(vni(2, 2)), Value(vni(0x1000000, 0)), Value(Dict{{"gate", 0}}),
                           Value(Dict{{"vni", 3}, {"colour", 1}})}) {
    EXPECT_NE(refusal_of([&] { decap.command("add", bad); }), "");
  }
  EXPECT_EQ(decap.command("list"), before);
  decap.command("delete", Dict{{"vni", 0x123456}});
  EXPECT_EQ(decap.run({wrapped(make_frame())}).dropped_for("unknown_vni"), 1U);
  EXPECT_EQ(decap.module().show()["vnis"].as_int(), 1);
}

}  // namespace
}  // namespace batchplane
