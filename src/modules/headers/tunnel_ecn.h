// SPDX-License-Identifier: BSD-3-Clause
// tunnel_ecn.h - copies congestion marks from an outer header to the inner packet (RFC 6040, 4.2).
#pragma once

#include "modules/headers/checksum_patch.h"
#include "modules/headers/vxlan_header.h"

namespace batchplane {

inline const DropReason kEcnMismatch{
    "ecn_mismatch", "congestion was marked on a packet that does not know of it (RFC 6040)",
    "look at the tunnel's other end: it must not send such packets as ECN-capable"};

// Copies congestion marks to the inner packet, whose frame begins at `pkt`; false if the outer header
// says CE and the inner packet does not support ECN.
[[gnu::noinline]] inline bool carry_ecn(Packet& pkt, uint32_t outer) noexcept {
  const uint32_t l3 = l3_offset_of(pkt);
  if (pkt.len_bytes() < l3 + net::kIpv4Bytes) return true;
  const uint16_t type = type_before(pkt, l3);
  if (type != net::kTypeIpv4 && type != net::kTypeIpv6) return true;
  const uint32_t shift = type == net::kTypeIpv4 ? 0 : 4;
  net::Be16& front = class_word_of(pkt.data() + l3);
  const uint32_t before = front;
  const uint32_t inner = before >> shift & vxlan::kEcnMask;
  if (outer == vxlan::kEcnCe && inner == 0) return false;
  const bool is_raised = (outer == vxlan::kEcnCe && inner != vxlan::kEcnCe) ||
                         (outer == vxlan::kEcnEct1 && inner == vxlan::kEcnEct0);
  if (!is_raised) return true;
  const uint32_t after = (before & ~(vxlan::kEcnMask << shift)) | outer << shift;
  front = static_cast<uint16_t>(after);
  if (type != net::kTypeIpv4) return true;
  mend_checksum(header_in<net::Ipv4>(pkt, l3).checksum, before, after);
  return true;
}

}  // namespace batchplane
