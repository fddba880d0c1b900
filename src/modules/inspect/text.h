// SPDX-License-Identifier: BSD-3-Clause
// text.h - the part of a packet that is inspected.
#pragma once

#include <algorithm>
#include <cstdint>

#include "modules/headers/l4_header.h"

namespace batchplane::inspect {

struct Text {
  const uint8_t* data = nullptr;
  uint32_t len_bytes = 0;
};

// With `takes_frame` everything from the IP header on; else the transport payload, or everything
// behind the headers found if there is no known transport. `proto`: the transport protocol, 0 if
// there is none.
[[nodiscard]] inline Text text_of(Packet& pkt, bool takes_frame, uint8_t& proto) noexcept {
  const uint32_t l3 = l3_offset_of(pkt);
  const uint32_t len_bytes = pkt.len_bytes();
  proto = 0;
  if (len_bytes <= l3) return {};
  const uint8_t* const ip = pkt.data() + l3;
  const uint32_t room_bytes = len_bytes - l3;
  const l4::Place place = l4::find(ip, room_bytes);
  const bool is_ip = place.find == l4::Find::kWhole || place.find == l4::Find::kFragment;
  if (is_ip) proto = place.proto;
  if (takes_frame || !is_ip) return {ip, room_bytes};
  uint32_t header_bytes = 0;
  if (place.has_header && place.proto == net::kProtoUdp) header_bytes = net::kUdpBytes;
  if (place.has_header && place.proto == net::kProtoTcp && place.len_bytes >= net::kTcpBytes) {
    header_bytes = header_at<net::Tcp>(ip + place.offset_bytes).header_bytes();
  }
  header_bytes = std::min(header_bytes, place.len_bytes);
  return {ip + place.offset_bytes + header_bytes, place.len_bytes - header_bytes};
}

}  // namespace batchplane::inspect
