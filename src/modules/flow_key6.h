// SPDX-License-Identifier: BSD-3-Clause
// flow_key6.h - 64 well-mixed bits that are equal for all packets of one IPv6 flow.
#pragma once

#include "modules/flow_key.h"
#include "modules/ipv6_header.h"

namespace batchplane {

// Addresses, protocol and, of unfragmented TCP, UDP and SCTP, the ports (so that all fragments of a
// packet stay together). `ip` has `len_bytes` bytes, 40 at least.
inline uint64_t hash_flow6(const uint8_t* ip, uint32_t len_bytes, uint64_t seed) {
  constexpr uint8_t kProtoSctp = 132;
  const UpperLayer6 upper = upper_layer6(ip, len_bytes);
  uint64_t rest = upper.protocol;
  const bool has_ports = upper.protocol == net::kProtoTcp || upper.protocol == net::kProtoUdp ||
                         upper.protocol == kProtoSctp;
  if (has_ports && upper.is_here() && upper.fragment_bytes == 0 &&
      upper.offset_bytes + 4 <= len_bytes) {
    rest |= uint64_t{load32_raw(ip + upper.offset_bytes)} << 32;
  }
  const uint64_t source =
      mix_words(load64_raw(ip + net::kIp6Src), load64_raw(ip + net::kIp6Src + 8), seed);
  const uint64_t destination =
      mix_words(load64_raw(ip + net::kIp6Dst), load64_raw(ip + net::kIp6Dst + 8), source);
  return mix_words(destination, rest, seed);
}

}  // namespace batchplane
