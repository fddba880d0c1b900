// SPDX-License-Identifier: BSD-3-Clause
// bridged_ip.h - finds the IP header of a bridged frame, behind VLAN tags and a PPPoE session
// header.
#pragma once

#include "base/tunnel_headers.h"
#include "modules/headers/vlan_header.h"
#include "modules/policy/dscp_field.h"

namespace batchplane {

struct BridgedIp {
  IpKind kind = IpKind::kNone;
  uint32_t offset_bytes = 0;
};

inline constexpr uint32_t kMaxBridgedTags = 2;

// kNone also for frames that are too short.
inline BridgedIp bridged_ip_of(Packet& pkt) {
  const uint32_t l3 = l3_offset_of(pkt);
  const IpKind plain = ip_kind_of(pkt);
  if (plain != IpKind::kNone || l3 != net::kEthBytes) [[likely]] {
    return {plain == IpKind::kTooShort ? IpKind::kNone : plain, l3};
  }
  const uint32_t len_bytes = pkt.len_bytes();
  const vlan::TagCount tags = vlan::count_tags(pkt.data(), len_bytes, kMaxBridgedTags);
  if (tags.is_cut || tags.n > kMaxBridgedTags) return {};
  uint32_t at = net::kEthBytes + tags.n * vlan::kTagBytes;
  uint32_t type = vlan::tag_at(pkt.data(), tags.n).type;
  if (type == net::kTypePppoe) {
    if (len_bytes < at + sizeof(net::Pppoe)) return {};
    type = header_in<net::Pppoe>(pkt, at).type();
    at += sizeof(net::Pppoe);
  }
  const bool is_ipv4 = type == net::kTypeIpv4 && len_bytes >= at + net::kIpv4Bytes;
  const bool is_ipv6 = type == net::kTypeIpv6 && len_bytes >= at + net::kIpv6Bytes;
  if (!is_ipv4 && !is_ipv6) return {};
  if (net::ip_version(pkt.data() + at) != (is_ipv4 ? 4U : 6U)) return {};
  return {is_ipv4 ? IpKind::kIpv4 : IpKind::kIpv6, at};
}

}  // namespace batchplane
