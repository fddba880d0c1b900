// SPDX-License-Identifier: BSD-3-Clause
// tunnel_headers.h - PPPoE (RFC 2516), GTP-U (3GPP TS 29.281) and VXLAN (RFC 7348) headers as views over
// bytes.
#pragma once

#include "base/net_headers.h"

namespace batchplane::net {

inline constexpr uint16_t kTypePppoe = 0x8864;  // PPPoE session stage

// PPPoE session header and the PPP protocol field (RFC 2516, RFC 1661).
struct [[gnu::may_alias]] Pppoe {
  static constexpr uint8_t kVersionAndType = 0x11;
  static constexpr uint16_t kIpv4 = 0x0021;
  static constexpr uint16_t kIpv6 = 0x0057;

  uint8_t version_type;
  uint8_t code;
  Be16 session;
  Be16 length;  // counted from the protocol field on
  Be16 protocol;

  // EtherType of the payload; 0 if it is not IP.
  [[nodiscard]] uint16_t type() const {
    if (version_type != kVersionAndType || code != 0) return 0;
    if (protocol == kIpv4) return kTypeIpv4;
    return protocol == kIpv6 ? kTypeIpv6 : uint16_t{0};
  }
};
static_assert(sizeof(Pppoe) == 8);

struct [[gnu::may_alias]] Gtpu {
  static constexpr uint16_t kPort = 2152;
  static constexpr uint8_t kPlain = 0x30;  // version 1, GTP, no options
  static constexpr uint8_t kHasExtension = 0x04;
  static constexpr uint8_t kPacket = 0xff;  // message type G-PDU: a user packet follows

  uint8_t flags;  // version and presence of options
  uint8_t type;
  Be16 length;  // of everything after these 8 bytes
  Be32 teid;
};
static_assert(sizeof(Gtpu) == 8);

// Follows the header when any option flag is set.
struct [[gnu::may_alias]] GtpuOptions {
  Be16 sequence;
  uint8_t n_pdu;
  uint8_t next_extension;
};
static_assert(sizeof(GtpuOptions) == 4);

// Extension header with a PDU session container (3GPP TS 38.415).
struct [[gnu::may_alias]] GtpuPduSession {
  static constexpr uint8_t kExtension = 0x85;
  static constexpr uint8_t kUplink = 0x10;

  uint8_t length;    // in units of 4 bytes
  uint8_t pdu_type;  // in the upper half
  uint8_t qfi;       // below two flags
  uint8_t next_extension;
};
static_assert(sizeof(GtpuPduSession) == 4);

struct [[gnu::may_alias]] Vxlan {
  static constexpr uint16_t kPort = 4789;
  static constexpr uint8_t kHasVni = 0x08;
  static constexpr uint32_t kVniShift = 8;

  uint8_t flags;
  uint8_t reserved[3];
  Be32 vni_word;  // VNI and a reserved byte
};
static_assert(sizeof(Vxlan) == 8);

}  // namespace batchplane::net
