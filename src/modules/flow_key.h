// SPDX-License-Identifier: BSD-3-Clause
// flow_key.h - 64 well-mixed bits that are equal for all packets of one flow.
#pragma once

#include <cstdint>
#include <cstring>

#include "base/net.h"
#include "core/packet.h"
#include "modules/ipv4_header.h"

namespace batchplane {

// Folds the 128-bit product of two seeded words: each input bit reaches the upper half of the
// result.
inline uint64_t mix_words(uint64_t a, uint64_t b, uint64_t seed) {
  const auto product = static_cast<unsigned __int128>(a ^ seed ^ 0x8bb84b93962eacc9ULL) *
                       (b ^ 0x4b33a62ed433d4a3ULL);
  const auto folded = static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
  return folded * 0x9e3779b97f4a7c15ULL ^ folded >> 29;
}

// IPv4: addresses, protocol and, of unfragmented TCP, UDP and SCTP, the ports (so that all
// fragments of a packet stay together). Anything else: the Ethernet header. Needs 14 bytes.
inline uint64_t hash_flow(Packet& pkt, uint64_t seed) {
  constexpr uint8_t kProtoSctp = 132;
  constexpr uint16_t kFragmentBits = 0x3fff;  // offset and more-fragments
  const uint8_t* data = pkt.data();
  const uint32_t len_bytes = pkt.len_bytes();
  const uint32_t l3 = l3_offset_of(pkt);
  const bool is_ip = l3 != net::kEthBytes || net::load16(data + 12) == net::kTypeIpv4;
  if (!is_ip || len_bytes < l3 + net::kIpv4Bytes || data[l3] >> 4 != 4) {
    return mix_words(load64_raw(data), load64_raw(data + net::kEthBytes - 8), seed);
  }
  const uint8_t* ip = data + l3;
  // One wide word, taken apart by shifts: single bytes end up on the stack, where each costs a
  // stall.
  const uint32_t proto = load32_raw(ip + net::kIpTtl) >> 8 & 0xff;
  const uint32_t l4 = l3 + (load32_raw(ip) & 15U) * 4;
  uint64_t rest = uint64_t{proto} << 32;
  const bool has_ports = proto == net::kProtoTcp || proto == net::kProtoUdp || proto == kProtoSctp;
  if (has_ports && (net::load16(ip + net::kIpFragment) & kFragmentBits) == 0 &&
      len_bytes >= l4 + 4) {
    rest |= load32_raw(data + l4);
  }
  return mix_words(load64_raw(ip + net::kIpSrc), rest, seed);
}

}  // namespace batchplane
