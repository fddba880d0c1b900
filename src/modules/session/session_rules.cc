// SPDX-License-Identifier: BSD-3-Clause
// session_rules.cc - matches traffic filters, for users with more than one bearer.
#include "modules/session/session_rules.h"

#include "modules/headers/flow_key.h"
#include "modules/headers/l4_header.h"

namespace batchplane::session {
namespace {

// A packet as a filter sees it: the user is the local end in both directions.
struct Ends {
  uint32_t remote = 0;
  uint32_t local = 0;
  uint16_t remote_port = 0;
  uint16_t local_port = 0;
  uint8_t proto = 0;
  bool has_ports = false;
  bool is_v6 = false;
};

Ends ends_of(const uint8_t* ip, uint32_t room_bytes, bool is_uplink) noexcept {
  Ends ends;
  l4::Place place = l4::find_plain(ip, room_bytes);
  if (place.find != l4::Find::kWhole) [[unlikely]]
    place = l4::find(ip, room_bytes);
  ends.is_v6 = place.is_v6;
  ends.proto = place.proto;
  const auto& ports = header_at<net::Ports>(ip + place.offset_bytes);
  if (place.has_header && has_ports(place.proto) && place.len_bytes >= sizeof ports &&
      place.offset_bytes + sizeof ports <= room_bytes) {
    ends.has_ports = true;
    ends.remote_port = is_uplink ? ports.dst : ports.src;
    ends.local_port = is_uplink ? ports.src : ports.dst;
  }
  if (net::ip_version(ip) != 4) return ends;
  const auto& ip4 = header_at<net::Ipv4>(ip);
  ends.remote = is_uplink ? ip4.dst.raw() : ip4.src.raw();
  ends.local = is_uplink ? ip4.src.raw() : ip4.dst.raw();
  return ends;
}

// Branch-free: which filter matches is unpredictable.
bool matches(const Filter& filter, const Ends& ends) noexcept {
  const bool has_addresses = (filter.remote_mask | filter.local_mask) != 0;
  const uint32_t differs = ((ends.remote & filter.remote_mask) ^ filter.remote) |
                           ((ends.local & filter.local_mask) ^ filter.local);
  const bool is_proto = filter.is_any_proto | (filter.proto == ends.proto);
  const bool is_in_range =
      (ends.remote_port >= filter.remote_low) & (ends.remote_port <= filter.remote_high) &
      (ends.local_port >= filter.local_low) & (ends.local_port <= filter.local_high);
  // Filters with addresses are for IPv4 only: they match no IPv6 packet.
  return !(ends.is_v6 & has_addresses) & (differs == 0) & is_proto & is_in_range &
         (ends.has_ports | !filter.wants_ports());
}

}  // namespace

uint32_t choose_among(const RuleTables& tables, uint32_t head, const uint8_t* ip,
                      uint32_t room_bytes, bool is_uplink, uint8_t qfi) noexcept {
  const Ends ends = ends_of(ip, room_bytes, is_uplink);
  for (uint32_t slot = head; slot != kNone; slot = tables.rules[slot].next) {
    const Rule& rule = tables.rules[slot];
    if (rule.match_qfi != kAnyQfi && rule.match_qfi != qfi) continue;
    if (rule.filter == kNone) return slot;
    for (uint32_t at = rule.filter; at != kNone; at = tables.filters[at].next) {
      if (matches(tables.filters[at], ends)) return slot;
    }
  }
  return kNone;
}

}  // namespace batchplane::session
