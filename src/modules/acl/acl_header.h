// SPDX-License-Identifier: BSD-3-Clause
// acl_header.h - brings packet headers into the form that classifiers read.
#pragma once

#include <cstdint>

#include "core/packet/packet.h"

namespace batchplane {

// The classifier that a packet needs, or the reason why it needs none.
enum class AclClass : uint8_t {
  kIpv4,          // with ports
  kIpv4Portless,  // another protocol, or a later fragment
  kIpv6,
  kIpv6Portless,
  kOther,  // not IP
  kTooShort,
  kBadHeader,
  kTinyFragment,
};
inline constexpr uint32_t kAclQuestions = 4;  // the first four classes have classifiers

struct AclKey {
  AclClass question = AclClass::kOther;
  const uint8_t* header = nullptr;
};

// Bytes of the transport header that rules match: 0, kAclPortsBytes or kAclFlagsBytes. If 0, all
// packets are treated as portless.
struct AclNeeds {
  uint32_t ipv4_transport_bytes = 0;
  uint32_t ipv6_transport_bytes = 0;
};

inline constexpr uint32_t kAclRoomBytes = 64;
inline constexpr uint32_t kAclTcpBytes = offsetof(net::Tcp, flags) + sizeof(net::Tcp::flags);

// Bytes of the transport header that a packet must have; 0 for protocols without ports.
inline uint32_t acl_transport_bytes(uint32_t proto) {
  constexpr uint64_t kUdpAndDccp = 1ULL << 17 | 1ULL << 33;
  if (proto == net::kProtoTcp) return kAclTcpBytes;
  const bool has_ports =
      (proto < 64 && (kUdpAndDccp >> proto & 1) != 0) || proto == 132 || proto == 136;
  return has_ports ? sizeof(net::Ports) : 0;
}

// `room`: kAclRoomBytes for headers that must be copied; must live as long as the key.
AclKey find_acl_key(Packet& pkt, AclNeeds needs, uint8_t* room) noexcept;

}  // namespace batchplane
