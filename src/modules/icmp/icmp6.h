// SPDX-License-Identifier: BSD-3-Clause
// icmp6.h - ICMPv6 and neighbour discovery (RFC 4443, 4861): layout, validation, and the messages
// that a router sends.
#pragma once

#include <cstdint>
#include <cstring>

#include "modules/headers/arp.h"
#include "modules/headers/nd_headers.h"

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

inline constexpr uint8_t kSourceMac = 1;  // options
inline constexpr uint8_t kTargetMac = 2;
inline constexpr uint8_t kOnLinkHopLimit = 255;

// Flags of an advertisement.
inline constexpr uint8_t kIsRouter = 0x80;
inline constexpr uint8_t kIsSolicited = 0x40;
inline constexpr uint8_t kOverrides = 0x20;

inline bool is_discovery(uint8_t type) { return type >= kRouterSolicitation && type <= kRedirect; }

// Checksum of the ICMPv6 message of `bytes` bytes after the IPv6 header; 0 if the message holds the
// correct one.
inline uint16_t checksum(const net::Ipv6& ip, uint32_t bytes) {
  const uint32_t sum = net::pseudo_sum(ip, bytes, net::kProtoIcmp6);
  return net::checksum_finish(net::checksum_add(bytes_of(behind<net::Icmp>(ip)), bytes, sum));
}
inline void write_checksum(net::Ipv6& ip, uint32_t bytes) {
  auto& message = behind<net::Icmp>(ip);
  message.checksum = 0;
  message.checksum = checksum(ip, bytes);
}

inline void write_ip(net::Ipv6& ip, const net::Address6& src, const net::Address6& dst,
                     uint32_t payload_bytes, uint8_t hop_limit) {
  ip = {.version_class_flow = net::Ipv6::kPlain,
        .payload_length = static_cast<uint16_t>(payload_bytes),
        .next_header = net::kProtoIcmp6,
        .hop_limit = hop_limit,
        .src = src,
        .dst = dst};
}

inline void write_mac_option(net::NdMacOption& option, uint8_t type, const net::Mac& mac) {
  option = {.type = type, .length = 1, .mac = mac};
}

inline constexpr uint32_t kNeighbourFrameBytes =
    net::kEthBytes + net::kIpv6Bytes + sizeof(net::NdNeighbour) + sizeof(net::NdMacOption);

struct NeighbourMessage {
  uint8_t type = kSolicitation;
  uint8_t flags = 0;
  net::Mac dst_mac{};
  net::Mac own_mac{};
  net::Address6 src{};
  net::Address6 dst{};
  net::Address6 target{};
};

// Writes a whole frame of kNeighbourFrameBytes, with the own MAC as its option.
inline void write_neighbour(uint8_t* frame, const NeighbourMessage& m) {
  constexpr uint32_t kBytes = sizeof(net::NdNeighbour) + sizeof(net::NdMacOption);
  arp::write_eth(frame, m.dst_mac, m.own_mac, net::kTypeIpv6);
  auto& ip = header_at<net::Ipv6>(frame + net::kEthBytes);
  write_ip(ip, m.src, m.dst, kBytes, kOnLinkHopLimit);
  auto& message = behind<net::NdNeighbour>(ip);
  message = {.type = m.type, .flags = m.flags, .target = m.target};
  write_mac_option(behind<net::NdMacOption>(message),
                   m.type == kSolicitation ? kSourceMac : kTargetMac, m.own_mac);
  write_checksum(ip, kBytes);
}

// Size of a discovery message without options; 0 for other types.
inline uint32_t fixed_bytes(uint8_t type) {
  switch (type) {
    case kRouterSolicitation:
      return net::kIcmpBytes;
    case kRouterAdvertisement:
      return sizeof(net::NdRouterAdvertisement);
    case kSolicitation:
    case kAdvertisement:
      return sizeof(net::NdNeighbour);
    case kRedirect:
      return sizeof(net::NdNeighbour) + sizeof(net::Be128);
    default:
      return 0;
  }
}

// The parts of a discovery message that are used.
struct Discovery {
  bool is_valid = false;
  const net::Mac* mac = nullptr;  // of sender or target; null without such an option
};

// RFC 4861, 6.1 and 7.1. The message directly follows the header; the caller checked
// payload_length.
inline Discovery read_discovery(const net::Ipv6& ip) {
  const uint32_t bytes = ip.payload_length;
  const auto& message = behind<net::Icmp>(ip);
  if (bytes < net::kIcmpBytes || ip.hop_limit != kOnLinkHopLimit || message.code != 0) return {};
  const uint32_t fixed = fixed_bytes(message.type);
  if (fixed == 0 || bytes < fixed || checksum(ip, bytes) != 0) return {};
  const bool is_about_target = message.type == kAdvertisement || message.type == kRedirect;
  Discovery found{.is_valid = true};
  for (uint32_t at = fixed; at < bytes;) {
    const auto& option = behind<net::NdOption>(message, at);
    if (at + net::NdOption::kUnitBytes > bytes || option.length == 0 ||
        at + option.bytes() > bytes) {
      return {};
    }
    if (option.type == (is_about_target ? kTargetMac : kSourceMac) && option.length == 1) {
      found.mac = &header_at<net::NdMacOption>(bytes_of(option)).mac;
    }
    at += option.bytes();
  }
  return found;
}

}  // namespace batchplane::icmp6
