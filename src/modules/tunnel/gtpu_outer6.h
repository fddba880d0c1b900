// SPDX-License-Identifier: BSD-3-Clause
// gtpu_outer6.h - the outer IPv6 and UDP headers of a GTP-U tunnel (3GPP TS 29.281, RFC 8200).
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"
#include "modules/headers/l4_header.h"
#include "modules/tunnel/gtpu_header.h"

namespace batchplane::gtpu {

struct [[gnu::may_alias]] OuterHeaders6 {
  net::Ethernet eth;
  net::Ipv6 ip;
  net::Udp udp;
};
inline constexpr uint32_t kOuter6Bytes = sizeof(OuterHeaders6);

// Built once and copied in front of each packet; write() then sets the fields that differ.
class Outer6 {
 public:
  // `local`: empty if there are no IPv6 tunnels.
  Outer6(const std::string& local, uint8_t hop_limit, const std::string& where) {
    if (local.empty()) return;
    const auto address = net::parse_ipv6(local);
    if (!address || *address == net::Address6{}) {
      throw ConfigError("expected an IPv6 address", where, "such as 2001:db8::1");
    }
    is_there_ = true;
    header_ = {.eth = {.type = net::kTypeIpv6},
               .ip = {.version_class_flow = net::Ipv6::kPlain,
                      .next_header = net::kProtoUdp,
                      .hop_limit = hop_limit,
                      .src = *address},
               .udp = {.dst_port = kPort}};
  }
  [[nodiscard]] bool is_there() const { return is_there_; }
  void set_macs(const net::Ethernet& eth) { header_.eth.set_macs(eth.macs()); }

  // udp_bytes - 8 bytes of GTP-U follow the headers. `peer`: in network byte order.
  void write(OuterHeaders6& out, const uint8_t* peer, uint32_t traffic_class, uint32_t source_port,
             uint32_t udp_bytes) const noexcept {
    out = header_;
    out.ip.version_class_flow = net::Ipv6::kPlain | traffic_class << net::Ipv6::kClassShift;
    out.ip.payload_length = static_cast<uint16_t>(udp_bytes);
    out.ip.dst = header_at<net::Be128>(peer);
    out.udp.src_port = static_cast<uint16_t>(source_port);
    out.udp.length = static_cast<uint16_t>(udp_bytes);
  }

 private:
  OuterHeaders6 header_ = {};
  bool is_there_ = false;
};

}  // namespace batchplane::gtpu
