// SPDX-License-Identifier: BSD-3-Clause
// frames.h - the packets that modules are measured with: 64 bytes on the wire, 60 in the buffer.
#pragma once

#include <cstdint>
#include <vector>

#include "base/net.h"
#include "base/net6.h"

namespace batchplane::cases {

inline constexpr uint8_t kFrameTtl = 254;
inline constexpr net::Mac kRouterMac{0x11, 0x77, 0x0b, 0x00, 0x01, 0x01};

// Of a neighbour on the first interface of the rig.
inline constexpr uint32_t kSourceAddress = (10U << 24) + 9;

// Destination of flow i: each in a /24 of its own.
inline uint32_t flow_address(uint32_t i) { return (20U << 24) + (i << 8) + 1; }

inline net::Mac host_mac(uint32_t i) {
  return {0x02, 0, 0, 0, static_cast<uint8_t>(i >> 8), static_cast<uint8_t>(i)};
}

[[nodiscard]] std::vector<uint8_t> udp_frame(const net::Mac& dst_mac, uint32_t dst_ip);
// An echo request from a neighbour to an own address of the rig.
[[nodiscard]] std::vector<uint8_t> ping_frame(uint32_t i);
// Behind a VLAN tag; the payload is shorter by as much.
[[nodiscard]] std::vector<uint8_t> tagged_frame(uint32_t flow, uint32_t vid);

[[nodiscard]] net::Address6 flow_address6(uint32_t i);
[[nodiscard]] std::vector<uint8_t> udp6_frame(const net::Address6& dst);

}  // namespace batchplane::cases
