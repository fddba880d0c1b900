// SPDX-License-Identifier: BSD-3-Clause
// icmp_error.cc - turns a dropped packet into the ICMP error that tells its sender why, where one
// may be sent.
//
// in: 1 (drop gates of other modules)   out: 1, to an ipv4_lookup of the same table
// drops: icmp_rate_limited, icmp_not_due   state: a token bucket; owner: the worker
#include <algorithm>

#include "base/net.h"
#include "core/module.h"
#include "modules/icmp_rate.h"
#include "modules/ipv4_header.h"
#include "modules/route_commands.h"
#include "modules/shared_reasons.h"

namespace batchplane {
namespace {

constexpr uint8_t kUnreachable = 3;
constexpr uint8_t kTimeExceeded = 11;
constexpr uint8_t kFragmentationNeeded = 4;
constexpr uint32_t kIcmpBytes = 8;
constexpr uint32_t kErrorBytes = net::kIpv4Bytes + kIcmpBytes;
constexpr uint32_t kMaxErrorBytes = 576;  // RFC 1812, 4.3.2.3
constexpr uint8_t kTtl = 64;
constexpr uint8_t kTosInternetControl = 0xc0;  // RFC 1812, 4.3.2.5

constexpr icmp::NamedError kErrors[] = {
    {"ttl_expired", {kTimeExceeded, 0}},
    {"no_route", {kUnreachable, 0}},
    {"neighbour_unreachable", {kUnreachable, 1}},
    {"mtu_exceeded", {kUnreachable, kFragmentationNeeded}},
};

bool is_icmp_error_type(uint8_t type) {
  return type == 3 || type == 4 || type == 5 || type == 11 || type == 12;
}

// Addresses that name one host.
bool is_unicast(uint32_t address) {
  const uint32_t top = address >> 24;
  return top != 0 && top != 127 && top < 224;
}

class IcmpError final : public Module {
 public:
  explicit IcmpError(const Args& args)
      : interfaces_(args.env().interfaces),
        routes_(args.string("table").empty()
                    ? nullptr
                    : shared_route_table(args.env(), args.string("table"))),
        kinds_(icmp::kinds_of(kErrors)),
        budget_(args) {}

  void process(Context& ctx, Batch& batch) noexcept {
    budget_.refill(ctx.now_ns);
    for (uint32_t i = 0; i < batch.size_pkts; ++i) {
      Packet& pkt = *batch[i];
      const icmp::ErrorKind kind = kinds_[pkt.meta().drop_reason % kMaxDropReasons];
      const uint32_t source = kind.type != 0 && is_due(pkt) ? source_of(pkt) : 0;
      const uint16_t mtu_bytes = kind.code == kFragmentationNeeded ? mtu_of(pkt) : 0;
      if (source == 0 || (kind.code == kFragmentationNeeded && mtu_bytes == 0)) {
        ctx.drop(batch, i, reason::kIcmpNotDue);
        continue;
      }
      if (!budget_.take()) {
        ctx.drop(batch, i, reason::kIcmpRateLimited);
        continue;
      }
      build(pkt, kind, source, mtu_bytes);
    }
  }

 private:
  // RFC 1122, 3.2.2, and RFC 1812, 4.3.2.7: whom not to answer.
  [[nodiscard]] bool is_due(Packet& pkt) const noexcept {
    const uint32_t l3 = l3_offset_of(pkt);
    const uint32_t len = pkt.len_bytes();
    if ((pkt.meta().flags & kMetaOriginated) != 0 || len < l3 + net::kIpv4Bytes) return false;
    const uint8_t* ip = pkt.data() + l3;
    const uint32_t header_bytes = (ip[0] & 15U) * 4;
    const uint32_t total_bytes = net::load16(ip + net::kIpTotalLength);
    if (ip[0] >> 4 != 4 || header_bytes < net::kIpv4Bytes || total_bytes < header_bytes ||
        total_bytes > len - l3) {
      return false;
    }
    if (l3 >= net::kEthBytes && (pkt.data()[0] & 1) != 0) return false;
    if ((net::load16(ip + net::kIpFragment) & 0x1fff) != 0) return false;
    const uint32_t src = net::load32(ip + net::kIpSrc);
    const uint32_t dst = net::load32(ip + net::kIpDst);
    if (!is_unicast(src) || !is_unicast(dst) || is_own_or_broadcast(src) || is_broadcast(dst))
      return false;
    if (ip[net::kIpProto] != net::kProtoIcmp) return true;
    return total_bytes > header_bytes && !is_icmp_error_type(ip[header_bytes]);
  }

  [[nodiscard]] bool is_broadcast(uint32_t address) const {
    for (const Interface& interface : interfaces_) {
      for (const net::Prefix4& own : interface.addresses) {
        if (own.length <= 30 && address == (own.address | ~net::mask4(own.length))) return true;
      }
    }
    return false;
  }
  [[nodiscard]] bool is_own_or_broadcast(uint32_t address) const {
    for (const Interface& interface : interfaces_) {
      for (const net::Prefix4& own : interface.addresses) {
        if (address == own.address) return true;
      }
    }
    return is_broadcast(address);
  }

  // The address of the interface that the packet came in by, best one in the sender's subnet.
  [[nodiscard]] uint32_t source_of(Packet& pkt) const noexcept {
    const uint32_t sender = net::load32(pkt.data() + l3_offset_of(pkt) + net::kIpSrc);
    const uint16_t in = pkt.meta().in_interface;
    uint32_t found = 0;
    for (const Interface& interface : interfaces_) {
      if (in < interfaces_.size() && interface.index != in) continue;
      for (const net::Prefix4& own : interface.addresses) {
        if (((own.address ^ sender) & net::mask4(own.length)) == 0) return own.address;
        if (found == 0) found = own.address;
      }
    }
    return found;
  }

  [[nodiscard]] uint16_t mtu_of(Packet& pkt) const noexcept {
    if (routes_ == nullptr || !routes_->is_built()) return 0;
    const NextHop* hop = routes_->hops().at(pkt.meta().next_hop);
    return hop != nullptr && hop->interface < interfaces_.size()
               ? interfaces_[hop->interface].mtu_bytes
               : 0;
  }

  // The packet becomes its own quotation, behind new headers.
  void build(Packet& pkt, icmp::ErrorKind kind, uint32_t source, uint16_t mtu_bytes) noexcept {
    const uint32_t l3 = l3_offset_of(pkt);
    const uint8_t* old = pkt.data() + l3;
    const uint32_t receiver = net::load32(old + net::kIpSrc);
    const uint32_t quoted_bytes =
        std::min<uint32_t>(net::load16(old + net::kIpTotalLength), kMaxErrorBytes - kErrorBytes);
    constexpr uint32_t kFront = net::kEthBytes + kErrorBytes;
    if (l3 < kFront) {
      pkt.push_front(kFront - l3);
    } else {
      pkt.pull_front(l3 - kFront);
    }
    pkt.set_len_bytes(kFront + quoted_bytes);
    uint8_t* eth = pkt.data();
    std::memset(eth, 0, kFront);
    net::store16(eth + 12, net::kTypeIpv4);
    uint8_t* ip = eth + net::kEthBytes;
    ip[0] = 0x45;
    ip[1] = kTosInternetControl;
    net::store16(ip + net::kIpTotalLength, static_cast<uint16_t>(kErrorBytes + quoted_bytes));
    net::store16(ip + 4, next_id_++);
    ip[net::kIpTtl] = kTtl;
    ip[net::kIpProto] = net::kProtoIcmp;
    net::store32(ip + net::kIpSrc, source);
    net::store32(ip + net::kIpDst, receiver);
    net::store16(ip + net::kIpChecksum,
                 net::checksum_finish(net::checksum_add(ip, net::kIpv4Bytes)));
    uint8_t* icmp = ip + net::kIpv4Bytes;
    icmp[0] = kind.type;
    icmp[1] = kind.code;
    net::store16(icmp + 6, mtu_bytes);
    net::store16(icmp + 2,
                 net::checksum_finish(net::checksum_add(icmp, kIcmpBytes + quoted_bytes)));
    PacketMeta& meta = pkt.meta();
    meta.l3_offset_bytes = net::kEthBytes;
    meta.l4_offset_bytes = net::kEthBytes + net::kIpv4Bytes;
    meta.flags |= kMetaOriginated;
  }

  const std::vector<Interface> interfaces_;
  const std::shared_ptr<RouteTable> routes_;
  const icmp::ErrorKinds kinds_;
  icmp::ErrorBudget budget_;
  uint16_t next_id_ = 1;
};

const Register<IcmpError> kIcmpError{{
    .kind = "icmp_error",
    .help = "Turns dropped packets into ICMP errors to their senders.",
    .params = {{.name = "table",
                .type = ParamType::kString,
                .default_value = "",
                .help = "the route table of the lookup in front; needed for fragmentation needed"},
               icmp::errors_per_s_spec(),
               icmp::burst_spec()},
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
