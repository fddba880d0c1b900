// SPDX-License-Identifier: BSD-3-Clause
// icmp_error.cc - turns a dropped packet into an ICMP error to its sender, where the RFCs allow
// one.
//
// in: 1 (drop gates of other modules)   out: 1, to an ipv4_lookup of the same table
// drops: icmp_rate_limited, icmp_not_due   state: a token bucket; owner: the worker
#include <algorithm>

#include "core/module/register.h"
#include "modules/headers/ipv4_header.h"
#include "modules/icmp/error_module.h"

namespace batchplane {
namespace {

constexpr uint8_t kUnreachable = 3;
constexpr uint8_t kTimeExceeded = 11;
constexpr uint8_t kFragmentationNeeded = 4;
constexpr uint32_t kErrorBytes = net::kIpv4Bytes + net::kIcmpBytes;
constexpr uint32_t kMaxErrorBytes = 576;  // RFC 1812, 4.3.2.3
constexpr uint8_t kTtl = 64;
constexpr uint8_t kTosInternetControl = 0xc0;  // RFC 1812, 4.3.2.5

bool is_icmp_error_type(uint8_t type) {
  return type == 3 || type == 4 || type == 5 || type == 11 || type == 12;
}

// Rules out 0/8, loopback, and everything from 224/4 up.
bool is_unicast(uint32_t address) {
  const uint32_t top = address >> 24;
  return top != 0 && top != 127 && top < 224;
}

class IcmpError final : public ErrorModule<Ipv4Family, IcmpError> {
 public:
  static constexpr icmp::NamedError kErrors[] = {
      {"ttl_expired", {kTimeExceeded, 0}},
      {"no_route", {kUnreachable, 0}},
      {"neighbour_unreachable", {kUnreachable, 1}},
      {"mtu_exceeded", {kUnreachable, kFragmentationNeeded}},
  };
  static constexpr uint32_t kMinMtuBytes = 0;
  static bool needs_mtu(icmp::ErrorKind error) { return error.code == kFragmentationNeeded; }

  explicit IcmpError(const Args& args) : ErrorModule(args) {}

  // RFC 1122, 3.2.2, and RFC 1812, 4.3.2.7: packets that must not be answered.
  [[nodiscard]] bool is_due(Packet& pkt, icmp::ErrorKind /*error*/) const noexcept {
    const uint32_t l3 = l3_offset_of(pkt);
    const uint32_t len = pkt.len_bytes();
    if ((pkt.meta().flags & kMetaOriginated) != 0 || len < l3 + net::kIpv4Bytes) return false;
    const auto& ip = header_in<net::Ipv4>(pkt, l3);
    const uint32_t header_bytes = ip.header_bytes();
    const uint32_t total_bytes = ip.total_length;
    if (ip.version() != 4 || header_bytes < net::kIpv4Bytes || total_bytes < header_bytes ||
        total_bytes > len - l3) {
      return false;
    }
    if (l3 >= net::kEthBytes && (header_in<net::Ethernet>(pkt, 0).dst[0] & 1) != 0) return false;
    if (ip.is_later_fragment()) return false;
    const uint32_t src = ip.src;
    const uint32_t dst = ip.dst;
    if (!is_unicast(src) || !is_unicast(dst) || is_own_or_broadcast(src) || is_broadcast(dst))
      return false;
    if (ip.protocol != net::kProtoIcmp) return true;
    return total_bytes > header_bytes &&
           !is_icmp_error_type(behind<net::Icmp>(ip, header_bytes).type);
  }

  // An address of the interface where the packet arrived, preferably in the sender's subnet.
  [[nodiscard]] uint32_t source_of(Packet& pkt) const noexcept {
    const uint32_t sender = header_in<net::Ipv4>(pkt, l3_offset_of(pkt)).src;
    const uint16_t in = pkt.meta().in_interface;
    uint32_t found = 0;
    for (const Interface& interface : interfaces()) {
      if (in < interfaces().size() && interface.index != in) continue;
      for (const net::Prefix4& own : interface.addresses) {
        if (((own.address ^ sender) & net::mask4(own.length)) == 0) return own.address;
        if (found == 0) found = own.address;
      }
    }
    return found;
  }

  void write(Packet& pkt, icmp::ErrorKind error, uint32_t source, uint32_t mtu_bytes) noexcept {
    const auto& quoted = header_in<net::Ipv4>(pkt, l3_offset_of(pkt));
    const uint32_t receiver = quoted.src;
    const uint32_t quoted_bytes =
        std::min<uint32_t>(quoted.total_length, kMaxErrorBytes - kErrorBytes);
    quote(pkt, net::kEthBytes + kErrorBytes, net::kIpv4Bytes, quoted_bytes);
    auto& eth = header_in<net::Ethernet>(pkt, 0);
    eth = {.type = net::kTypeIpv4};
    auto& ip = behind<net::Ipv4>(eth);
    ip = {.version_ihl = net::Ipv4::kPlain,
          .tos = kTosInternetControl,
          .total_length = static_cast<uint16_t>(kErrorBytes + quoted_bytes),
          .id = next_id_++,
          .ttl = kTtl,
          .protocol = net::kProtoIcmp,
          .src = source,
          .dst = receiver};
    write_checksum(ip);
    auto& icmp = behind<net::Icmp>(ip);
    icmp = {.type = error.type,
            .code = error.code,
            .needs_fragments = {.mtu = static_cast<uint16_t>(mtu_bytes)}};
    icmp.checksum =
        net::checksum_finish(net::checksum_add(bytes_of(icmp), net::kIcmpBytes + quoted_bytes));
  }

 private:
  [[nodiscard]] bool is_broadcast(uint32_t address) const {
    for (const Interface& interface : interfaces()) {
      for (const net::Prefix4& own : interface.addresses) {
        if (own.length <= 30 && address == (own.address | ~net::mask4(own.length))) return true;
      }
    }
    return false;
  }
  [[nodiscard]] bool is_own_or_broadcast(uint32_t address) const {
    for (const Interface& interface : interfaces()) {
      for (const net::Prefix4& own : interface.addresses) {
        if (address == own.address) return true;
      }
    }
    return is_broadcast(address);
  }

  uint16_t next_id_ = 1;
};

const Register<IcmpError> kIcmpError{{
    .kind = "icmp_error",
    .state = StateOf::kSharded,
    .help = "Turns dropped packets into ICMP errors to their senders.",
    .params = IcmpError::params("fragmentation needed"),
    .drops = {&reason::kIcmpRateLimited, &reason::kIcmpNotDue},
    .notes =
        "Connect drop gates to it: ttl_expired gives time exceeded, no_route net unreachable, "
        "neighbour_unreachable host unreachable, mtu_exceeded fragmentation needed with the MTU of "
        "the next hop's interface. Its output goes to an ipv4_lookup of the same table (not the "
        "one whose "
        "drops it takes: task graphs have no loops). Never about ICMP errors, later fragments, "
        "broadcasts, multicasts or the router's own packets.",
}};

}  // namespace
}  // namespace batchplane
