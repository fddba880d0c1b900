// SPDX-License-Identifier: BSD-3-Clause
// acl_test.cc - actions, fields and order of access rules, malformed packets, and bad input.
#include <gtest/gtest.h>

#include "modules/acl/acl_test_util.h"

namespace batchplane {
namespace {

Bytes fragment_frame(uint16_t offset_units, uint8_t proto = net::kProtoUdp) {
  Bytes frame = make_frame({.proto = proto});
  net::store16(&frame[net::kEthBytes + net::kIpFragment], offset_units);
  mend_ipv4_checksum(frame);
  return frame;
}

// An IPv6 packet with `chain` of extension headers between the fixed header and 16 bytes of
// transport header.
Bytes ipv6_frame(uint8_t proto, uint16_t port, const Bytes& chain = {}, uint8_t first = 0) {
  constexpr uint32_t kFixedBytes = net::kEthBytes + 40;
  Bytes frame(kFixedBytes + chain.size() + 16);
  net::store16(&frame[12], net::kTypeIpv6);
  uint8_t* ip = &frame[net::kEthBytes];
  ip[0] = 0x60;
  net::store16(ip + 4, static_cast<uint16_t>(chain.size() + 16));
  ip[6] = chain.empty() ? proto : first;
  const uint8_t prefix[] = {0x20, 0x01, 0x0d, 0xb8};
  std::ranges::copy(prefix, ip + 8);
  std::ranges::copy(prefix, ip + 24);
  ip[39] = 1;
  std::ranges::copy(chain, frame.begin() + kFixedBytes);
  net::store16(&frame[kFixedBytes + chain.size()], 1000);
  net::store16(&frame[kFixedBytes + chain.size() + 2], port);
  return frame;
}

TEST(Acl, TheFirstMatchDecides) {
  ModuleHarness harness("acl",
                        with_rules({rule("deny", {{"dst", "10.0.0.2"}, {"dst_ports", 53}}),
                                    rule("gate 2", {{"src", "10.0.0.0/8"}, {"dst_ports", "50-60"}}),
                                    rule("mark 7", {{"proto", "udp"}, {"src_ports", 1000}})}));
  EXPECT_EQ(harness.n_gates(), 3U);
  Packet* marked = harness.make_packet(make_frame({.port_dst = 99}));
  const Outcome outcome =
      harness.run_packets({harness.make_packet(make_frame({.port_dst = 53})),
                           harness.make_packet(make_frame({.port_dst = 60})), marked,
                           harness.make_packet(make_frame({.port_src = 1, .port_dst = 99}))});
  EXPECT_EQ(outcome.gates(), (std::vector<uint32_t>{2, 0}));
  EXPECT_EQ(outcome.dropped_for("acl_denied"), 2U);
  EXPECT_NE(outcome.outputs[1].meta.flags & kMetaMarked, 0);
  const Value list = harness.command("list");
  for (uint32_t i = 0; i < 3; ++i) EXPECT_EQ(list["rules"].as_list()[i]["pkts"].as_int(), 1);
  EXPECT_EQ(list["default_pkts"].as_int(), 1);
  EXPECT_EQ(harness.leaked_pkts(), 0U);
}

TEST(Acl, APriorityGoesBeforeTheOrder) {
  ModuleHarness harness("acl",
                        with_rules({rule("deny", {{"src", "10.0.0.0/8"}}),
                                    rule("permit", {{"src", "10.0.0.1"}, {"priority", 1}})}));
  EXPECT_EQ(harness.run({make_frame()}).outputs.size(), 1U);
  EXPECT_EQ(harness.module().show()["shadowed_rules"].as_int(), 0);
}

TEST(Acl, TcpFlags) {
  ModuleHarness harness("acl", with_rules({rule("gate 1", {{"tcp_flags", "syn,!ack"}}),
                                           rule("gate 2", {{"tcp_flags", "0x10/0x10"}})}));
  EXPECT_EQ(harness.run({tcp_frame(2), tcp_frame(0x12), tcp_frame(0x10)}).gates(),
            (std::vector<uint32_t>{1, 2, 2}));
  const Outcome outcome = harness.run({tcp_frame(4), make_frame(), tcp_frame(0x1a)});
  EXPECT_EQ(outcome.dropped_for("acl_denied"), 2U);
  EXPECT_EQ(outcome.gates(), (std::vector<uint32_t>{2}));
}

TEST(Acl, PacketsWithoutPortsMatchOnlyRulesWithout) {
  ModuleHarness harness(
      "acl", with_rules({rule("gate 1", {{"dst_ports", "0-30000"}}),
                         rule("gate 2", {{"proto", "icmp"}}), rule("gate 3", {{"proto", "udp"}})}));
  const Outcome outcome = harness.run({make_frame({.proto = net::kProtoIcmp}), fragment_frame(10),
                                       fragment_frame(0x2000), make_frame()});
  EXPECT_EQ(outcome.gates(), (std::vector<uint32_t>{2, 3, 1, 1}));
}

TEST(Acl, OptionsDoNotHideThePorts) {
  for (const char* ports : {"2000", "any"}) {
    ModuleHarness harness("acl", with_rules({rule("gate 1", {{"dst_ports", ports}})}));
    const Outcome outcome =
        harness.run({make_frame({.len_bytes = 90, .options_bytes = 40}), make_frame()});
    EXPECT_EQ(outcome.gates(), (std::vector<uint32_t>{1, 1})) << ports;
  }
}

TEST(Acl, Ipv6BesideIpv4) {
  ModuleHarness harness(
      "acl",
      with_rules({rule("gate 1", {{"dst", "2001:db8::1"}, {"dst_ports", 443}, {"proto", "tcp"}}),
                  rule("gate 2", {{"src", "2001:db8::/32"}, {"proto", "udp"}}),
                  rule("gate 3", {{"src", "0.0.0.0/0"}}), rule("gate 4")}));
  const Bytes hop_by_hop{net::kProtoTcp, 0, 1, 4, 0, 0, 0, 0};
  const Bytes later_fragment{net::kProtoTcp, 0, 0, 8, 0, 0, 0, 1};
  const Outcome outcome =
      harness.run({ipv6_frame(net::kProtoTcp, 443), ipv6_frame(net::kProtoTcp, 443, hop_by_hop, 0),
                   ipv6_frame(net::kProtoUdp, 443), make_frame(), ipv6_frame(net::kProtoTcp, 80),
                   ipv6_frame(net::kProtoTcp, 443, later_fragment, 44)});
  EXPECT_EQ(outcome.gates(), (std::vector<uint32_t>{1, 1, 2, 3, 4, 4}));
}

TEST(Acl, NonIpPackets) {
  Bytes arp = make_frame();
  net::store16(&arp[12], net::kTypeArp);
  ModuleHarness permits("acl");
  EXPECT_EQ(permits.run({arp}).outputs.size(), 1U);
  EXPECT_EQ(permits.run({make_frame()}).dropped_for("acl_denied"), 1U);
  ModuleHarness denies("acl", {{"other", "deny"}, {"default_action", "permit"}});
  EXPECT_EQ(denies.run({arp}).dropped_for("acl_denied"), 1U);
  EXPECT_EQ(denies.run({make_frame()}).outputs.size(), 1U);
  EXPECT_EQ(denies.module().show()["other_pkts"].as_int(), 1);
}

TEST(Acl, ShortAndBrokenPacketsAreDroppedNeverRead) {
  for (const bool reads_ports : {false, true}) {
    Dict fields;
    if (reads_ports) fields["dst_ports"] = "0-60000";
    ModuleHarness harness("acl", with_rules({rule("permit", fields)}));
    std::vector<Bytes> frames;
    for (uint32_t len = 0; len < 60; ++len) {
      frames.push_back(make_frame());
      frames.back().resize(len);
    }
    const Outcome outcome = harness.run(frames);
    EXPECT_EQ(outcome.dropped_for("too_short"), 60U);
    Bytes version = make_frame();
    version[net::kEthBytes] = 0x65;
    Bytes small_header = make_frame();
    small_header[net::kEthBytes] = 0x44;
    EXPECT_EQ(harness.run({version, small_header}).dropped_for("acl_bad_header"), 2U);
    // The total length ends before the ports.
    Bytes claims_less = make_frame();
    net::store16(&claims_less[net::kEthBytes + net::kIpTotalLength], 22);
    EXPECT_EQ(harness.run({claims_less}).dropped_for("too_short"), reads_ports ? 1U : 0U);
    EXPECT_EQ(harness.run({fragment_frame(1, net::kProtoTcp)}).dropped_for("acl_tiny_fragment"),
              reads_ports ? 1U : 0U);
  }
  ModuleHarness harness("acl", with_rules({rule("permit", {{"src", "::/0"}})}));
  Bytes chain;
  for (int i = 0; i < 9; ++i) chain.insert(chain.end(), {60, 0, 1, 4, 0, 0, 0, 0});
  EXPECT_EQ(harness.run({ipv6_frame(17, 1, chain, 60)}).dropped_for("acl_bad_header"), 1U);
  const Bytes too_long{17, 200, 1, 4, 0, 0, 0, 0};
  EXPECT_EQ(harness.run({ipv6_frame(17, 1, too_long, 0)}).dropped_for("too_short"), 1U);
}

TEST(Acl, BadInput) {
  const auto expect = [](const Dict& fields, const char* part) {
    const std::string error = error_of(with_rules({fields}));
    EXPECT_NE(error.find(part), std::string::npos) << error;
  };
  expect(rule("permit", {{"src", "10.0.0.1/8"}}), "host bits");
  expect(rule("permit", {{"src", "10.0.0.0/33"}}), "prefix length");
  expect(rule("permit", {{"src", "10.0.0"}}), "no prefix");
  expect(rule("permit", {{"src", 10}}), "expected a prefix");
  expect(rule("permit", {{"src", "10.0.0.0/8"}, {"dst", "::/0"}}), "IP versions");
  expect(rule("permit", {{"dst_ports", "9-1"}}), "upside down");
  expect(rule("permit", {{"dst_ports", 70000}}), "out of range");
  expect(rule("permit", {{"dst_ports", -1}}), "out of range");
  expect(rule("permit", {{"dst_ports", "http"}}), "no port");
  expect(rule("permit", {{"proto", "tpc"}}), "expected a protocol");
  expect(rule("permit", {{"proto", "udp"}, {"tcp_flags", "syn"}}), "another protocol");
  expect(rule("permit", {{"tcp_flags", "sin"}}), "no TCP flag");
  expect(rule("permit", {{"tcp_flags", "0x3/0x1"}}), "value/mask");
  expect(rule("permit", {{"dst_port", 1}}), "did you mean dst_ports");
  expect(rule("permit", {{"priority", "high"}}), "expected an integer");
  expect(rule("reject"), "no action");
  expect(rule("gate"), "no action");
  expect(rule("gate 5000"), "not there");
  expect({{"src", "10.0.0.0/8"}}, "expected an action");
  EXPECT_NE(error_of(with_rules({rule("permit"), rule("deny")})).find("matches the same"),
            std::string::npos);
  EXPECT_NE(error_of(with_rules({rule("permit", {{"name", "a"}}),
                                 rule("deny", {{"proto", 9}, {"name", "a"}})}))
                .find("are called"),
            std::string::npos);
  EXPECT_NE(error_of({{"default_action", "gate 4096"}}).find("not there"), std::string::npos);
  EXPECT_NE(error_of({{"synthetic", Dict{{"style", "none"}}}}).find("no style"), std::string::npos);
  EXPECT_NE(error_of({{"synthetic", Dict{{"count", 10001}}}}).find("range"), std::string::npos);
}

TEST(Acl, TheRulesOfThePapers) {
  ModuleHarness paper("acl", {{"synthetic", Dict{{"style", "paper"}}}});
  const Value list = paper.command("list");
  EXPECT_EQ(list["total"].as_int(), 100);
  EXPECT_EQ(list["rules"].as_list()[0]["src"].as_string(), "2.0.1.0/24");
  const Bytes denied = make_frame({.ip_src = 0x02000105, .ip_dst = 0x02000106});
  const Outcome outcome = paper.run({denied, make_frame()});
  EXPECT_EQ(outcome.dropped_for("acl_denied"), 1U);
  EXPECT_EQ(outcome.outputs.size(), 1U);
  ModuleHarness script("acl", {{"synthetic", Dict{{"style", "script"}, {"count", 100}}}});
  EXPECT_EQ(script.run({denied}).outputs.size(), 1U);
}

}  // namespace
}  // namespace batchplane
