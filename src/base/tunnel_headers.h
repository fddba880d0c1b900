// SPDX-License-Identifier: BSD-3-Clause
// tunnel_headers.h - GTP-U (3GPP TS 29.281) and VXLAN (RFC 7348) as views over the bytes behind UDP.
#pragma once

#include "base/net_headers.h"

namespace batchplane::net {

struct [[gnu::may_alias]] Gtpu {
  static constexpr uint16_t kPort = 2152;
  static constexpr uint8_t kPlain = 0x30;  // version 1, GTP, no options
  static constexpr uint8_t kHasExtension = 0x04;
  static constexpr uint8_t kPacket = 0xff;  // type: a user's packet follows

  uint8_t flags;  // version, and which options there are
  uint8_t type;
  Be16 length;  // of what follows these 8 bytes
  Be32 teid;
};
static_assert(sizeof(Gtpu) == 8);

// Behind the header when any flag says that one of them is there.
struct [[gnu::may_alias]] GtpuOptions {
  Be16 sequence;
  uint8_t n_pdu;
  uint8_t next_extension;
};
static_assert(sizeof(GtpuOptions) == 4);

// An extension header with a PDU session container (3GPP TS 38.415).
struct [[gnu::may_alias]] GtpuPduSession {
  static constexpr uint8_t kExtension = 0x85;
  static constexpr uint8_t kUplink = 0x10;

  uint8_t length;    // in units of 4 bytes
  uint8_t pdu_type;  // the upper half
  uint8_t qfi;       // with two flags above it
  uint8_t next_extension;
};
static_assert(sizeof(GtpuPduSession) == 4);

struct [[gnu::may_alias]] Vxlan {
  static constexpr uint16_t kPort = 4789;
  static constexpr uint8_t kHasVni = 0x08;
  static constexpr uint32_t kVniShift = 8;

  uint8_t flags;
  uint8_t reserved[3];
  Be32 vni_word;  // the VNI, and a reserved byte
};
static_assert(sizeof(Vxlan) == 8);

}  // namespace batchplane::net
