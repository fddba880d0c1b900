// SPDX-License-Identifier: BSD-3-Clause
// l4_header.cc - walks the extension headers of IPv6.
#include "modules/l4_header.h"

namespace batchplane::l4 {
namespace {

constexpr uint8_t kHopByHop = 0;
constexpr uint8_t kRouting = 43;
constexpr uint8_t kFragmentHeader = 44;
constexpr uint8_t kAuthentication = 51;
constexpr uint8_t kDestination = 60;
constexpr uint16_t kFragmentBits = 0xfff9;  // offset, and more to come

uint32_t extension_bytes(uint8_t type, const uint8_t* header) {
  if (type == kFragmentHeader) return 8;
  return type == kAuthentication ? (header[1] + 2U) * 4 : (header[1] + 1U) * 8;
}

bool is_extension(uint8_t type) {
  return type == kHopByHop || type == kRouting || type == kFragmentHeader ||
         type == kAuthentication || type == kDestination;
}

}  // namespace

Place find_v6(const uint8_t* ip, uint32_t room_bytes) noexcept {
  if (ip[0] >> 4 != 6) return {.find = Find::kBadVersion};
  if (room_bytes < kIpv6Bytes) return {.find = Find::kTooShort};
  const uint32_t end = kIpv6Bytes + net::load16(ip + 4);
  if (end > room_bytes) return {.find = Find::kBadTotalLength};
  Place place{.find = Find::kWhole,
              .proto = ip[6],
              .is_v6 = true,
              .has_header = true,
              .offset_bytes = kIpv6Bytes};
  for (uint32_t n = 0; is_extension(place.proto); ++n) {
    const uint8_t* const header = ip + place.offset_bytes;
    if (n == kMostExtensions) return {.find = Find::kOther};
    if (end - place.offset_bytes < 8) return {.find = Find::kBadHeaderLength};
    const uint32_t bytes = extension_bytes(place.proto, header);
    if (bytes > end - place.offset_bytes) return {.find = Find::kBadHeaderLength};
    // The last address is not the one in the header: no sum could be made here.
    if (place.proto == kRouting && header[3] != 0) return {.find = Find::kOther};
    if (place.proto == kFragmentHeader && (net::load16(header + 2) & kFragmentBits) != 0) {
      place.find = Find::kFragment;
      place.has_header = place.has_header && net::load16(header + 2) >> 3 == 0;
    }
    place.proto = header[0];
    place.offset_bytes += bytes;
    if (!place.has_header) break;
  }
  place.len_bytes = end - place.offset_bytes;
  return place;
}

}  // namespace batchplane::l4
