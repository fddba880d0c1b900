// SPDX-License-Identifier: BSD-3-Clause
// frames.h - the packets that modules are measured with: 64 bytes on the wire, 60 in the buffer.
#pragma once

#include <cstdint>
#include <vector>

#include "base/net.h"
#include "traffic/template.h"

namespace bench {

inline constexpr uint8_t kFrameTtl = 254;
inline constexpr batchplane::net::Mac kRouterMac{0x11, 0x77, 0x0b, 0x00, 0x01, 0x01};

// Of a neighbour on the first interface of the rig.
inline constexpr uint32_t kSourceAddress = (10U << 24) + 9;

// Destination of flow i: each in a /24 of its own.
inline uint32_t flow_address(uint32_t i) { return (20U << 24) + (i << 8) + 1; }

inline batchplane::net::Mac host_mac(uint32_t i) {
  return {0x02, 0, 0, 0, static_cast<uint8_t>(i >> 8), static_cast<uint8_t>(i)};
}

inline std::vector<uint8_t> udp_frame(const batchplane::net::Mac& dst_mac, uint32_t dst_ip) {
  batchplane::traffic::FlowSpec flow;
  flow.dst_mac = dst_mac;
  flow.src_mac = {0x02, 0, 0, 0, 0xff, 0x01};
  flow.src_ip = kSourceAddress;
  flow.dst_ip = dst_ip;
  flow.src_port = 1000;
  flow.dst_port = 2000;
  flow.ttl = kFrameTtl;
  return batchplane::traffic::build_frame(flow, batchplane::traffic::kMinFrameBytes);
}

// An echo request from a neighbour to an own address of the rig.
inline std::vector<uint8_t> ping_frame(uint32_t i) {
  namespace net = batchplane::net;
  std::vector<uint8_t> frame = udp_frame(kRouterMac, (10U << 24) + 1);
  uint8_t* ip = &frame[net::kEthBytes];
  ip[net::kIpProto] = net::kProtoIcmp;
  net::store16(ip + net::kIpChecksum, 0);
  net::store16(ip + net::kIpChecksum, net::checksum_finish(net::checksum_add(ip, net::kIpv4Bytes)));
  uint8_t* icmp = ip + net::kIpv4Bytes;
  const uint32_t icmp_bytes =
      static_cast<uint32_t>(frame.size()) - net::kEthBytes - net::kIpv4Bytes;
  icmp[0] = 8;
  icmp[1] = 0;
  net::store16(icmp + 2, 0);
  net::store16(icmp + 6, static_cast<uint16_t>(i));
  net::store16(icmp + 2, net::checksum_finish(net::checksum_add(icmp, icmp_bytes)));
  return frame;
}

}  // namespace bench
