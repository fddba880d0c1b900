// SPDX-License-Identifier: BSD-3-Clause
// dscp_field.h - the DSCP of IPv4 and IPv6 headers: its position, reading and setting it, and its
// names.
#pragma once

#include <cstdint>
#include <string>

#include "base/value.h"
#include "core/packet/packet.h"
#include "modules/headers/checksum_patch.h"
#include "modules/headers/ipv4_header.h"

namespace batchplane {

inline constexpr uint32_t kDscpValues = 64;

enum class IpKind : uint8_t { kNone, kIpv4, kIpv6, kTooShort };

// The kind of the network header, and whether its fixed part is complete. An L3 offset set by an
// earlier module implies IP; otherwise the Ethernet type decides.
inline IpKind ip_kind_of(Packet& pkt) {
  const uint32_t l3 = l3_offset_of(pkt);
  const uint32_t len_bytes = pkt.len_bytes();
  if (len_bytes <= l3) return IpKind::kTooShort;
  const uint32_t version = net::ip_version(pkt.data() + l3);
  const bool has_type = l3 == net::kEthBytes;
  const uint32_t type = has_type ? uint32_t{header_in<net::Ethernet>(pkt, 0).type} : 0;
  if (version == 4 && (!has_type || type == net::kTypeIpv4)) {
    return len_bytes < l3 + net::kIpv4Bytes ? IpKind::kTooShort : IpKind::kIpv4;
  }
  if (version == 6 && (!has_type || type == net::kTypeIpv6)) {
    return len_bytes < l3 + net::kIpv6Bytes ? IpKind::kTooShort : IpKind::kIpv6;
  }
  return IpKind::kNone;
}

inline uint32_t dscp_of(const uint8_t* ip, IpKind kind) {
  return class_word_of(ip) >> (kind == IpKind::kIpv4 ? 2 : 6) & (kDscpValues - 1);
}

// Keeps ECN and updates the IPv4 header checksum.
inline void set_dscp(uint8_t* ip, IpKind kind, uint32_t dscp) {
  net::Be16& word = class_word_of(ip);
  const uint32_t before = word;
  if (kind == IpKind::kIpv6) {
    word = static_cast<uint16_t>((before & 0xf03fU) | dscp << 6);
    return;
  }
  const uint32_t after = (before & 0xff03U) | dscp << 2;
  word = static_cast<uint16_t>(after);
  mend_checksum(header_at<net::Ipv4>(ip).checksum, before, after);
}

// Accepts 46, "46", "ef", "af11" to "af43", "cs0" to "cs7", "be", "va", "le". Throws ConfigError.
uint32_t parse_dscp(const Value& value, const std::string& where);

}  // namespace batchplane
