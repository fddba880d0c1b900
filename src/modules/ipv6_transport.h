// SPDX-License-Identifier: BSD-3-Clause
// ipv6_transport.h - what names the flow of an IPv6 packet: the transport behind its extension headers.
#pragma once

#include <cstdint>

#include "base/net.h"

namespace batchplane {

inline constexpr uint32_t kIpv6HeaderBytes = 40;

// Where the chain of extension headers ends.
struct Transport6 {
  uint8_t proto = 0;  // of a fragment other than the first: what its fragment header names
  bool is_fragment = false;
  bool is_first = true;       // no fragment, or the first one
  bool is_whole = true;       // false: the packet ends within the chain
  uint32_t offset_bytes = 0;  // from the IPv6 header
};

// `room_bytes` from the IPv6 header on, at least 40. A chain longer than any sender's is given up;
// then `proto` is that of the extension header where it was.
inline Transport6 find_transport6(const uint8_t* ip, uint32_t room_bytes) {
  constexpr uint8_t kHopByHop = 0;
  constexpr uint8_t kRouting = 43;
  constexpr uint8_t kFragment = 44;
  constexpr uint8_t kAuthentication = 51;
  constexpr uint8_t kDestinationOptions = 60;
  constexpr uint32_t kMaxHeaders = 8;
  Transport6 found{.proto = ip[6], .offset_bytes = kIpv6HeaderBytes};
  for (uint32_t n = 0; n < kMaxHeaders; ++n) {
    const uint8_t kind = found.proto;
    const bool is_extension = kind == kHopByHop || kind == kRouting || kind == kFragment ||
                              kind == kAuthentication || kind == kDestinationOptions;
    if (!is_extension) return found;
    if (room_bytes < found.offset_bytes + 8) {
      found.is_whole = false;
      return found;
    }
    const uint8_t* header = ip + found.offset_bytes;
    uint32_t header_bytes = (header[1] + 1U) * 8;
    if (kind == kAuthentication) header_bytes = (header[1] + 2U) * 4;
    found.proto = header[0];
    if (kind == kFragment) {
      header_bytes = 8;
      const uint16_t place = net::load16(header + 2);
      found.is_fragment |= (place & 0xfff9) != 0;  // offset and more-fragments
      found.is_first = (place & 0xfff8) == 0;
    }
    found.offset_bytes += header_bytes;
    if (!found.is_first) return found;
  }
  return found;
}

}  // namespace batchplane
