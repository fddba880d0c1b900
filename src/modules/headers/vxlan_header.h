// SPDX-License-Identifier: BSD-3-Clause
// vxlan_header.h - VXLAN (RFC 7348) over UDP and IPv4, and the flow hash that picks source ports.
#pragma once

#include <cstdint>

#include "modules/flow_key.h"

namespace batchplane::vxlan {

inline constexpr uint32_t kUdpBytes = 8;
inline constexpr uint32_t kVxlanBytes = 8;
inline constexpr uint32_t kOuterBytes = net::kEthBytes + net::kIpv4Bytes + kUdpBytes + kVxlanBytes;
inline constexpr uint16_t kPort = 4789;
inline constexpr uint32_t kMaxVni = 0xffffff;
inline constexpr uint8_t kHasVni = 0x08;  // of the flags
inline constexpr uint32_t kFirstSourcePort = 49152;
inline constexpr uint32_t kSourcePortBits = 14;

// Explicit congestion notification, the low bits of the traffic class.
inline constexpr uint32_t kEcnMask = 3;
inline constexpr uint32_t kEcnCe = 3;
inline constexpr uint32_t kEcnEct1 = 1;
inline constexpr uint32_t kEcnEct0 = 2;

inline constexpr uint16_t kIpv4Raw = 0x0008;  // types as they lie in memory
inline constexpr uint16_t kIpv6Raw = 0xdd86;

inline uint64_t hash_ipv6(const uint8_t* ip, uint32_t room_bytes, uint64_t seed) {
  uint64_t rest = uint64_t{ip[6]} << 32;
  const bool has_ports = ip[6] == net::kProtoTcp || ip[6] == net::kProtoUdp;
  if (has_ports && room_bytes >= net::kIpv6Bytes + 4) rest |= load32_raw(ip + net::kIpv6Bytes);
  const uint64_t src = mix_words(load64_raw(ip + 8), load64_raw(ip + 16), seed);
  return mix_words(src ^ load64_raw(ip + 24), load64_raw(ip + 32), rest);
}

}  // namespace batchplane::vxlan
