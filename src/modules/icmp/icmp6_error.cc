// SPDX-License-Identifier: BSD-3-Clause
// icmp6_error.cc - turns a dropped packet into an ICMPv6 error to its sender, where RFC 4443 allows
// one.
//
// in: 1 (drop gates of other modules)   out: 1, to an ipv6_lookup of the same table
// drops: icmp_rate_limited, icmp_not_due   state: a token bucket; owner: the worker
#include <algorithm>

#include "core/module/register.h"
#include "modules/headers/ipv6_header.h"
#include "modules/icmp/error_module.h"
#include "modules/icmp/icmp6.h"
#include "modules/icmp/own_address6.h"

namespace batchplane {
namespace {

constexpr uint32_t kError6Bytes = net::kIpv6Bytes + net::kIcmpBytes;
constexpr uint32_t kFrontBytes = net::kEthBytes + kError6Bytes;
constexpr uint8_t kHopLimit = 64;

class Icmp6Error final : public ErrorModule<Ipv6Family, Icmp6Error> {
 public:
  static constexpr icmp::NamedError kErrors[] = {
      {"hop_limit_expired", {icmp6::kTimeExceeded, 0}},
      {"no_route", {icmp6::kUnreachable, 0}},
      {"beyond_scope", {icmp6::kUnreachable, 2}},
      {"neighbour_unreachable", {icmp6::kUnreachable, 3}},
      {"mtu_exceeded", {icmp6::kPacketTooBig, 0}},
  };
  static constexpr uint32_t kMinMtuBytes = net::kMinMtu6Bytes;
  static bool needs_mtu(icmp::ErrorKind error) { return error.type == icmp6::kPacketTooBig; }

  explicit Icmp6Error(const Args& args) : ErrorModule(args) {}

  // RFC 4443, 2.4 (e): packets that must not be answered.
  [[nodiscard]] bool is_due(Packet& pkt, icmp::ErrorKind error) const noexcept {
    const uint32_t l3 = pkt.meta().l3_offset_bytes;
    const uint32_t len_bytes = pkt.len_bytes();
    if ((pkt.meta().flags & kMetaOriginated) != 0 || len_bytes < l3 + net::kIpv6Bytes ||
        (l3 < kFrontBytes && pkt.headroom_bytes() < kFrontBytes - l3)) {
      return false;
    }
    const auto& ip = header_in<net::Ipv6>(pkt, l3);
    const uint32_t total_bytes = net::kIpv6Bytes + ip.payload_length;
    if (ip.version() != 6 || total_bytes > len_bytes - l3) return false;
    const net::Address6 sender = ip.src;
    const bool is_to_many = ip.dst.first_octet() == 0xff ||
                            (l3 >= net::kEthBytes && (pkt.data()[l3 - net::kEthBytes] & 1) != 0);
    if (!Ipv6Family::is_unicast(sender) || (is_to_many && !needs_mtu(error)) ||
        is_own6(interfaces(), pkt.meta().in_interface, sender)) {
      return false;
    }
    const UpperLayer6 upper = upper_layer6(ip, total_bytes);
    if (upper.fault != UpperLayer6::Fault::kNone) return false;
    if (upper.protocol != net::kProtoIcmp6) return true;
    if (!upper.is_here() || upper.offset_bytes >= total_bytes) return false;
    const uint8_t type = behind<net::Icmp>(ip, upper.offset_bytes).type;
    return !is_icmp6_error_type(type) && type != icmp6::kRedirect;
  }

  [[nodiscard]] net::Address6 source_of(Packet& pkt) const noexcept {
    const net::Address6 sender = header_in<net::Ipv6>(pkt, pkt.meta().l3_offset_bytes).src;
    return own_source6(interfaces(), pkt.meta().in_interface, sender);
  }

  static void write(Packet& pkt, icmp::ErrorKind error, const net::Address6& source,
                    uint32_t mtu_bytes) noexcept {
    const auto& quoted = header_in<net::Ipv6>(pkt, pkt.meta().l3_offset_bytes);
    const net::Address6 receiver = quoted.src;
    const uint32_t quoted_bytes = std::min<uint32_t>(net::kIpv6Bytes + quoted.payload_length,
                                                     net::kMinMtu6Bytes - kError6Bytes);
    quote(pkt, kFrontBytes, net::kIpv6Bytes, quoted_bytes);
    auto& eth = header_in<net::Ethernet>(pkt, 0);
    eth = {.type = net::kTypeIpv6};
    auto& ip = behind<net::Ipv6>(eth);
    icmp6::write_ip(ip, source, receiver, net::kIcmpBytes + quoted_bytes, kHopLimit);
    behind<net::Icmp>(ip) = {.type = error.type, .code = error.code, .mtu = mtu_bytes};
    icmp6::write_checksum(ip, net::kIcmpBytes + quoted_bytes);
  }
};

const Register<Icmp6Error> kIcmp6Error{{
    .kind = "icmp6_error",
    .state = StateOf::kSharded,
    .help = "Turns dropped IPv6 packets into ICMPv6 errors to their senders.",
    .params = Icmp6Error::params("packet too big"),
    .drops = {&reason::kIcmpRateLimited, &reason::kIcmpNotDue},
    .notes =
        "Connect drop gates to it: hop_limit_expired gives time exceeded, no_route no route to "
        "destination, neighbour_unreachable address unreachable, beyond_scope beyond scope of "
        "source address, mtu_exceeded packet too big with the MTU of the next hop's interface. Its "
        "output goes to an ipv6_lookup of the same table (not the one whose drops it takes: task "
        "graphs have no loops). Never about ICMPv6 errors and redirects, the router's own packets, "
        "or groups (except packet too big). Quotes as much as fits 1280 bytes.",
    .is_for_ipv6 = true,
}};

}  // namespace
}  // namespace batchplane
