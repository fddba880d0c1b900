// SPDX-License-Identifier: BSD-3-Clause
// gtpu_header.cc - walks the extension headers, never beyond the end of the message.
#include "modules/tunnel/gtpu_header.h"

namespace batchplane::gtpu {
namespace {

constexpr uint32_t kUnitBytes = 4;  // unit of the length field
constexpr uint8_t kQfiBits = 0x3f;

}  // namespace

Message read_options(const net::Gtpu& gtp, uint32_t end_bytes, Message message) noexcept {
  uint32_t at = kHeaderBytes + kOptionBytes;
  if (at > end_bytes) {
    message.fault = &kBadGtpu;
    return message;
  }
  const auto& options = behind<net::GtpuOptions>(gtp);
  message.has_sequence = (gtp.flags & kHasSequence) != 0;
  message.sequence = options.sequence;
  uint8_t next = (gtp.flags & kHasExtension) != 0 ? options.next_extension : uint8_t{0};
  for (uint32_t n = 0; next != 0; ++n) {
    if (n == kMaxExtensions || end_bytes - at < kUnitBytes) {
      message.fault = &kBadGtpu;
      return message;
    }
    // Each extension header starts with its length and ends with the type of the next one.
    const auto& session = behind<net::GtpuPduSession>(gtp, at);
    const uint32_t bytes = session.length * kUnitBytes;
    if (bytes == 0 || bytes > end_bytes - at) {
      message.fault = &kBadGtpu;
      return message;
    }
    if (next == kPduSessionContainer) {
      message.qfi = session.qfi & kQfiBits;
    } else if ((next & kMustBeKnown) != 0) {
      message.unknown_extension = next;
    }
    at += bytes;
    next = bytes_of(gtp)[at - 1];
  }
  message.payload_offset_bytes = at;
  message.payload_bytes = end_bytes - at;
  return message;
}

}  // namespace batchplane::gtpu
