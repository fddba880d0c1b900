// SPDX-License-Identifier: BSD-3-Clause
// cases_ipv6.cc - the IPv6 modules, and the lookup among 100 000 prefixes spread as the public
// ones.
#include <set>

#include "base/net6.h"
#include "base/rng.h"
#include "modules/case_tools.h"
#include "modules/cases.h"

namespace bench {
namespace {

constexpr uint32_t kPrefixes = 100'000;

net::Address6 flow_address6(uint32_t i) { return {0x2400000000000000ULL + (uint64_t{i} << 24), 1}; }

std::vector<uint8_t> udp6_frame(const net::Address6& dst, uint8_t protocol = net::kProtoUdp) {
  std::vector<uint8_t> frame = udp_frame(kRouterMac, flow_address(0));
  net::store16(&frame[12], net::kTypeIpv6);
  uint8_t* ip = &frame[net::kEthBytes];
  std::memset(ip, 0, frame.size() - net::kEthBytes);
  ip[0] = 0x60;
  net::store16(ip + net::kIp6PayloadLength,
               static_cast<uint16_t>(frame.size() - net::kEthBytes - net::kIpv6Bytes));
  ip[net::kIp6NextHeader] = protocol;
  ip[net::kIp6HopLimit] = kFrameTtl;
  net::store_address6(ip + net::kIp6Src, {0x20010db800000000ULL, 9});
  net::store_address6(ip + net::kIp6Dst, dst);
  return frame;
}

ModuleCase plain6(const std::string& label, const std::string& kind, Dict params = {}) {
  return {.label = label, .kind = kind, .params = std::move(params), .frame = [](uint32_t i) {
            return udp6_frame(flow_address6(i % kGates));
          }};
}

// An address below each of the routes that a lookup makes up for `count`.
void add_lookup6(std::vector<ModuleCase>& all) {
  ModuleCase many = plain6("ipv6_lookup, 100 k routes, random", "ipv6_lookup");
  many.gates = kGates;
  many.feed = Feed::kRandom6;
  many.note =
      "each packet gets the address of a random route before each call; 25 ns at batches of 32 is "
      "the aim";
  List routes{Dict{{"prefix", "::/0"}, {"gate", 0}}};
  batchplane::Rng rng(1);
  std::set<net::Prefix6> taken;
  while (taken.size() < kPrefixes) {
    // A quarter as many networks of /32 as there are prefixes; half of these are /48.
    batchplane::Rng of_network(rng.below(kPrefixes / 4) + 1);
    const uint64_t first = 0x2400'0000ULL + (of_network.next() >> 36);
    constexpr uint8_t kLengths[] = {48, 48, 48, 48, 48, 44, 40, 36, 46, 32};
    const uint8_t length = kLengths[rng.below(10)];
    const net::Prefix6 prefix{
        net::Address6{first << 32 | (rng.next() >> 32), 0} & net::mask6(length), length};
    if (!taken.insert(prefix).second) continue;
    const net::Address6 address = prefix.address | net::Address6{0, rng.next()};
    auto& bytes = many.destinations6.emplace_back();
    net::store_address6(bytes.data(), address);
    routes.push_back(Dict{{"prefix", net::format_prefix6(prefix)},
                          {"gate", static_cast<int64_t>(taken.size() % kGates)}});
  }
  many.params = {{"routes", std::move(routes)}};
  all.push_back(std::move(many));
  List few;
  for (uint32_t i = 0; i < 500; ++i) {
    few.push_back(Dict{{"prefix", net::format_prefix6({flow_address6(i) & net::mask6(40), 40})},
                       {"gate", static_cast<int64_t>(i % kGates)}});
  }
  ModuleCase small = plain6("ipv6_lookup, 500 routes", "ipv6_lookup", {{"routes", std::move(few)}});
  small.gates = kGates;
  small.check = [](Packet&, uint32_t gate, uint32_t i) { return expect_gate(gate, i % kGates); };
  all.push_back(std::move(small));
}

void add_ipv6(std::vector<ModuleCase>& all) {
  all.push_back(plain6("ipv6_check", "ipv6_check"));
  all.back().check = [](Packet& pkt, uint32_t, uint32_t) -> std::string {
    return pkt.meta().l4_offset_bytes == 54 ? "" : "the upper header was not noted";
  };
  all.push_back(plain6("hop_limit", "hop_limit"));
  all.back().check = [](Packet& pkt, uint32_t, uint32_t) {
    return expect_byte(pkt, net::kEthBytes + net::kIp6HopLimit, kFrameTtl - 1);
  };
  add_lookup6(all);
  const List neighbours{
      Dict{{"interface", "if2"}, {"address", "2001:db8:0:2::9"}, {"mac", "02:00:00:00:02:09"}}};
  ModuleCase resolved = plain6("neighbour6, resolved", "neighbour6",
                               {{"table", "main6"}, {"neighbours", neighbours}});
  resolved.gates = 4;
  resolved.before_kind = "ipv6_lookup";
  resolved.before_params = {
      {"table", "main6"},
      {"routes", List{Dict{{"prefix", "2400::/8"}, {"via", "2001:db8:0:2::9"}}}}};
  resolved.check = [](Packet& pkt, uint32_t gate, uint32_t) {
    const std::string wrong = expect_gate(gate, 2);
    return wrong.empty() ? expect_byte(pkt, 5, 0x09) : wrong;
  };
  all.push_back(std::move(resolved));

  ModuleCase error = plain6("icmp6_error, time exceeded", "icmp6_error",
                            {{"errors_per_s", 10'000'000}, {"burst", 1'000'000}});
  error.feed = Feed::kFrames;
  error.drop_reason = "hop_limit_expired";
  error.frame = [](uint32_t i) {
    std::vector<uint8_t> frame = udp6_frame(flow_address6(i % kGates));
    frame[0] = 2;  // kRouterMac is a group
    return frame;
  };
  error.check = [](Packet& pkt, uint32_t, uint32_t) {
    return expect_byte(pkt, net::kEthBytes + net::kIpv6Bytes, 3);
  };
  all.push_back(std::move(error));
  ModuleCase echo = plain6("icmp6_echo, passed on", "icmp6_echo");
  echo.gates = 3;
  echo.check = [](Packet&, uint32_t gate, uint32_t) { return expect_gate(gate, 1); };
  all.push_back(std::move(echo));
}

const AddCases kAdded{add_ipv6};

}  // namespace
}  // namespace bench
