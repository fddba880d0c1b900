// SPDX-License-Identifier: BSD-3-Clause
// arp.h - ARP for IPv4 over Ethernet (RFC 826): layout, validity, and the messages that a router
// sends.
#pragma once

#include <cstdint>
#include <cstring>

#include "base/net.h"

namespace batchplane::arp {

inline constexpr uint32_t kBytes = 28;
inline constexpr uint32_t kFrameBytes = 60;  // Ethernet's least, without check sequence
inline constexpr uint16_t kRequest = 1;
inline constexpr uint16_t kReply = 2;

inline constexpr uint32_t kOperation = 6;
inline constexpr uint32_t kSenderMac = 8;
inline constexpr uint32_t kSenderIp = 14;
inline constexpr uint32_t kTargetMac = 18;
inline constexpr uint32_t kTargetIp = 24;

// One message: Ethernet, IPv4, request or reply, from a unicast address that exists. `p` begins at
// the ARP header.
inline bool is_valid(const uint8_t* p, uint32_t len_bytes) {
  if (len_bytes < kBytes) return false;
  const uint16_t operation = net::load16(p + kOperation);
  const bool is_ours =
      net::load16(p) == 1 && net::load16(p + 2) == net::kTypeIpv4 && p[4] == 6 && p[5] == 4;
  const bool is_null_mac = (net::load32(p + kSenderMac) | net::load16(p + kSenderMac + 4)) == 0;
  return is_ours && (operation == kRequest || operation == kReply) && !is_null_mac &&
         (p[kSenderMac] & 1) == 0;
}

inline void write_eth(uint8_t* frame, const net::Mac& dst, const net::Mac& src, uint16_t type) {
  std::memcpy(frame, dst.data(), 6);
  std::memcpy(frame + 6, src.data(), 6);
  net::store16(frame + 12, type);
}

inline void write_message(uint8_t* p, uint16_t operation, const net::Mac& sender_mac,
                          uint32_t sender_ip, const net::Mac& target_mac, uint32_t target_ip) {
  net::store16(p, 1);
  net::store16(p + 2, net::kTypeIpv4);
  p[4] = 6;
  p[5] = 4;
  net::store16(p + kOperation, operation);
  std::memcpy(p + kSenderMac, sender_mac.data(), 6);
  net::store32(p + kSenderIp, sender_ip);
  std::memcpy(p + kTargetMac, target_mac.data(), 6);
  net::store32(p + kTargetIp, target_ip);
}

// A whole frame of kFrameBytes. Unicast when `dst` is a known neighbour that is asked again.
inline void write_request(uint8_t* frame, const net::Mac& dst, const net::Mac& own_mac,
                          uint32_t own_ip, uint32_t wanted_ip) {
  std::memset(frame, 0, kFrameBytes);
  write_eth(frame, dst, own_mac, net::kTypeArp);
  write_message(frame + net::kEthBytes, kRequest, own_mac, own_ip, {}, wanted_ip);
}

}  // namespace batchplane::arp
