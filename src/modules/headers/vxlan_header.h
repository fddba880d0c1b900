// SPDX-License-Identifier: BSD-3-Clause
// vxlan_header.h - VXLAN (RFC 7348) over UDP and IPv4, and the flow hash that picks source ports.
#pragma once

#include <cstdint>

#include "base/tunnel_headers.h"
#include "modules/headers/flow_key.h"

namespace batchplane::vxlan {

inline constexpr uint32_t kOuterBytes =
    net::kEthBytes + net::kIpv4Bytes + net::kUdpBytes + sizeof(net::Vxlan);
inline constexpr uint32_t kMaxVni = 0xffffff;
inline constexpr uint32_t kFirstSourcePort = 49152;
inline constexpr uint32_t kSourcePortBits = 14;

// Explicit congestion notification, the low bits of the traffic class.
inline constexpr uint32_t kEcnMask = 3;
inline constexpr uint32_t kEcnCe = 3;
inline constexpr uint32_t kEcnEct1 = 1;
inline constexpr uint32_t kEcnEct0 = 2;

inline constexpr uint16_t kIpv4Raw = 0x0008;  // EtherTypes in memory order
inline constexpr uint16_t kIpv6Raw = 0xdd86;

inline uint64_t hash_ipv6(const net::Ipv6& ip, uint32_t room_bytes, uint64_t seed) {
  uint64_t rest = uint64_t{ip.next_header} << 32;
  const bool has_ports = ip.next_header == net::kProtoTcp || ip.next_header == net::kProtoUdp;
  if (has_ports && room_bytes >= net::kIpv6Bytes + sizeof(net::Ports)) {
    rest |= behind<net::Ports>(ip).raw();
  }
  const uint64_t src = mix_words(ip.src.high_raw(), ip.src.low_raw(), seed);
  return mix_words(src ^ ip.dst.high_raw(), ip.dst.low_raw(), rest);
}

}  // namespace batchplane::vxlan
