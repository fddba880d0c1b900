// SPDX-License-Identifier: BSD-3-Clause
#include "modules/egress/flow_rule.h"

#include <algorithm>
#include <array>

#include "modules/classify/bridged_ip.h"
#include "modules/common/flow_tree.h"
#include "modules/common/item_syntax.h"
#include "modules/egress/connection.h"
#include "modules/egress/flow_number.h"
#include "modules/headers/l4_header.h"
#include "modules/headers/vlan_header.h"
#include "modules/policy/dscp_field.h"
#include "modules/tunnel/gtpu_header.h"

namespace batchplane {
namespace {

constexpr std::array kRules{"mark", "dscp", "vrf", "interface",
                            "vlan", "qfi",  "hash"};  // indexed by By

uint32_t dscp_flow_of(Packet& pkt) noexcept {
  const IpKind kind = ip_kind_of(pkt);
  if (kind != IpKind::kIpv4 && kind != IpKind::kIpv6) return 0;
  return dscp_of(pkt.data() + l3_offset_of(pkt), kind);
}

uint32_t vlan_flow_of(Packet& pkt, uint32_t inner_vlans) noexcept {
  const vlan::TagCount tags = vlan::count_tags(pkt.data(), pkt.len_bytes(), 2);
  if (tags.n == 0 || tags.is_cut) return 0;
  const auto vid = [&](uint32_t i) { return vlan::tag_at(pkt.data(), i).control & vlan::kVidMask; };
  const uint32_t outer = vid(0);
  if (inner_vlans == 0) return outer;
  const uint32_t inner = tags.n == 1 ? 0 : vid(1);
  return inner < inner_vlans ? vlan_flow(outer, inner, inner_vlans) : 0;
}

// The QFI of the GTP-U header around a user packet.
uint32_t qfi_of(Packet& pkt) noexcept {
  const BridgedIp outer = bridged_ip_of(pkt);
  if (outer.kind == IpKind::kNone) return 0;
  const uint8_t* const ip = pkt.data() + outer.offset_bytes;
  const l4::Place place = l4::find(ip, pkt.len_bytes() - outer.offset_bytes);
  const bool is_udp = place.find == l4::Find::kWhole && place.proto == net::kProtoUdp &&
                      place.len_bytes >= net::kUdpBytes;
  if (!is_udp) return 0;
  const auto& udp = header_at<net::Udp>(ip + place.offset_bytes);
  if (udp.dst_port != gtpu::kPort) return 0;
  const gtpu::Message message =
      gtpu::read(behind<net::Gtpu>(udp), place.len_bytes - net::kUdpBytes);
  return message.fault == nullptr && message.qfi != session::kAnyQfi ? message.qfi : 0;
}

uint32_t hash_flow_of(Packet& pkt, uint32_t n_flows) noexcept {
  const BridgedIp place = bridged_ip_of(pkt);
  if (place.kind == IpKind::kNone) return 0;
  return static_cast<uint32_t>((hash_connection(pkt, place) >> 32) * n_flows >> 32);
}

}  // namespace

FlowRule::FlowRule(const Args& args)
    : by_(static_cast<By>(std::ranges::find(kRules, args.string("flow_by")) - kRules.begin())),
      inner_vlans_(args.u32("inner_vlans")),
      hash_flows_(args.u32("hash_flows")) {
  if (by_ == By::kHash && hash_flows_ > args.u32("max_flows")) {
    throw ConfigError("hashes go into more flows than there may be", args.where() + ".hash_flows",
                      "at most max_flows, which is " + std::to_string(args.u32("max_flows")));
  }
  if (inner_vlans_ != 0 && by_ != By::kVlan) {
    throw ConfigError("only VLANs come in pairs", args.where() + ".inner_vlans",
                      "set flow_by: vlan");
  }
}

uint32_t FlowRule::number_of(Packet& pkt) const noexcept {
  switch (by_) {
    case By::kMark:
      return flow_number_of_mark(pkt.mark());
    case By::kDscp:
      return dscp_flow_of(pkt);
    case By::kVrf:
      return pkt.meta().vrf;
    case By::kInterface:
      return pkt.meta().in_interface;
    case By::kVlan:
      return vlan_flow_of(pkt, inner_vlans_);
    case By::kQfi:
      return qfi_of(pkt);
    case By::kHash:
      return hash_flow_of(pkt, hash_flows_);
  }
  return 0;
}

std::vector<ParamSpec> flow_rule_params() {
  return {{.name = "flow_by",
           .type = ParamType::kString,
           .default_value = "mark",
           .help = "the number that says which flow a packet belongs to; qfi: of the GTP-U message "
                   "around it; hash: of its connection",
           .choices = {kRules.begin(), kRules.end()}},
          {.name = "inner_vlans",
           .default_value = 0,
           .help = "with flow_by: vlan, pairs of an outer and an inner VLAN below this are flows: "
                   "number outer * inner_vlans + inner, also written OUTER/INNER; 0: the outer "
                   "VLAN's number",
           .min = 0,
           .max = kVlans},
          {.name = "hash_flows",
           .default_value = 16,
           .help = "with flow_by: hash, connections go into flows below this",
           .min = 1,
           .max = 1 << 20}};
}

}  // namespace batchplane
