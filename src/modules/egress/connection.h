// SPDX-License-Identifier: BSD-3-Clause
// connection.h - the connection of a packet, whether its sender supports ECN (RFC 3168), and ECN
// marking.
#pragma once

#include "egress/aqm/fq_codel.h"
#include "modules/classify/bridged_ip.h"
#include "modules/headers/flow_key.h"

namespace batchplane {

inline constexpr uint32_t kEcnMask = 3;
inline constexpr uint32_t kEcnMarked = 3;  // congestion experienced

// Shift of the ECN bits within the header word that contains the traffic class.
inline uint32_t ecn_shift(IpKind kind) { return kind == IpKind::kIpv4 ? 0 : 4; }

inline uint64_t hash_connection(Packet& pkt, const BridgedIp& place) {
  const uint8_t* ip = pkt.data() + place.offset_bytes;
  const uint32_t room_bytes = pkt.len_bytes() - place.offset_bytes;
  if (place.kind == IpKind::kIpv6) return hash_flow6(header_at<net::Ipv6>(ip), room_bytes, 0);
  return hash_flow4(ip, room_bytes, 0);
}

// Packs `flow`, the connection's hash and whether its sender supports ECN into a word, for queues
// with CoDel.
inline uint32_t connection_word(Packet& pkt, uint32_t flow) {
  const BridgedIp place = bridged_ip_of(pkt);
  if (place.kind == IpKind::kNone) return egress::flow_word(flow, 0, false);
  const uint32_t ecn =
      class_word_of(pkt.data() + place.offset_bytes) >> ecn_shift(place.kind) & kEcnMask;
  const auto hash = static_cast<uint32_t>(hash_connection(pkt, place) >> 40);
  return egress::flow_word(flow, hash, ecn != 0);
}

// Sets CE on a packet that may be marked. Updates the IPv4 header checksum.
inline void mark_congestion(Packet& pkt) {
  const BridgedIp place = bridged_ip_of(pkt);
  if (place.kind == IpKind::kNone) return;
  uint8_t* ip = pkt.data() + place.offset_bytes;
  net::Be16& word = class_word_of(ip);
  const uint32_t before = word;
  const uint32_t after = before | kEcnMarked << ecn_shift(place.kind);
  if (after == before) return;
  word = static_cast<uint16_t>(after);
  if (place.kind == IpKind::kIpv4) mend_checksum(header_at<net::Ipv4>(ip).checksum, before, after);
}

}  // namespace batchplane
