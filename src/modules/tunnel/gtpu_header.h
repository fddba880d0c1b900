// SPDX-License-Identifier: BSD-3-Clause
// gtpu_header.h - the GTP-U header (3GPP TS 29.281) with its options and extension headers.
#pragma once

#include <cstdint>

#include "base/tunnel_headers.h"
#include "core/module/drop_reason.h"
#include "modules/session/session_rules.h"

namespace batchplane::gtpu {

inline constexpr uint16_t kPort = net::Gtpu::kPort;
inline constexpr uint32_t kHeaderBytes = sizeof(net::Gtpu);
inline constexpr uint32_t kOptionBytes = sizeof(net::GtpuOptions);
inline constexpr uint32_t kMaxExtensions = 8;

// Bits of the first byte.
inline constexpr uint8_t kVersion1 = net::Gtpu::kPlain;
inline constexpr uint8_t kHasExtension = net::Gtpu::kHasExtension;
inline constexpr uint8_t kHasSequence = 2;
inline constexpr uint8_t kHasOptions = 7;  // mask of the flags E, S and PN

inline constexpr uint8_t kEchoRequest = 1;
inline constexpr uint8_t kEchoResponse = 2;
inline constexpr uint8_t kErrorIndication = 26;
inline constexpr uint8_t kSupportedExtensions = 31;
inline constexpr uint8_t kEndMarker = 254;
inline constexpr uint8_t kGpdu = net::Gtpu::kPacket;

inline constexpr uint8_t kPduSessionContainer = net::GtpuPduSession::kExtension;
inline constexpr uint8_t kDownlinkPdu = 0;
inline constexpr uint8_t kUplinkPdu = net::GtpuPduSession::kUplink;
inline constexpr uint8_t kUdpPortExtension = 0x40;
// TS 29.281, 5.2.1: the receiver must understand extension types with this bit set.
inline constexpr uint8_t kMustBeKnown = 0x80;

inline const DropReason kBadGtpu{
    "bad_gtpu", "the GTP-U header, its length or its chain of extension headers is broken",
    "look at the peer that sends such packets"};
inline const DropReason kGtpuVersion{"gtpu_version",
                                     "the packet is of another version of GTP, or of GTP prime",
                                     "look at the peer: port 2152 is for GTP-U, version 1"};

struct Message {
  const DropReason* fault = nullptr;
  uint8_t type = 0;
  bool has_sequence = false;
  uint8_t qfi = session::kAnyQfi;
  uint8_t unknown_extension = 0;  // an unknown type that the receiver must understand; 0: none
  uint16_t sequence = 0;
  uint32_t teid = 0;
  uint32_t payload_offset_bytes = 0;  // from the GTP-U header
  uint32_t payload_bytes = 0;
};

// Reads options and extension headers; `end_bytes`: end of the message, counted from `gtp`.
[[nodiscard]] Message read_options(const net::Gtpu& gtp, uint32_t end_bytes,
                                   Message message) noexcept;

// `room_bytes`: bytes present. Bytes after the end of the message are ignored.
[[nodiscard]] inline Message read(const net::Gtpu& gtp, uint32_t room_bytes) noexcept {
  Message message;
  if (room_bytes < kHeaderBytes) [[unlikely]] {
    message.fault = &kBadGtpu;
    return message;
  }
  const uint32_t flags = gtp.flags;
  const uint32_t end_bytes = kHeaderBytes + gtp.length;
  if ((flags & 0xf0) != kVersion1 || end_bytes > room_bytes) [[unlikely]] {
    message.fault = (flags & 0xf0) != kVersion1 ? &kGtpuVersion : &kBadGtpu;
    return message;
  }
  message.type = gtp.type;
  message.teid = gtp.teid;
  message.payload_offset_bytes = kHeaderBytes;
  message.payload_bytes = end_bytes - kHeaderBytes;
  if ((flags & kHasOptions) == 0) [[likely]]
    return message;
  return read_options(gtp, end_bytes, message);
}

}  // namespace batchplane::gtpu
