// SPDX-License-Identifier: BSD-3-Clause
// gtpu_outer6.h - the outer IPv6 and UDP headers of a GTP-U tunnel (3GPP TS 29.281, RFC 8200).
#pragma once

#include <cstdint>
#include <cstring>
#include <string>

#include "base/error.h"
#include "base/net6.h"
#include "modules/gtpu_header.h"
#include "modules/l4_header.h"

namespace batchplane::gtpu {

inline constexpr uint32_t kOuter6Bytes = net::kEthBytes + net::kIpv6Bytes + kUdpBytes;

// Laid out once; what differs between packets is written into the copy in front of each.
class Outer6 {
 public:
  // `local`: empty where there are no such tunnels.
  Outer6(const std::string& local, uint8_t hop_limit, const std::string& where) {
    if (local.empty()) return;
    const auto address = net::parse_ipv6(local);
    if (!address || *address == net::Address6{}) {
      throw ConfigError("expected an IPv6 address", where, "such as 2001:db8::1");
    }
    is_there_ = true;
    net::store16(header_ + 12, net::kTypeIpv6);
    uint8_t* const ip = header_ + net::kEthBytes;
    ip[0] = 0x60;
    ip[net::kIp6NextHeader] = net::kProtoUdp;
    ip[net::kIp6HopLimit] = hop_limit;
    net::store_address6(ip + net::kIp6Src, *address);
    net::store16(ip + net::kIpv6Bytes + 2, kPort);
  }
  [[nodiscard]] bool is_there() const { return is_there_; }
  void set_macs(const uint8_t* macs) { std::memcpy(header_, macs, 12); }

  // Behind it lie udp_bytes - 8 of the message. `peer` as it lies in packets.
  void write(uint8_t* out, const uint8_t* peer, uint32_t traffic_class, uint32_t source_port,
             uint32_t udp_bytes) const noexcept {
    std::memcpy(out, header_, kOuter6Bytes);
    uint8_t* const ip = out + net::kEthBytes;
    net::store16(ip, static_cast<uint16_t>(0x6000U | traffic_class << 4));
    net::store16(ip + net::kIp6PayloadLength, static_cast<uint16_t>(udp_bytes));
    std::memcpy(ip + net::kIp6Dst, peer, 16);
    uint8_t* const udp = ip + net::kIpv6Bytes;
    net::store16(udp, static_cast<uint16_t>(source_port));
    net::store16(udp + 4, static_cast<uint16_t>(udp_bytes));
  }
  // UDP over IPv6 has a sum, and 0 stands for none (RFC 8200, 8.1): once all else is written.
  static void sum(uint8_t* out, uint32_t udp_bytes) noexcept {
    const uint8_t* const ip = out + net::kEthBytes;
    uint8_t* const udp = out + net::kEthBytes + net::kIpv6Bytes;
    const l4::Place place{.proto = net::kProtoUdp, .is_v6 = true};
    const uint64_t of_all =
        l4::sum_bytes(udp, udp_bytes) + l4::sum_pseudo_header(ip, place, udp_bytes);
    auto checksum = static_cast<uint16_t>(~fold16(of_all));
    if (checksum == 0) checksum = 0xffff;
    std::memcpy(udp + 6, &checksum, 2);
  }

 private:
  uint8_t header_[kOuter6Bytes] = {};
  bool is_there_ = false;
};

}  // namespace batchplane::gtpu
