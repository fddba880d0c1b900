// SPDX-License-Identifier: BSD-3-Clause
// vxlan_cases.cc - inputs for fuzzing and measuring vxlan_encap and vxlan_decap.
#include "cases/case_tools.h"

namespace batchplane::cases {
namespace {

void add_encap(std::vector<CostCase>& all) {
  List tunnels;
  for (uint32_t i = 0; i < 256; ++i) {
    tunnels.push_back(Dict{{"id", i},
                           {"vni", 1000 + i},
                           {"remote", net::format_ipv4((192U << 24) + i)},
                           {"local", "10.0.0.1"}});
  }
  CostCase encap = plain("vxlan_encap, 256 tunnels", "vxlan_encap", {{"tunnels", tunnels}});
  encap.before_kind = "set_meta";
  encap.before_params = {{"tunnel_id", 77}};
  encap.check = [](Packet& pkt, uint32_t, uint32_t) {
    const std::string wrong = expect_good_sum(pkt);
    return wrong.empty() ? expect_byte(pkt, 48, (1000 + 77) & 0xff) : wrong;
  };
  all.push_back(with_target(std::move(encap), 8, 7.75));
  all.back().note = "the target is 8 ns per packet in batches of 32";
  CostCase mixed = plain("vxlan_encap, 256 tunnels in turn", "vxlan_encap",
                         {{"tunnels", tunnels}, {"by", "vrf"}});
  List rules;
  for (uint32_t v = 0; v < 256; ++v) rules.push_back(Dict{{"vid", v}, {"gate", 0}, {"vrf", v}});
  mixed.before_kind = "vlan_split";
  mixed.before_params = {{"rules", rules}};
  mixed.frame = [](uint32_t i) { return tagged_frame(i % kGates, i % 256); };
  mixed.check = [](Packet& pkt, uint32_t, uint32_t i) {
    return expect_byte(pkt, 48, (1000 + i % 256) & 0xff);
  };
  mixed.note = "each packet in another tunnel than the one before, behind a VLAN tag";
  all.push_back(std::move(mixed));
}

// The inner frame is a bare Ethernet header, as the rig's frames have 64 bytes.
std::vector<uint8_t> vxlan_frame(uint32_t flow) {
  std::vector<uint8_t> frame = udp_frame(kRouterMac, flow_address(flow));
  frame.resize(64);
  uint8_t* const ip = &frame[net::kEthBytes];
  net::store16(ip + net::kIpTotalLength, 50);
  net::store16(ip + net::kIpChecksum, 0);
  net::store16(ip + net::kIpChecksum, net::checksum_finish(net::checksum_add(ip, net::kIpv4Bytes)));
  uint8_t* const udp = ip + net::kIpv4Bytes;
  net::store16(udp + 2, 4789);
  net::store16(udp + 4, 30);
  net::store16(udp + 6, 0);
  net::store32(udp + 8, 0x08000000);
  net::store32(udp + 12, 0);
  return frame;
}

void add_vxlan_costs(std::vector<CostCase>& all) {
  add_encap(all);
  CostCase decap =
      plain("vxlan_decap", "vxlan_decap", {{"vnis", List{Dict{{"vni", 0}, {"gate", 1}}}}});
  decap.gates = 2;
  decap.frame = [](uint32_t i) { return vxlan_frame(i % kGates); };
  decap.check = [](Packet& pkt, uint32_t gate, uint32_t) -> std::string {
    return pkt.len_bytes() == 14 ? expect_gate(gate, 1) : "not taken out";
  };
  all.push_back(std::move(decap));
}

const AddCases kVxlanCases{
    {.fuzz = {{"vxlan_encap",
               R"({"tunnels": [{"id": 0, "vni": 77, "remote": "192.0.2.2", "local": "192.0.2.1",
                                "vrf": 2}], "ttl": 0, "df": false})"},
              {"vxlan_encap",
               R"({"tunnels": [{"id": 0, "vni": 1, "remote": "192.0.2.2", "local": "192.0.2.1"}],
                   "by": "mark", "dscp": 46})"},
              {"vxlan_decap",
               R"({"vnis": [{"vni": 77, "gate": 1, "vrf": 1}, {"vni": 0, "gate": 0}]})", 2},
              {"vxlan_decap",
               R"({"vnis": [{"vni": 1}], "udp_port": 53, "verify_udp_checksum": false,
                   "other_gate": 1})",
               2}},
     .cost = add_vxlan_costs}};

}  // namespace
}  // namespace batchplane::cases
