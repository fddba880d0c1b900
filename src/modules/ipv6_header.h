// SPDX-License-Identifier: BSD-3-Clause
// ipv6_header.h - where the upper-layer header of an IPv6 packet lies, behind its extension
// headers.
#pragma once

#include <cstdint>

#include "base/net6.h"
#include "core/packet.h"

namespace batchplane {

// No honest packet has more; each costs a read of a place that is only known from the one before.
inline constexpr uint32_t kMaxExtensionHeaders = 8;

struct UpperLayer6 {
  enum class Fault : uint8_t { kNone, kTruncated, kTooMany, kMisplaced };
  uint8_t protocol = net::kNextNone;  // of the first header that is no extension header
  uint32_t offset_bytes = 0;          // from the IPv6 header; 0 in later fragments
  uint32_t fragment_bytes = 0;        // offset of a fragment header; 0 = none
  Fault fault = Fault::kNone;

  // Of a packet with such a header, or of its first fragment.
  [[nodiscard]] bool is_here() const { return fault == Fault::kNone && offset_bytes != 0; }
};

inline bool is_extension6(uint8_t next) {
  return next == net::kNextHopByHop || next == net::kNextRouting || next == net::kNextFragment ||
         next == net::kNextDestination || next == net::kNextAuthentication ||
         next == net::kNextMobility;
}

// Walks the chain; `ip` has `len_bytes` bytes, 40 at least, without padding behind them.
inline UpperLayer6 upper_layer6(const uint8_t* ip, uint32_t len_bytes) {
  UpperLayer6 found{.protocol = ip[net::kIp6NextHeader], .offset_bytes = net::kIpv6Bytes};
  bool is_first_fragment = true;
  for (uint32_t n = 0; is_extension6(found.protocol); ++n) {
    const uint8_t* header = ip + found.offset_bytes;
    if (n == kMaxExtensionHeaders) return found.fault = UpperLayer6::Fault::kTooMany, found;
    if (found.offset_bytes + 8 > len_bytes) {
      return found.fault = UpperLayer6::Fault::kTruncated, found;
    }
    // RFC 8200, 4.1: only right behind the IPv6 header.
    if (found.protocol == net::kNextHopByHop && n != 0) {
      return found.fault = UpperLayer6::Fault::kMisplaced, found;
    }
    uint32_t bytes = (header[1] + 1U) * 8;
    if (found.protocol == net::kNextAuthentication) bytes = (header[1] + 2U) * 4;
    if (found.protocol == net::kNextFragment) {
      bytes = 8;
      found.fragment_bytes = found.offset_bytes;
      is_first_fragment = (net::load16(header + 2) & 0xfff8) == 0;
    }
    found.protocol = header[0];
    if (!is_first_fragment) return found.offset_bytes = 0, found;
    found.offset_bytes += bytes;
    if (found.offset_bytes > len_bytes) {
      return found.fault = UpperLayer6::Fault::kTruncated, found;
    }
  }
  return found;
}

// Whether an ICMPv6 type is an error's (RFC 4443, 2.1).
inline bool is_icmp6_error_type(uint8_t type) { return type < 128; }

}  // namespace batchplane
