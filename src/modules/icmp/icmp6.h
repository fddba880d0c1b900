// SPDX-License-Identifier: BSD-3-Clause
// icmp6.h - ICMPv6 and neighbour discovery (RFC 4443, 4861): layout, validity, and the messages
// that a router sends.
#pragma once

#include <cstdint>
#include <cstring>

#include "base/net6.h"
#include "modules/arp.h"

namespace batchplane::icmp6 {

inline constexpr uint8_t kUnreachable = 1;
inline constexpr uint8_t kPacketTooBig = 2;
inline constexpr uint8_t kTimeExceeded = 3;
inline constexpr uint8_t kEchoRequest = 128;
inline constexpr uint8_t kEchoReply = 129;
inline constexpr uint8_t kRouterSolicitation = 133;
inline constexpr uint8_t kRouterAdvertisement = 134;
inline constexpr uint8_t kSolicitation = 135;
inline constexpr uint8_t kAdvertisement = 136;
inline constexpr uint8_t kRedirect = 137;

inline constexpr uint32_t kHeaderBytes = 8;
inline constexpr uint32_t kNeighbourBytes = 24;  // solicitation or advertisement without options
inline constexpr uint32_t kTarget = 8;
inline constexpr uint32_t kMacOptionBytes = 8;
inline constexpr uint8_t kSourceMac = 1;  // options
inline constexpr uint8_t kTargetMac = 2;
inline constexpr uint8_t kOnLinkHopLimit = 255;

// Flags of an advertisement, in its fifth byte.
inline constexpr uint8_t kIsRouter = 0x80;
inline constexpr uint8_t kIsSolicited = 0x40;
inline constexpr uint8_t kOverrides = 0x20;

inline bool is_discovery(uint8_t type) { return type >= kRouterSolicitation && type <= kRedirect; }

// Of an ICMPv6 message of `bytes` bytes behind the IPv6 header `ip`: 0 when it is right.
inline uint16_t checksum(const uint8_t* ip, const uint8_t* message, uint32_t bytes) {
  const uint32_t sum = net::pseudo_sum6(ip, bytes, net::kProtoIcmp6);
  return net::checksum_finish(net::checksum_add(message, bytes, sum));
}
inline void write_checksum(const uint8_t* ip, uint8_t* message, uint32_t bytes) {
  net::store16(message + 2, 0);
  net::store16(message + 2, checksum(ip, message, bytes));
}

inline void write_ip(uint8_t* ip, const net::Address6& src, const net::Address6& dst,
                     uint32_t payload_bytes, uint8_t hop_limit) {
  std::memset(ip, 0, net::kIpv6Bytes);
  ip[0] = 0x60;
  net::store16(ip + net::kIp6PayloadLength, static_cast<uint16_t>(payload_bytes));
  ip[net::kIp6NextHeader] = net::kProtoIcmp6;
  ip[net::kIp6HopLimit] = hop_limit;
  net::store_address6(ip + net::kIp6Src, src);
  net::store_address6(ip + net::kIp6Dst, dst);
}

inline void write_mac_option(uint8_t* p, uint8_t option, const net::Mac& mac) {
  p[0] = option;
  p[1] = 1;
  std::memcpy(p + 2, mac.data(), 6);
}

inline constexpr uint32_t kNeighbourFrameBytes =
    net::kEthBytes + net::kIpv6Bytes + kNeighbourBytes + kMacOptionBytes;

struct NeighbourMessage {
  uint8_t type = kSolicitation;
  uint8_t flags = 0;
  net::Mac dst_mac{};
  net::Mac own_mac{};
  net::Address6 src{};
  net::Address6 dst{};
  net::Address6 target{};
};

// A whole frame of kNeighbourFrameBytes, with the own MAC as its option.
inline void write_neighbour(uint8_t* frame, const NeighbourMessage& m) {
  constexpr uint32_t kBytes = kNeighbourBytes + kMacOptionBytes;
  arp::write_eth(frame, m.dst_mac, m.own_mac, net::kTypeIpv6);
  uint8_t* ip = frame + net::kEthBytes;
  write_ip(ip, m.src, m.dst, kBytes, kOnLinkHopLimit);
  uint8_t* message = ip + net::kIpv6Bytes;
  std::memset(message, 0, kNeighbourBytes);
  message[0] = m.type;
  message[4] = m.flags;
  net::store_address6(message + kTarget, m.target);
  write_mac_option(message + kNeighbourBytes, m.type == kSolicitation ? kSourceMac : kTargetMac,
                   m.own_mac);
  write_checksum(ip, message, kBytes);
}

// The bytes before the options of a discovery message; 0 for types that are none.
inline uint32_t fixed_bytes(uint8_t type) {
  switch (type) {
    case kRouterSolicitation:
      return 8;
    case kRouterAdvertisement:
      return 16;
    case kSolicitation:
    case kAdvertisement:
      return kNeighbourBytes;
    case kRedirect:
      return 40;
    default:
      return 0;
  }
}

// What of a discovery message is looked at: its own bytes and the MAC that an option gives.
struct Discovery {
  bool is_valid = false;
  const uint8_t* mac = nullptr;  // of the sender or target; null when no option gives one
};

// RFC 4861, 6.1 and 7.1. `ip` is followed by the message directly; payload length was checked.
inline Discovery read_discovery(const uint8_t* ip) {
  const uint32_t bytes = net::load16(ip + net::kIp6PayloadLength);
  const uint8_t* message = ip + net::kIpv6Bytes;
  if (bytes < kHeaderBytes || ip[net::kIp6HopLimit] != kOnLinkHopLimit || message[1] != 0) {
    return {};
  }
  const uint8_t type = message[0];
  const uint32_t fixed = fixed_bytes(type);
  if (fixed == 0 || bytes < fixed || checksum(ip, message, bytes) != 0) return {};
  const bool is_about_target = type == kAdvertisement || type == kRedirect;
  Discovery found{.is_valid = true};
  for (uint32_t at = fixed; at < bytes;) {
    const uint8_t* option = message + at;
    if (at + 8 > bytes || option[1] == 0 || at + option[1] * 8U > bytes) return {};
    if (option[0] == (is_about_target ? kTargetMac : kSourceMac) && option[1] == 1) {
      found.mac = option + 2;
    }
    at += option[1] * 8U;
  }
  return found;
}

}  // namespace batchplane::icmp6
