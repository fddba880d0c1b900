// SPDX-License-Identifier: BSD-3-Clause
// ipv4_header.h - the checksum arithmetic that the IPv4 modules share, free of byte order and
// branches.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "base/net.h"
#include "core/packet.h"

namespace batchplane {

inline uint64_t load64_raw(const uint8_t* p) {
  uint64_t x;
  std::memcpy(&x, p, 8);
  return x;
}
inline uint32_t load32_raw(const uint8_t* p) {
  uint32_t x;
  std::memcpy(&x, p, 4);
  return x;
}

// One's-complement sums do not depend on the byte order, so words may be added as they lie in
// memory and the result stored the same way; nor on the width of the words, as long as carries come
// back in.
inline uint64_t add_with_carry(uint64_t a, uint64_t b) {
  const uint64_t sum = a + b;
  return sum + (sum < b ? 1 : 0);
}

// Folds a sum to 16 bits: each half is added to the other, and the upper one then has the carry
// too.
inline uint32_t fold16(uint64_t sum) {
  const auto sum32 = static_cast<uint32_t>((sum + std::rotl(sum, 32)) >> 32);
  return (sum32 + std::rotl(sum32, 16)) >> 16;
}

// Sum of a header of 20 bytes without the checksum field, which is bytes 10 and 11; not folded.
// No load takes in the TTL and what lies beside it: one stored just before would delay it.
inline uint64_t sum_header20_but_checksum(const uint8_t* ip) {
  uint16_t ttl_and_proto;
  std::memcpy(&ttl_and_proto, ip + net::kIpTtl, 2);
  return add_with_carry(add_with_carry(load64_raw(ip), load64_raw(ip + 12)), ttl_and_proto);
}

inline uint64_t sum_header20(const uint8_t* ip) {
  uint16_t checksum;
  std::memcpy(&checksum, ip + net::kIpChecksum, 2);
  return add_with_carry(sum_header20_but_checksum(ip), checksum);
}

// Sum of the options behind the first 20 bytes; header_bytes is a multiple of 4.
inline uint64_t sum_options(const uint8_t* ip, uint32_t header_bytes) {
  uint64_t sum = 0;
  for (uint32_t at = net::kIpv4Bytes; at < header_bytes; at += 4) sum += load32_raw(ip + at);
  return sum;
}

// Lowers a TTL above 0 by one. TTL, protocol and checksum are read and written as one word.
// RFC 1624: the 16-bit word of TTL and protocol falls by 0x0100, so the checksum rises by it, which
// is 1 in memory order. From 0xfffe on the carry comes back in; that gives 0 for what has two
// forms.
inline void lower_ttl(uint8_t* ip, bool is_checksum_mended) {
  uint32_t word = load32_raw(ip + net::kIpTtl);
  if (is_checksum_mended) word += word >= 0xfffe0000U ? 0x20000U : 0x10000U;
  word -= 1;
  std::memcpy(ip + net::kIpTtl, &word, 4);
}

inline uint32_t header_bytes_of(const uint8_t* ip) { return (ip[0] & 15U) * 4; }

inline uint32_t l3_offset_of(Packet& pkt) { return pkt.meta().l3_offset_bytes; }

}  // namespace batchplane
