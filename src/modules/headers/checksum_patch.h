// SPDX-License-Identifier: BSD-3-Clause
// checksum_patch.h - incremental checksum update when a word changes (RFC 1624). Words and checksum
// are either all in memory order or all in host order.
#pragma once

#include <cstdint>

#include "base/net_headers.h"

namespace batchplane {

inline uint32_t fold32(uint32_t sum) {
  sum = (sum & 0xffff) + (sum >> 16);
  return (sum & 0xffff) + (sum >> 16);
}
// The increase of a one's-complement sum when a word changes: a sum of at most four 16-bit words,
// not folded. It is zero only if the word was all ones before and is zero after.
inline uint32_t growth16(uint16_t before, uint16_t after) {
  return static_cast<uint16_t>(~before) + uint32_t{after};
}
inline uint32_t growth32(uint32_t before, uint32_t after) {
  return (~before & 0xffff) + (~before >> 16) + (after & 0xffff) + (after >> 16);
}
// RFC 1624, equation 3. `growth` is folded: the sum carries at most once, and adding the carry
// gives no other.
inline uint16_t mended(uint16_t checksum, uint32_t growth) {
  const uint32_t sum = static_cast<uint16_t>(~checksum) + growth;
  return static_cast<uint16_t>(~(sum + (sum >> 16)));
}
// For UDP: no checksum stays none, and a checksum of zero is sent as all ones (RFC 768).
inline uint16_t mended_udp(uint16_t checksum, uint32_t growth) {
  if (checksum == 0) return 0;
  const uint16_t result = mended(checksum, growth);
  return result == 0 ? uint16_t{0xffff} : result;
}

// Updates the checksum for a changed word; both words in host order.
inline void mend_checksum(net::Be16& checksum, uint32_t before, uint32_t after) {
  const uint32_t growth =
      fold32(growth16(static_cast<uint16_t>(before), static_cast<uint16_t>(after)));
  checksum = mended(checksum, growth);
}

}  // namespace batchplane
