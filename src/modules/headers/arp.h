// SPDX-License-Identifier: BSD-3-Clause
// arp.h - ARP for IPv4 over Ethernet (RFC 826): layout, checks, and the messages that a router
// sends.
#pragma once

#include <cstdint>
#include <cstring>

#include "base/net_headers.h"

namespace batchplane::arp {

inline constexpr uint32_t kFrameBytes = 60;  // Ethernet's minimum, without FCS
inline constexpr uint16_t kRequest = net::Arp::kRequest;
inline constexpr uint16_t kReply = net::Arp::kReply;
inline constexpr uint16_t kHardwareEthernet = 1;

// A valid source MAC address of one station.
inline bool is_unicast(const net::Mac& mac) { return mac != net::Mac{} && (mac[0] & 1) == 0; }

// An Ethernet/IPv4 request or reply from a valid unicast MAC. `room_bytes` are readable.
inline bool is_valid(const net::Arp& arp, uint32_t room_bytes) {
  if (room_bytes < net::kArpBytes) return false;
  const bool is_ours =
      arp.hardware_type == kHardwareEthernet && arp.protocol_type == net::kTypeIpv4 &&
      arp.hardware_bytes == sizeof(arp.sender_mac) && arp.protocol_bytes == sizeof(arp.sender_ip);
  return is_ours && (arp.operation == kRequest || arp.operation == kReply) &&
         is_unicast(arp.sender_mac);
}

inline void write_eth(uint8_t* frame, const net::Mac& dst, const net::Mac& src, uint16_t type) {
  header_at<net::Ethernet>(frame) = {.dst = dst, .src = src, .type = type};
}

inline void write_message(net::Arp& arp, uint16_t operation, const net::Mac& sender_mac,
                          uint32_t sender_ip, const net::Mac& target_mac, uint32_t target_ip) {
  arp = {.hardware_type = kHardwareEthernet,
         .protocol_type = net::kTypeIpv4,
         .hardware_bytes = sizeof(arp.sender_mac),
         .protocol_bytes = sizeof(arp.sender_ip),
         .operation = operation,
         .sender_mac = sender_mac,
         .sender_ip = sender_ip,
         .target_mac = target_mac,
         .target_ip = target_ip};
}

// Writes a frame of kFrameBytes. `dst` is a unicast address when a known neighbour is probed again.
inline void write_request(uint8_t* frame, const net::Mac& dst, const net::Mac& own_mac,
                          uint32_t own_ip, uint32_t wanted_ip) {
  std::memset(frame, 0, kFrameBytes);
  write_eth(frame, dst, own_mac, net::kTypeArp);
  write_message(header_at<net::Arp>(frame + net::kEthBytes), kRequest, own_mac, own_ip, {},
                wanted_ip);
}

}  // namespace batchplane::arp
