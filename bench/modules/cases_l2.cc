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

void add_vxlan(std::vector<ModuleCase>& all) {
  List tunnels;
  List vnis;
  for (uint32_t i = 0; i < 256; ++i) {
    tunnels.push_back(Dict{{"id", i},
                           {"vni", 1000 + i},
                           {"remote", net::format_ipv4((192U << 24) + i)},
                           {"local", "10.0.0.1"}});
  }
  ModuleCase encap = plain("vxlan_encap, 256 tunnels", "vxlan_encap", {{"tunnels", tunnels}});
  encap.feed = Feed::kFrames;
  encap.before_kind = "set_meta";
  encap.before_params = {{"tunnel_id", 77}};
  encap.check = [](Packet& pkt, uint32_t, uint32_t) {
    const std::string wrong = expect_good_sum(pkt);
    return wrong.empty() ? expect_byte(pkt, 48, (1000 + 77) & 0xff) : wrong;
  };
  all.push_back(with_target(std::move(encap), 8, 7.75));
  all.back().note = "the target is 8 ns per packet in batches of 32";
  ModuleCase mixed = plain("vxlan_encap, 256 tunnels in turn", "vxlan_encap",
                           {{"tunnels", tunnels}, {"by", "vrf"}});
  List rules;
  for (uint32_t v = 0; v < 256; ++v) rules.push_back(Dict{{"vid", v}, {"gate", 0}, {"vrf", v}});
  mixed.feed = Feed::kFrames;
  mixed.before_kind = "vlan_split";
  mixed.before_params = {{"rules", rules}};
  mixed.frame = [](uint32_t i) { return tagged_frame(i, i % 256); };
  mixed.check = [](Packet& pkt, uint32_t, uint32_t i) {
    return expect_byte(pkt, 48, (1000 + i % 256) & 0xff);
  };
  mixed.note = "each packet in another tunnel than the one before, behind a VLAN tag";
  all.push_back(std::move(mixed));
  ModuleCase decap =
      plain("vxlan_decap", "vxlan_decap", {{"vnis", List{Dict{{"vni", 0}, {"gate", 1}}}}});
  decap.feed = Feed::kFrames;
  decap.gates = 2;
  // A frame of an empty payload: the rig's frames end at 64 bytes.
  decap.frame = [](uint32_t i) {
    std::vector<uint8_t> frame = udp_frame(kRouterMac, flow_address(i % kGates));
    frame.resize(64);
    uint8_t* const ip = &frame[net::kEthBytes];
    net::store16(ip + net::kIpTotalLength, 50);
    net::store16(ip + net::kIpChecksum, 0);
    net::store16(ip + net::kIpChecksum,
                 net::checksum_finish(net::checksum_add(ip, net::kIpv4Bytes)));
    uint8_t* const udp = ip + net::kIpv4Bytes;
    net::store16(udp + 2, 4789);
    net::store16(udp + 4, 30);
    net::store16(udp + 6, 0);
    net::store32(udp + 8, 0x08000000);
    net::store32(udp + 12, 0);
    return frame;
  };
  decap.check = [](Packet& pkt, uint32_t gate, uint32_t) -> std::string {
    return pkt.len_bytes() == 14 ? expect_gate(gate, 1) : "not taken out";
  };
  all.push_back(std::move(decap));
}

void add_sums(std::vector<ModuleCase>& all) {
  ModuleCase update =
      plain("l4_checksum update", "l4_checksum", {{"mode", "update"}, {"fill_zero_udp", true}});
  update.check = [](Packet& pkt, uint32_t, uint32_t) -> std::string {
    const uint8_t* ip = pkt.data() + net::kEthBytes;
    const uint32_t len = net::load16(ip + net::kIpTotalLength) - net::kIpv4Bytes;
    const uint32_t seed = net::checksum_add(ip + net::kIpSrc, 8, net::kProtoUdp + len);
    return net::checksum_finish(net::checksum_add(ip + net::kIpv4Bytes, len, seed)) == 0
               ? ""
               : "the checksum is wrong";
  };
  all.push_back(std::move(update));
  ModuleCase check = plain("l4_checksum check", "l4_checksum");
  all.push_back(std::move(check));
}

void add_edits(std::vector<ModuleCase>& all) {
  const auto field = [](const char* base, int offset, int size, const char* value) {
    return Dict{{"base", base}, {"offset", offset}, {"size_bytes", size}, {"value", value}};
  };
  ModuleCase plain_bytes =
      plain("rewrite, 1 field, no checksums", "rewrite",
            {{"fields", List{field("l2", 6, 6, "02:00:00:00:00:ee")}}, {"mend_checksums", false}});
  plain_bytes.check = [](Packet& pkt, uint32_t, uint32_t) { return expect_byte(pkt, 11, 0xee); };
  all.push_back(std::move(plain_bytes));
  ModuleCase mended =
      plain("rewrite, address and port, checksums mended", "rewrite",
            {{"fields", List{field("l3", 12, 4, "192.0.2.1"), field("l4", 0, 2, "0x1234")}}});
  mended.feed = Feed::kFrames;
  mended.check = [](Packet& pkt, uint32_t, uint32_t) {
    const std::string wrong = expect_good_sum(pkt);
    return wrong.empty() ? expect_byte(pkt, 34, 0x12) : wrong;
  };
  all.push_back(std::move(mended));
  ModuleCase off = plain("mirror off", "mirror", {{"is_on", false}});
  off.gates = 2;
  all.push_back(std::move(off));
  ModuleCase sampled = plain("mirror 1 in 1000000", "mirror", {{"sample_one_in", 1'000'000}});
  sampled.gates = 2;
  sampled.note = "what a copy costs is seen in a pipeline: the rig takes none back";
  all.push_back(std::move(sampled));
}

const AddCases kAdded{[](std::vector<ModuleCase>& all) {
  add_vlan(all);
  add_vrf(all);
  add_vxlan(all);
  add_sums(all);
  add_edits(all);
}};

}  // namespace
}  // namespace bench
