// SPDX-License-Identifier: BSD-3-Clause
// checksum_patch.h - what the change of a word does to a checksum over it (RFC 1624). Words and
// checksum are either all as they lie in memory or all in host order.
#pragma once

#include <cstdint>

#include "base/net_headers.h"

namespace batchplane {

inline uint32_t fold32(uint32_t sum) {
  sum = (sum & 0xffff) + (sum >> 16);
  return (sum & 0xffff) + (sum >> 16);
}
// By how much a one's-complement sum grows when a word changes; at most four words' worth, to be
// folded. Never a sum of zero for what is not all ones before and zero after.
inline uint32_t growth16(uint16_t before, uint16_t after) {
  return static_cast<uint16_t>(~before) + uint32_t{after};
}
inline uint32_t growth32(uint32_t before, uint32_t after) {
  return (~before & 0xffff) + (~before >> 16) + (after & 0xffff) + (after >> 16);
}
// RFC 1624, equation 3. `growth` is folded: one carry can come of it, and adding it makes no other.
inline uint16_t mended(uint16_t checksum, uint32_t growth) {
  const uint32_t sum = static_cast<uint16_t>(~checksum) + growth;
  return static_cast<uint16_t>(~(sum + (sum >> 16)));
}
// UDP: no checksum stays none, and one that comes to zero is sent as all ones (RFC 768).
inline uint16_t mended_udp(uint16_t checksum, uint32_t growth) {
  if (checksum == 0) return 0;
  const uint16_t result = mended(checksum, growth);
  return result == 0 ? uint16_t{0xffff} : result;
}

// The checksum follows a word of what it sums; both words in host order.
inline void mend_checksum(net::Be16& checksum, uint32_t before, uint32_t after) {
  const uint32_t growth =
      fold32(growth16(static_cast<uint16_t>(before), static_cast<uint16_t>(after)));
  checksum = mended(checksum, growth);
}

}  // namespace batchplane
