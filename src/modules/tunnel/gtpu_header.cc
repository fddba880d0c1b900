// SPDX-License-Identifier: BSD-3-Clause
// gtpu_header.cc - walks the chain of extension headers, which ends with the message at the latest.
#include "modules/gtpu_header.h"

namespace batchplane::gtpu {
namespace {

constexpr uint32_t kUnitBytes = 4;  // extension headers are multiples of this

}  // namespace

Message read_options(const uint8_t* gtp, uint32_t end_bytes, Message message) noexcept {
  uint32_t at = kHeaderBytes + kOptionBytes;
  if (at > end_bytes) {
    message.fault = &kBadGtpu;
    return message;
  }
  const uint32_t flags = gtp[0];
  message.has_sequence = (flags & kHasSequence) != 0;
  message.sequence = net::load16(gtp + kHeaderBytes);
  uint8_t next = (flags & kHasExtension) != 0 ? gtp[at - 1] : uint8_t{0};
  for (uint32_t n = 0; next != 0; ++n) {
    if (n == kMostExtensions || end_bytes - at < kUnitBytes) {
      message.fault = &kBadGtpu;
      return message;
    }
    const uint32_t bytes = gtp[at] * kUnitBytes;
    if (bytes == 0 || bytes > end_bytes - at) {
      message.fault = &kBadGtpu;
      return message;
    }
    // The first two bytes of a container: PDU type, then flags and the flow's identifier.
    if (next == kPduSessionContainer) {
      message.qfi = gtp[at + 2] & 0x3f;
    } else if ((next & kMustBeKnown) != 0) {
      message.unknown_extension = next;
    }
    next = gtp[at + bytes - 1];
    at += bytes;
  }
  message.payload_offset_bytes = at;
  message.payload_bytes = end_bytes - at;
  return message;
}

}  // namespace batchplane::gtpu
