// SPDX-License-Identifier: BSD-3-Clause
// flow_key.h - 64-bit flow hash, equal for all packets of a flow.
#pragma once

#include <cstdint>

#include "base/net_headers.h"
#include "core/packet/packet.h"
#include "modules/headers/ipv4_header.h"
#include "modules/headers/ipv6_header.h"

namespace batchplane {

// Folds the 128-bit product of two seeded words: each input bit reaches the upper half of the
// result.
inline uint64_t mix_words(uint64_t a, uint64_t b, uint64_t seed) {
  const auto product = static_cast<unsigned __int128>(a ^ seed ^ 0x8bb84b93962eacc9ULL) *
                       (b ^ 0x4b33a62ed433d4a3ULL);
  const auto folded = static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
  return folded * 0x9e3779b97f4a7c15ULL ^ folded >> 29;
}

// Protocols whose first four bytes are the ports.
inline bool has_ports(uint32_t proto) {
  constexpr uint32_t kProtoSctp = 132;
  return proto == net::kProtoTcp || proto == net::kProtoUdp || proto == kProtoSctp;
}

// For a packet whose fields are known; ports in memory order, 0 where they do not count.
inline uint64_t hash_flow4(const net::Ipv4& ip, uint32_t proto, uint32_t ports, uint64_t seed) {
  return mix_words(ip.addresses_raw(), uint64_t{proto} << 32 | ports, seed);
}

inline uint64_t hash_flow6(const net::Ipv6& ip, uint32_t room_bytes, uint64_t seed) {
  const Extensions6 chain = walk_extensions6<TransportExtensions>(ip, room_bytes);
  const uint32_t l4 = chain.offset_bytes;
  // Only the first fragment has the headers behind the fragment header, so those of all fragments
  // are left out.
  const uint32_t proto = chain.is_fragment ? net::kNextFragment : chain.protocol;
  const bool is_whole = chain.end != Extensions6::End::kTruncated;
  const bool is_port_read = is_whole && has_ports(proto) && room_bytes >= l4 + sizeof(net::Ports);
  const uint64_t rest = uint64_t{proto} << 32 | (is_port_read ? load32_raw(bytes_of(ip) + l4) : 0);
  const uint64_t source = mix_words(ip.src.high_raw(), ip.src.low_raw(), seed);
  const uint64_t both = mix_words(source ^ ip.dst.high_raw(), ip.dst.low_raw(), seed);
  return mix_words(both, rest, seed);
}

// Out of line, so that IPv4 packets pay nothing for it.
[[gnu::noinline]] inline uint64_t hash_flow_but_ipv4(Packet& pkt, uint64_t seed) {
  const auto& eth = header_in<net::Ethernet>(pkt, 0);
  const uint32_t len_bytes = pkt.len_bytes();
  const uint32_t l3 = l3_offset_of(pkt);
  const bool is_ip = l3 != net::kEthBytes || eth.type == net::kTypeIpv6;
  if (is_ip && len_bytes >= l3 + net::kIpv6Bytes && net::ip_version(pkt.data() + l3) == 6) {
    return hash_flow6(header_in<net::Ipv6>(pkt, l3), len_bytes - l3, seed);
  }
  return mix_words(eth.front_raw(), eth.back_raw(), seed);
}

// For a packet with a complete IPv4 header; `room_bytes` counts from there.
inline uint64_t hash_flow4(const uint8_t* ip_begin, uint32_t room_bytes, uint64_t seed) {
  const auto& ip = header_at<net::Ipv4>(ip_begin);
  // One wide load, taken apart by shifts: single bytes would end up on the stack, and each costs a
  // stall.
  const uint32_t proto = ip.ttl_word_raw() >> 8 & 0xff;
  const uint32_t l4 = (load32_raw(bytes_of(ip)) & 15U) * 4;
  uint32_t ports = 0;
  if (has_ports(proto) && !ip.is_fragment() && room_bytes >= l4 + sizeof(net::Ports)) {
    ports = load32_raw(ip_begin + l4);
  }
  return hash_flow4(ip, proto, ports, seed);
}

// For IP: addresses, protocol and, for unfragmented TCP, UDP and SCTP, the ports (so that all
// fragments of a packet get the same hash). For other frames: the Ethernet header. Needs 14 bytes.
inline uint64_t hash_flow(Packet& pkt, uint64_t seed) {
  const uint8_t* data = pkt.data();
  const uint32_t len_bytes = pkt.len_bytes();
  const uint32_t l3 = l3_offset_of(pkt);
  const bool is_ip = l3 != net::kEthBytes || header_at<net::Ethernet>(data).type == net::kTypeIpv4;
  if (!is_ip || len_bytes < l3 + net::kIpv4Bytes || net::ip_version(data + l3) != 4) {
    return hash_flow_but_ipv4(pkt, seed);
  }
  return hash_flow4(data + l3, len_bytes - l3, seed);
}

}  // namespace batchplane
