// SPDX-License-Identifier: BSD-3-Clause
// l4_header.h - finds the transport header of an IP packet, and sums what its checksum covers.
#pragma once

#include <cstdint>

#include "base/net_headers.h"
#include "core/module/drop_reason.h"
#include "modules/headers/ipv4_header.h"
#include "modules/headers/shared_reasons.h"

namespace batchplane::l4 {

enum class Find : uint8_t {
  kWhole,     // not a fragment: the transport header and its payload are complete
  kFragment,  // a fragment; the first has the transport header
  kOther,     // an IP packet whose transport header cannot be found
  kTooShort,
  kBadVersion,
  kBadHeaderLength,
  kBadTotalLength,
};

struct Place {
  Find find = Find::kOther;
  uint8_t proto = 0;
  bool is_v6 = false;
  bool has_header = false;    // false except in the first fragment
  uint32_t offset_bytes = 0;  // from the IP header
  uint32_t len_bytes = 0;     // transport header and payload, according to the IP header
};

inline const DropReason kBadL4Length{"bad_l4_length",
                                     "the transport header does not fit the length of the packet",
                                     "look at the sender; such packets are broken or forged"};
inline const DropReason kBadL4Checksum{
    "bad_l4_checksum", "the checksum of TCP, UDP or ICMP is wrong",
    "turn off checksum offload at the sender's end of a veth or tap"};

// The drop reason for a packet that cannot be read; nullptr for the others.
[[nodiscard]] inline const DropReason* fault_of(Find find) {
  switch (find) {
    case Find::kTooShort:
      return &reason::kTooShort;
    case Find::kBadVersion:
      return &reason::kBadVersion;
    case Find::kBadHeaderLength:
      return &reason::kBadHeaderLength;
    case Find::kBadTotalLength:
      return &reason::kBadTotalLength;
    default:
      return nullptr;
  }
}

// For IPv6 with its extension headers; `room_bytes`: from the IP header to the packet's end.
[[nodiscard]] Place find_v6(const uint8_t* header, uint32_t room_bytes) noexcept;

[[nodiscard]] inline Place find(const uint8_t* header, uint32_t room_bytes) noexcept {
  if (room_bytes < net::kIpv4Bytes) [[unlikely]]
    return {.find = Find::kTooShort};
  if (net::ip_version(header) != 4) [[unlikely]]
    return find_v6(header, room_bytes);
  const auto& ip = header_at<net::Ipv4>(header);
  const uint32_t header_bytes = ip.header_bytes();
  const uint32_t total_bytes = ip.total_length;
  if (header_bytes < net::kIpv4Bytes || header_bytes > room_bytes) [[unlikely]]
    return {.find = Find::kBadHeaderLength};
  if (total_bytes < header_bytes || total_bytes > room_bytes) [[unlikely]]
    return {.find = Find::kBadTotalLength};
  return {.find = ip.is_fragment() ? Find::kFragment : Find::kWhole,
          .proto = ip.protocol,
          .is_v6 = false,
          .has_header = !ip.is_later_fragment(),
          .offset_bytes = header_bytes,
          .len_bytes = total_bytes - header_bytes};
}

// The common case only: an unfragmented IPv4 packet without options. Otherwise protocol 0.
[[nodiscard]] inline Place find_plain(const uint8_t* header, uint32_t room_bytes) noexcept {
  Place place;
  const auto& ip = header_at<net::Ipv4>(header);
  if (room_bytes < net::kIpv4Bytes || ip.version_ihl != net::Ipv4::kPlain) return place;
  const uint32_t len_bytes = ip.total_length - net::kIpv4Bytes;
  // Wraps if the total length is less than the header.
  if (len_bytes > room_bytes - net::kIpv4Bytes) return place;
  if (ip.is_fragment()) return place;
  place.find = Find::kWhole;
  place.proto = ip.protocol;
  place.has_header = true;
  place.offset_bytes = net::kIpv4Bytes;
  place.len_bytes = len_bytes;
  return place;
}

// Offset of the checksum field; 0 for protocols without a checksum that is handled here. UDP-Lite,
// SCTP and DCCP compute theirs differently.
[[nodiscard]] inline uint32_t checksum_offset(const Place& place) {
  if (place.proto == net::kProtoUdp) return offsetof(net::Udp, checksum);
  if (place.proto == net::kProtoTcp) return offsetof(net::Tcp, checksum);
  const bool is_icmp = place.proto == (place.is_v6 ? net::kProtoIcmp6 : net::kProtoIcmp);
  return is_icmp ? offsetof(net::Icmp, checksum) : 0;
}
// Length of a header of this protocol without options.
[[nodiscard]] inline uint32_t min_bytes(uint8_t proto) {
  return proto == net::kProtoTcp ? net::kTcpBytes : net::kUdpBytes;
}

// Sum of n bytes in memory order; not folded.
[[nodiscard]] inline uint64_t sum_bytes(const uint8_t* p, uint32_t n_bytes) noexcept {
  uint64_t low = 0;
  uint64_t high = 0;
  uint32_t at = 0;
  for (; at + 8 <= n_bytes; at += 8) {
    const uint64_t word = load64_raw(p + at);
    low += static_cast<uint32_t>(word);
    high += word >> 32;
  }
  if ((n_bytes & 4) != 0) {
    low += load32_raw(p + at);
    at += 4;
  }
  if ((n_bytes & 2) != 0) {
    high += load16_raw(p + at);
    at += 2;
  }
  if ((n_bytes & 1) != 0) low += p[at];
  return low + high;
}

// Sum of the pseudo-header; `len_bytes` is its upper-layer length.
[[nodiscard]] inline uint64_t sum_pseudo_header(const uint8_t* header, const Place& place,
                                                uint32_t len_bytes) noexcept {
  const uint64_t rest = net::be16(static_cast<uint16_t>(len_bytes)) + (uint64_t{place.proto} << 8);
  if (place.is_v6) {
    const auto& ip = header_at<net::Ipv6>(header);
    return rest + sum_bytes(bytes_of(ip.src), sizeof ip.src + sizeof ip.dst);
  }
  // The ICMPv4 checksum covers no pseudo-header.
  if (place.proto == net::kProtoIcmp) return 0;
  const auto& ip = header_at<net::Ipv4>(header);
  return rest + ip.src.raw() + ip.dst.raw();
}

// For UDP over IPv6 with a complete datagram: the checksum is mandatory, and 0 would mean none (RFC
// 8200, 8.1).
inline void write_udp6_checksum(const net::Ipv6& ip, net::Udp& udp, uint32_t udp_bytes) noexcept {
  udp.checksum = 0;
  const Place place{.proto = net::kProtoUdp, .is_v6 = true};
  const uint64_t of_all =
      sum_bytes(bytes_of(udp), udp_bytes) + sum_pseudo_header(bytes_of(ip), place, udp_bytes);
  const auto checksum = static_cast<uint16_t>(~fold16(of_all));
  udp.checksum.set_raw(checksum == 0 ? 0xffff : checksum);
}

}  // namespace batchplane::l4
