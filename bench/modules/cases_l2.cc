// SPDX-License-Identifier: BSD-3-Clause
// cases_l2.cc - VLAN tags, VRFs, tunnels, and what edits or copies frames in general.
#include "modules/case_tools.h"
#include "modules/cases.h"

namespace bench {
namespace {

constexpr uint32_t kMinBytes = 60;

// The generator's frame behind a tag; the payload is cut by as much.
std::vector<uint8_t> tagged_frame(uint32_t i, uint32_t vid) {
  std::vector<uint8_t> frame = udp_frame(kRouterMac, flow_address(i % kGates));
  const uint8_t tag[] = {0x81, 0, static_cast<uint8_t>(vid >> 8), static_cast<uint8_t>(vid)};
  frame.insert(frame.begin() + 12, tag, tag + 4);
  frame.resize(kMinBytes);
  return frame;
}

std::string expect_ipv4_at(Packet& pkt, uint32_t l3) {
  if (pkt.meta().l3_offset_bytes != l3) return "the header was not noted";
  return expect_byte(pkt, l3, 0x45);
}

void add_vlan(std::vector<ModuleCase>& all) {
  ModuleCase push = plain("vlan_push", "vlan_push", {{"vid", 100}});
  push.feed = Feed::kFrames;
  push.check = [](Packet& pkt, uint32_t, uint32_t) { return expect_ipv4_at(pkt, 18); };
  all.push_back(std::move(push));
  ModuleCase pop = plain("vlan_pop", "vlan_pop");
  pop.feed = Feed::kFrames;
  pop.frame = [](uint32_t i) { return tagged_frame(i, 100); };
  pop.check = [](Packet& pkt, uint32_t, uint32_t) { return expect_ipv4_at(pkt, 14); };
  all.push_back(with_target(std::move(pop), 4, 1.875));
  all.back().note = "the target is 2 ns per packet in batches of 32";
  List rules;
  for (uint32_t i = 0; i < 4095; ++i) {
    rules.push_back(Dict{{"vid", i}, {"gate", i % kGates}, {"vrf", i % kGates}});
  }
  for (const bool pops : {false, true}) {
    ModuleCase split = plain(pops ? "vlan_split with pop, 4095 VLANs" : "vlan_split, 4095 VLANs",
                             "vlan_split", {{"rules", rules}, {"pop", pops}});
    split.feed = pops ? Feed::kFrames : Feed::kHot;
    split.gates = kGates;
    split.frame = [](uint32_t i) { return tagged_frame(i, i * 15); };
    split.check = [pops](Packet& pkt, uint32_t gate, uint32_t i) {
      const std::string wrong = expect_gate(gate, i * 15 % kGates);
      return wrong.empty() ? expect_ipv4_at(pkt, pops ? 14 : 18) : wrong;
    };
    all.push_back(std::move(split));
  }
}

void add_vrf(std::vector<ModuleCase>& all) {
  List routes;
  for (uint32_t i = 0; i < 500; ++i) {
    routes.push_back(Dict{{"prefix", net::format_prefix4({flow_address(i) & net::mask4(24), 24})},
                          {"gate", i % kGates}});
  }
  ModuleCase lookup = plain(
      "vrf_lookup, 2 VRFs of 500 routes, one in the batch", "vrf_lookup",
      {{"vrfs", List{Dict{{"vrf", 1}, {"routes", routes}}, Dict{{"vrf", 2}, {"routes", routes}}}}});
  lookup.gates = kGates;
  lookup.before_kind = "set_meta";
  lookup.before_params = {{"vrf", 2}};
  lookup.frame = [](uint32_t i) { return udp_frame(kRouterMac, flow_address(i % 500)); };
  lookup.check = [](Packet&, uint32_t gate, uint32_t i) {
    return expect_gate(gate, i % 500 % kGates);
  };
  all.push_back(with_target(std::move(lookup), 12, 3));
  ModuleCase mixed = plain(
      "vrf_lookup, 2 VRFs of 500 routes, in turn", "vrf_lookup",
      {{"vrfs", List{Dict{{"vrf", 0}, {"routes", routes}}, Dict{{"vrf", 1}, {"routes", routes}}}}});
  mixed.gates = kGates;
  mixed.before_kind = "vlan_split";
  mixed.before_params = {{"rules", List{Dict{{"vid", 0}, {"gate", 0}, {"vrf", 0}},
                                        Dict{{"vid", 1}, {"gate", 0}, {"vrf", 1}}}}};
  mixed.frame = [](uint32_t i) { return tagged_frame(i, i & 1); };
  mixed.check = [](Packet&, uint32_t gate, uint32_t i) { return expect_gate(gate, i % kGates); };
  mixed.note = "the worst case: each packet in another VRF than the one before";
  all.push_back(std::move(mixed));
  ModuleCase set = plain("set_meta", "set_meta", {{"vrf", 3}, {"mark", 7}});
  set.check = [](Packet& pkt, uint32_t, uint32_t) -> std::string {
    return pkt.meta().vrf == 3 && pkt.mark() == 7 ? "" : "not set";
  };
  all.push_back(std::move(set));
}

const AddCases kAdded{[](std::vector<ModuleCase>& all) {
  add_vlan(all);
  add_vrf(all);
}};

}  // namespace
}  // namespace bench
