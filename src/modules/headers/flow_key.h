// SPDX-License-Identifier: BSD-3-Clause
// flow_key.h - 64 well-mixed bits that are equal for all packets of one flow.
#pragma once

#include <cstdint>
#include <cstring>

#include "base/net6.h"
#include "core/packet.h"
#include "modules/ipv4_header.h"
#include "modules/ipv6_header.h"

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

// Of a packet whose fields are known; ports as they lie in memory, 0 where they do not count.
inline uint64_t hash_flow4(const uint8_t* ip, uint32_t proto, uint32_t ports, uint64_t seed) {
  return mix_words(load64_raw(ip + net::kIpSrc), uint64_t{proto} << 32 | ports, seed);
}

inline uint64_t hash_flow6(const uint8_t* ip, uint32_t room_bytes, uint64_t seed) {
  const Extensions6 chain = walk_extensions6<TransportExtensions>(ip, room_bytes);
  const uint32_t l4 = chain.offset_bytes;
  // Fragments but the first know only what comes first behind their fragment header.
  const uint32_t proto = chain.is_fragment ? net::kNextFragment : chain.protocol;
  const bool is_whole = chain.end != Extensions6::End::kTruncated;
  const bool is_port_read = is_whole && has_ports(proto) && room_bytes >= l4 + 4;
  const uint64_t rest = uint64_t{proto} << 32 | (is_port_read ? load32_raw(ip + l4) : 0);
  const uint64_t source = mix_words(load64_raw(ip + 8), load64_raw(ip + 16), seed);
  const uint64_t both = mix_words(source ^ load64_raw(ip + 24), load64_raw(ip + 32), seed);
  return mix_words(both, rest, seed);
}

// Out of line, so that it costs nothing where IPv4 is hashed.
[[gnu::noinline]] inline uint64_t hash_flow_but_ipv4(Packet& pkt, uint64_t seed) {
  const uint8_t* data = pkt.data();
  const uint32_t len_bytes = pkt.len_bytes();
  const uint32_t l3 = l3_offset_of(pkt);
  const bool is_ip = l3 != net::kEthBytes || net::load16(data + 12) == net::kTypeIpv6;
  if (is_ip && len_bytes >= l3 + net::kIpv6Bytes && data[l3] >> 4 == 6) {
    return hash_flow6(data + l3, len_bytes - l3, seed);
  }
  return mix_words(load64_raw(data), load64_raw(data + net::kEthBytes - 8), seed);
}

// IP: addresses, protocol and, of unfragmented TCP, UDP and SCTP, the ports (so that all fragments
// of a packet stay together). Anything else: the Ethernet header. Needs 14 bytes.
inline uint64_t hash_flow(Packet& pkt, uint64_t seed) {
  constexpr uint16_t kFragmentBits = 0x3fff;  // offset and more-fragments
  const uint8_t* data = pkt.data();
  const uint32_t len_bytes = pkt.len_bytes();
  const uint32_t l3 = l3_offset_of(pkt);
  const bool is_ip = l3 != net::kEthBytes || net::load16(data + 12) == net::kTypeIpv4;
  if (!is_ip || len_bytes < l3 + net::kIpv4Bytes || data[l3] >> 4 != 4) {
    return hash_flow_but_ipv4(pkt, seed);
  }
  const uint8_t* ip = data + l3;
  // One wide word, taken apart by shifts: single bytes end up on the stack, where each costs a
  // stall.
  const uint32_t proto = load32_raw(ip + net::kIpTtl) >> 8 & 0xff;
  const uint32_t l4 = l3 + (load32_raw(ip) & 15U) * 4;
  uint32_t ports = 0;
  if (has_ports(proto) && (net::load16(ip + net::kIpFragment) & kFragmentBits) == 0 &&
      len_bytes >= l4 + 4) {
    ports = load32_raw(data + l4);
  }
  return hash_flow4(ip, proto, ports, seed);
}

}  // namespace batchplane
