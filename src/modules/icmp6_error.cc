// SPDX-License-Identifier: BSD-3-Clause
// icmp6_error.cc - turns a dropped packet into the ICMPv6 error that tells its sender why, where
// one may be sent.
//
// in: 1 (drop gates of other modules)   out: 1, to an ipv6_lookup of the same table
// drops: icmp_rate_limited, icmp_not_due   state: a token bucket; owner: the worker
#include <algorithm>

#include "core/module.h"
#include "modules/icmp6.h"
#include "modules/icmp_rate.h"
#include "modules/ipv6_header.h"
#include "modules/own_address6.h"
#include "modules/route_commands.h"
#include "modules/shared_reasons.h"

namespace batchplane {
namespace {

constexpr uint32_t kErrorBytes = net::kIpv6Bytes + icmp6::kHeaderBytes;
constexpr uint32_t kFrontBytes = net::kEthBytes + kErrorBytes;
constexpr uint8_t kHopLimit = 64;

constexpr icmp::NamedError kErrors[] = {
    {"hop_limit_expired", {icmp6::kTimeExceeded, 0}},
    {"no_route", {icmp6::kUnreachable, 0}},
    {"beyond_scope", {icmp6::kUnreachable, 2}},
    {"neighbour_unreachable", {icmp6::kUnreachable, 3}},
    {"mtu_exceeded", {icmp6::kPacketTooBig, 0}},
};

class Icmp6Error final : public Module {
 public:
  explicit Icmp6Error(const Args& args)
      : interfaces_(args.env().interfaces),
        routes_(args.string("table").empty()
                    ? nullptr
                    : shared_route_table<Ipv6Family>(args.env(), args.string("table"))),
        kinds_(icmp::kinds_of(kErrors)),
        budget_(args) {}

  void process(Context& ctx, Batch& batch) noexcept {
    budget_.refill(ctx.now_ns);
    for (uint32_t i = 0; i < batch.size_pkts; ++i) {
      Packet& pkt = *batch[i];
      const icmp::ErrorKind kind = kinds_[pkt.meta().drop_reason % kMaxDropReasons];
      const bool is_too_big = kind.type == icmp6::kPacketTooBig;
      net::Address6 source;
      if (kind.type != 0 && is_due(pkt, is_too_big)) {
        source = own_source6(interfaces_, pkt.meta().in_interface, sender_of(pkt));
      }
      const uint32_t mtu_bytes = is_too_big ? mtu_of(pkt) : 0;
      if (source.is_unspecified() || (is_too_big && mtu_bytes == 0)) {
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
  static net::Address6 sender_of(Packet& pkt) {
    return net::load_address6(pkt.data() + pkt.meta().l3_offset_bytes + net::kIp6Src);
  }

  // RFC 4443, 2.4 (e): whom not to answer.
  [[nodiscard]] bool is_due(Packet& pkt, bool is_too_big) const noexcept {
    const uint32_t l3 = pkt.meta().l3_offset_bytes;
    const uint32_t len_bytes = pkt.len_bytes();
    if ((pkt.meta().flags & kMetaOriginated) != 0 || len_bytes < l3 + net::kIpv6Bytes ||
        (l3 < kFrontBytes && pkt.headroom_bytes() < kFrontBytes - l3)) {
      return false;
    }
    const uint8_t* ip = pkt.data() + l3;
    const uint32_t total_bytes = net::kIpv6Bytes + net::load16(ip + net::kIp6PayloadLength);
    if (ip[0] >> 4 != 6 || total_bytes > len_bytes - l3) return false;
    const net::Address6 sender = net::load_address6(ip + net::kIp6Src);
    const bool is_to_many = ip[net::kIp6Dst] == 0xff ||
                            (l3 >= net::kEthBytes && (pkt.data()[l3 - net::kEthBytes] & 1) != 0);
    if (!Ipv6Family::is_unicast(sender) || (is_to_many && !is_too_big) ||
        is_own6(interfaces_, pkt.meta().in_interface, sender)) {
      return false;
    }
    const UpperLayer6 upper = upper_layer6(ip, total_bytes);
    if (upper.fault != UpperLayer6::Fault::kNone) return false;
    if (upper.protocol != net::kProtoIcmp6) return true;
    if (!upper.is_here() || upper.offset_bytes >= total_bytes) return false;
    const uint8_t type = ip[upper.offset_bytes];
    return !is_icmp6_error_type(type) && type != icmp6::kRedirect;
  }

  [[nodiscard]] uint32_t mtu_of(Packet& pkt) const noexcept {
    if (routes_ == nullptr || !routes_->is_built()) return 0;
    const NextHop* hop = routes_->hops().at(pkt.meta().next_hop);
    if (hop == nullptr) return 0;
    const uint16_t interface =
        hop->interface == kArrivalInterface ? pkt.meta().in_interface : hop->interface;
    return interface < interfaces_.size()
               ? std::max<uint32_t>(interfaces_[interface].mtu_bytes, net::kLeastMtu6Bytes)
               : 0;
  }

  // The packet becomes its own quotation, behind new headers.
  static void build(Packet& pkt, icmp::ErrorKind kind, const net::Address6& source,
                    uint32_t mtu_bytes) noexcept {
    const uint32_t l3 = pkt.meta().l3_offset_bytes;
    const uint8_t* old = pkt.data() + l3;
    const net::Address6 receiver = net::load_address6(old + net::kIp6Src);
    const uint32_t quoted_bytes =
        std::min<uint32_t>(net::kIpv6Bytes + net::load16(old + net::kIp6PayloadLength),
                           net::kLeastMtu6Bytes - kErrorBytes);
    if (l3 < kFrontBytes) {
      pkt.push_front(kFrontBytes - l3);
    } else {
      pkt.pull_front(l3 - kFrontBytes);
    }
    pkt.set_len_bytes(kFrontBytes + quoted_bytes);
    uint8_t* eth = pkt.data();
    std::memset(eth, 0, kFrontBytes);
    net::store16(eth + 12, net::kTypeIpv6);
    uint8_t* ip = eth + net::kEthBytes;
    icmp6::write_ip(ip, source, receiver, icmp6::kHeaderBytes + quoted_bytes, kHopLimit);
    uint8_t* message = ip + net::kIpv6Bytes;
    message[0] = kind.type;
    message[1] = kind.code;
    net::store32(message + 4, mtu_bytes);
    icmp6::write_checksum(ip, message, icmp6::kHeaderBytes + quoted_bytes);
    PacketMeta& meta = pkt.meta();
    meta.l3_offset_bytes = net::kEthBytes;
    meta.l4_offset_bytes = net::kEthBytes + net::kIpv6Bytes;
    meta.flags |= kMetaOriginated;
  }

  const std::vector<Interface> interfaces_;
  const std::shared_ptr<RouteTable6> routes_;
  const icmp::ErrorKinds kinds_;
  icmp::ErrorBudget budget_;
};

const Register<Icmp6Error> kIcmp6Error{{
    .kind = "icmp6_error",
    .help = "Turns dropped IPv6 packets into ICMPv6 errors to their senders.",
    .params = {{.name = "table",
                .type = ParamType::kString,
                .default_value = "",
                .help = "the route table of the lookup in front; needed for packet too big"},
               icmp::errors_per_s_spec(),
               icmp::burst_spec()},
    .drops = {&reason::kIcmpRateLimited, &reason::kIcmpNotDue},
    .notes =
        "Connect drop gates to it: hop_limit_expired gives time exceeded, no_route no route to "
        "destination, neighbour_unreachable address unreachable, beyond_scope beyond scope of "
        "source address, mtu_exceeded packet too big with the MTU of the next hop's interface. Its "
        "output goes to an ipv6_lookup of the same table (not the one whose drops it takes: task "
        "graphs have no loops). Never about ICMPv6 errors and redirects, the router's own packets, "
        "or groups (except packet too big). Quotes as much as fits 1280 bytes.",
}};

}  // namespace
}  // namespace batchplane
