// SPDX-License-Identifier: BSD-3-Clause
// ipv4_header.h - checksum arithmetic shared by the IPv4 modules, free of byte order and branches.
#pragma once

#include <bit>
#include <cstdint>

#include "base/net_headers.h"
#include "core/packet/packet.h"

namespace batchplane {

// One's-complement sums do not depend on the byte order, so words may be added in memory order and
// the result stored the same way; nor on the width of the words, as long as carries are added back.
inline uint64_t add_with_carry(uint64_t a, uint64_t b) {
  const uint64_t sum = a + b;
  return sum + (sum < b ? 1 : 0);
}

// Folds a sum to 16 bits: adds each half to the other, so that the upper half includes the carry.
inline uint32_t fold16(uint64_t sum) {
  const auto sum32 = static_cast<uint32_t>((sum + std::rotl(sum, 32)) >> 32);
  return (sum32 + std::rotl(sum32, 16)) >> 16;
}

// Sum of a header without options, leaving out the checksum field; not folded. The TTL is not
// loaded together with its neighbours: if it was stored just before, that load would have to wait
// for the store.
inline uint64_t sum_header20_but_checksum(const net::Ipv4& ip) {
  return add_with_carry(add_with_carry(ip.front_raw(), ip.addresses_raw()), ip.ttl_protocol_raw());
}

inline uint64_t sum_header20(const net::Ipv4& ip) {
  return add_with_carry(sum_header20_but_checksum(ip), ip.checksum.raw());
}

// Sum of the options behind the first 20 bytes; header_bytes is a multiple of 4.
inline uint64_t sum_options(const net::Ipv4& ip, uint32_t header_bytes) {
  uint64_t sum = 0;
  for (uint32_t at = net::kIpv4Bytes; at < header_bytes; at += 4) {
    sum += load32_raw(bytes_of(ip) + at);
  }
  return sum;
}

// Writes the header checksum, with or without options.
inline void write_checksum(net::Ipv4& ip, uint32_t header_bytes = net::kIpv4Bytes) {
  ip.checksum = 0;
  ip.checksum = net::checksum_finish(net::checksum_add(bytes_of(ip), header_bytes));
}

// Decrements a TTL above 0. TTL, protocol and checksum are read and written as one word. RFC 1624:
// the 16-bit word of TTL and protocol falls by 0x0100, so the checksum rises by 0x0100, which is 1
// in memory order. From 0xfffe on the carry is added back; of the two forms of zero that gives 0.
inline void lower_ttl(net::Ipv4& ip, bool is_checksum_mended) {
  uint32_t word = ip.ttl_word_raw();
  if (is_checksum_mended) word += word >= 0xfffe0000U ? 0x20000U : 0x10000U;
  ip.set_ttl_word_raw(word - 1);
}

// The packet length in the IP header of either version, header included.
inline uint32_t told_bytes_of(const uint8_t* ip) {
  return net::ip_version(ip) == 4 ? uint32_t{header_at<net::Ipv4>(ip).total_length}
                                  : net::kIpv6Bytes + header_at<net::Ipv6>(ip).payload_length;
}

// Both versions have the traffic class in their first two bytes: IPv4 in the low half, IPv6 four
// bits further up.
inline const net::Be16& class_word_of(const uint8_t* ip) { return header_at<net::Be16>(ip); }
inline net::Be16& class_word_of(uint8_t* ip) { return header_at<net::Be16>(ip); }

// The octet with the DSCP and ECN bits, for either IP version.
inline uint32_t traffic_class_of(const uint8_t* ip) {
  return net::ip_version(ip) == 4 ? header_at<net::Ipv4>(ip).tos
                                  : header_at<net::Ipv6>(ip).traffic_class();
}

// The EtherType of the network header: the two bytes before it, with VLAN tags or without.
inline const net::Be16& type_before(Packet& pkt, uint32_t l3) {
  return header_in<net::Be16>(pkt, l3 - sizeof(net::Be16));
}

// Decapsulates the IP packet that begins at `offset_bytes` of the frame; the outer Ethernet
// addresses are kept in front of it.
inline void unwrap_ip(Packet& pkt, uint32_t offset_bytes, uint32_t inner_bytes, bool is_v4) {
  auto& eth = header_in<net::Ethernet>(pkt, offset_bytes - net::kEthBytes);
  eth.set_macs(header_in<net::Ethernet>(pkt, 0).macs());
  eth.type = is_v4 ? net::kTypeIpv4 : net::kTypeIpv6;
  pkt.pull_front(offset_bytes - net::kEthBytes);
  pkt.set_len_bytes(net::kEthBytes + inner_bytes);
  pkt.meta().l3_offset_bytes = net::kEthBytes;
  pkt.meta().l4_offset_bytes = 0;
}

inline uint32_t l3_offset_of(Packet& pkt) { return pkt.meta().l3_offset_bytes; }

}  // namespace batchplane
