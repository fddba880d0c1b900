// SPDX-License-Identifier: BSD-3-Clause
#include "cases/case_tools.h"

#include <utility>

namespace batchplane::cases {

std::string text_of(uint32_t number) { return std::to_string(number); }

std::string expect_gate(uint32_t gate, uint32_t expected) {
  return gate == expected ? "" : "gate " + text_of(gate) + ", not " + text_of(expected);
}

std::string expect_byte(Packet& pkt, uint32_t offset, uint8_t expected) {
  const uint8_t found = pkt.data()[offset];
  return found == expected
             ? ""
             : "byte " + text_of(offset) + " is " + text_of(found) + ", not " + text_of(expected);
}

std::string expect_good_sum(Packet& pkt) {
  const uint32_t sum = net::checksum_add(pkt.data() + net::kEthBytes, net::kIpv4Bytes);
  return net::checksum_finish(sum) == 0 ? "" : "the header checksum is wrong";
}

List flow_routes(uint32_t n) {
  List list;
  for (uint32_t i = 0; i < n; ++i) {
    list.push_back(Dict{{"prefix", net::format_prefix4({flow_address(i) & net::mask4(24), 24})},
                        {"gate", i % kGates}});
  }
  return list;
}

CostCase plain(const std::string& label, const std::string& kind, Dict params) {
  return {.label = label, .kind = kind, .params = std::move(params), .frame = [](uint32_t i) {
            return udp_frame(kRouterMac, flow_address(i % kGates));
          }};
}

CostCase plain6(const std::string& label, const std::string& kind, Dict params) {
  return {.label = label, .kind = kind, .params = std::move(params), .frame = [](uint32_t i) {
            return udp6_frame(flow_address6(i % kGates));
          }};
}

CostCase with_target(CostCase c, double per_batch_ns, double per_pkt_ns) {
  c.has_target = true;
  c.target = {per_batch_ns, per_pkt_ns};
  return c;
}

Dict numbered_host(uint32_t id) {
  return {{"interface", id % 2 != 0 ? "lan" : "wan"},
          {"address", net::format_ipv4(0x0a000100 + id)}};
}

std::string numbered_mac(uint32_t id) {
  return net::format_mac({2, 0, 0, 0, 0, static_cast<uint8_t>(id)});
}

}  // namespace batchplane::cases
