// SPDX-License-Identifier: BSD-3-Clause
// acl_cases.cc - inputs for fuzzing access lists, and benchmarks with 100 to 10,000 rules and
// packets drawn from them.
#include "cases/case_tools.h"
#include "modules/acl/acl_rule.h"

namespace batchplane::cases {
namespace {

// A packet that matches the rule; earlier rules may match it, too.
std::vector<uint8_t> frame_of(const AclMatch& match, uint32_t i) {
  std::vector<uint8_t> frame = udp_frame(kRouterMac, 0);
  uint8_t* ip = &frame[net::kEthBytes];
  const auto address = [i](const batchplane::AclPrefix& prefix) {
    return net::load32(prefix.bytes.data()) | (i * 2654435761U & ~net::mask4(prefix.length));
  };
  net::store32(ip + net::kIpSrc, address(match.src));
  net::store32(ip + net::kIpDst, address(match.dst));
  ip[net::kIpProto] = match.proto_mask != 0 ? match.proto : net::kProtoUdp;
  net::store16(ip + net::kIpChecksum, 0);
  net::store16(ip + net::kIpChecksum, net::checksum_finish(net::checksum_add(ip, net::kIpv4Bytes)));
  net::store16(ip + net::kIpv4Bytes, static_cast<uint16_t>(match.src_ports.first + i % 7));
  net::store16(ip + net::kIpv4Bytes + 2, match.dst_ports.first);
  return frame;
}

void add_random(std::vector<CostCase>& all, uint32_t count, double per_batch_ns,
                double per_pkt_ns) {
  // All rules permit, since the benchmark must get its packets back.
  std::vector<AclRule> rules =
      make_synthetic_acl(Dict{{"style", "random"}, {"count", count}}, "bench");
  List list;
  for (AclRule& rule : rules) {
    rule.action = {};
    list.emplace_back(format_acl_rule(rule));
  }
  CostCase c = plain("acl, " + text_of(count) + " rules", "acl", {{"rules", std::move(list)}});
  c.frame = [rules = std::move(rules)](uint32_t i) {
    return frame_of(rules[i * 7919 % rules.size()].match, i);
  };
  c.check = [](Packet&, uint32_t gate, uint32_t) { return expect_gate(gate, 0); };
  if (count == 1000) {
    CostCase mixed = c;
    mixed.label += ", one packet in 16 ICMP";
    mixed.params["default_action"] = "permit";
    mixed.frame = [frame = c.frame](uint32_t i) {
      std::vector<uint8_t> bytes = frame(i);
      if (i % 16 == 5) bytes[net::kEthBytes + net::kIpProto] = net::kProtoIcmp;
      return bytes;
    };
    all.push_back(std::move(mixed));
    CostCase scattered = c;
    scattered.label += ", random destinations";
    scattered.params["default_action"] = "permit";
    scattered.feed = Feed::kRandom;
    scattered.note = "each packet gets a random destination before each call";
    all.push_back(scattered);
    scattered.label += ", tries";
    scattered.params["lookup"] = "tries";
    all.push_back(std::move(scattered));
  }
  CostCase tries = c;
  tries.label += ", tries";
  tries.params["lookup"] = "tries";
  all.push_back(with_target(std::move(c), per_batch_ns, per_pkt_ns));
  all.push_back(std::move(tries));
}

// A UDP packet in IPv6, 64 bytes long.
std::vector<uint8_t> ipv6_frame(uint32_t i) {
  std::vector<uint8_t> frame(64);
  net::store16(&frame[12], net::kTypeIpv6);
  uint8_t* ip = &frame[net::kEthBytes];
  net::store32(ip, 6U << 28);
  net::store16(ip + 4, 10);
  ip[6] = net::kProtoUdp;
  net::store32(ip + 8, 0x20010db8);
  net::store32(ip + 24, 0x20010db8);
  net::store32(ip + 28, i % 100 << 16);
  net::store16(ip + 42, static_cast<uint16_t>(1000 + i % 100));
  return frame;
}

void add_ipv6(std::vector<CostCase>& all) {
  List list;
  for (uint32_t i = 0; i < 100; ++i) {
    list.emplace_back(Dict{{"dst", "2001:db8:" + text_of(i / 10) + text_of(i % 10) + "::/48"},
                           {"dst_ports", 1000 + i},
                           {"proto", "udp"},
                           {"action", "permit"}});
  }
  CostCase c = plain("acl, 100 rules of IPv6", "acl",
                     {{"rules", std::move(list)}, {"default_action", "permit"}});
  c.frame = ipv6_frame;
  c.check = [](Packet&, uint32_t gate, uint32_t) { return expect_gate(gate, 0); };
  all.push_back(std::move(c));
}

void add_acls(std::vector<CostCase>& all) {
  CostCase paper = plain("acl, 100 rules of the papers", "acl",
                         {{"synthetic", Dict{{"style", "paper"}, {"count", 100}}}});
  paper.check = [](Packet&, uint32_t gate, uint32_t) { return expect_gate(gate, 0); };
  all.push_back(with_target(std::move(paper), 40, 12));
  add_random(all, 100, 40, 12);
  add_random(all, 1000, 45, 20);
  add_random(all, 10'000, 50, 40);
  add_ipv6(all);
}

const AddCases kAclCases{
    {.fuzz = {{"acl",
               R"({"rules": [{"src": "10.0.0.0/8", "dst_ports": "1-1000", "action": "mark 3"},
                             {"proto": "tcp", "tcp_flags": "syn,!ack", "action": "gate 1"},
                             {"src": "fd00::/8", "dst_ports": 53, "action": "gate 2"},
                             {"proto": "icmpv6", "action": "deny"}],
                   "default_action": "gate 1", "other": "deny"})",
               3},
              {"acl", R"({"synthetic": {"style": "paper", "count": 100}})"},
              {"acl",
               R"({"rules": [{"dst": "fd00::/16", "action": "permit"}],
                   "default_action": "permit"})"}},
     .cost = add_acls}};

}  // namespace
}  // namespace batchplane::cases
