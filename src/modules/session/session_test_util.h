// SPDX-License-Identifier: BSD-3-Clause
// session_test_util.h - a user with two bearers, and modules that share the session.
#pragma once

#include <functional>

#include "module_harness.h"

namespace batchplane {

inline constexpr uint32_t kTestUe = 0x0a2d0002;  // 10.45.0.2

inline Dict test_pdr(int id, const char* source, int far) {
  return {{"id", id}, {"source", source}, {"far", far}};
}

// PDRs: 1 uplink from tunnel 100, 2 downlink default, 3 downlink from UDP port 5000.
inline Dict test_session(int64_t seid = 1, int64_t teid = 100, const char* ue = "10.45.0.2") {
  Dict up = test_pdr(1, "access", 0);
  up["teid"] = teid;
  up["urrs"] = List{1};
  Dict down = test_pdr(2, "core", 1);
  down["urrs"] = List{1};
  Dict special = test_pdr(3, "core", 2);
  special["precedence"] = 10;
  special["bearer"] = 1;
  special["filters"] = List{"permit out udp from any 5000 to assigned"};
  special["urrs"] = List{1, 2};
  return {{"seid", seid},
          {"ue", ue},
          {"pdrs", List{up, down, special}},
          {"fars", List{Dict{{"id", 0}}, Dict{{"id", 1}, {"teid", 901}, {"peer", "192.0.2.2"}},
                        Dict{{"id", 2}, {"teid", 902}, {"peer", "192.0.2.2"}}}},
          {"urrs", List{Dict{{"id", 1}}, Dict{{"id", 2}}}}};
}

// Sets the QERs of the downlink rules of bearer 0 and bearer 1.
inline Dict with_qers(Dict session, const List& qers, const List& on_default,
                      const List& on_special) {
  List pdrs = session["pdrs"].as_list();
  Dict plain = pdrs[1].as_dict();
  Dict special = pdrs[2].as_dict();
  plain["qers"] = on_default;
  special["qers"] = on_special;
  session["pdrs"] = List{pdrs[0], plain, special};
  session["qers"] = qers;
  return session;
}

inline Bytes downlink_frame(uint16_t port_src = 53, uint32_t ip_dst = kTestUe,
                            uint32_t len_bytes = 100) {
  return make_frame({.ip_dst = ip_dst, .port_src = port_src, .len_bytes = len_bytes});
}

// A G-PDU from a peer; `inner` begins at its IP header.
inline Bytes gtpu_frame(uint32_t teid, const Bytes& inner, uint8_t type = 255) {
  Bytes frame = make_frame({.ip_src = 0xc0000202,
                            .ip_dst = 0xc0000201,
                            .port_src = 2152,
                            .port_dst = 2152,
                            .len_bytes = static_cast<uint32_t>(50 + inner.size())});
  uint8_t* const gtp = &frame[42];
  gtp[0] = 0x30;
  gtp[1] = type;
  net::store16(gtp + 2, static_cast<uint16_t>(inner.size()));
  net::store32(gtp + 4, teid);
  std::ranges::copy(inner, frame.begin() + 50);
  return frame;
}
inline Bytes ip_of(const Bytes& frame) { return {frame.begin() + net::kEthBytes, frame.end()}; }
inline Bytes uplink_frame(uint32_t teid = 100, uint32_t ip_src = kTestUe) {
  return gtpu_frame(teid, ip_of(make_frame({.ip_src = ip_src, .len_bytes = 80})));
}

}  // namespace batchplane
