// SPDX-License-Identifier: BSD-3-Clause
// neighbour6.cc - forwards IPv6 packets to their next hops: resolves the MAC by neighbour discovery
// and writes the Ethernet header; advertises prefixes.
//
// in: 1 (discovery messages to us, and IPv6 after its lookup)   out: gate = interface index
// drops: neighbour_reasons.h, neighbour6_reasons.h
// state: neighbours and held packets; owner: the worker
#include "core/module/register.h"
#include "modules/neighbour/neighbour6_reasons.h"
#include "modules/neighbour/neighbour6_resolver.h"
#include "modules/neighbour/neighbour_module.h"

namespace batchplane {
namespace {

class Neighbour6Module final : public NeighbourModuleOf<Ipv6Family, Neighbour6Resolver> {
 public:
  explicit Neighbour6Module(const Args& args)
      : NeighbourModuleOf(args, RouterAdvertiser(args.env().interfaces, args.list("advertise"),
                                                 args.where(), args.u64("advertise_interval_ns"))) {
  }

  void classify(Context& ctx, Batch& batch) noexcept {
    for (uint32_t i = 0; i < batch.size_pkts; ++i) {
      Packet& pkt = *batch[i];
      const uint32_t l3 = pkt.meta().l3_offset_bytes;
      if (is_too_short(pkt, l3, net::kIpv6Bytes)) {
        ctx.drop(batch, i, reason::kTooShort);
      } else if (resolver().is_for_us(pkt, l3)) {
        resolver().handle(ctx, batch, i, l3);
      } else {
        forward(ctx, batch, i, l3);
      }
    }
  }

  [[nodiscard]] Value show() const override {
    Dict all = shown();
    all["advertising_interfaces"] = resolver().advertiser().n_interfaces();
    return all;
  }

 private:
  void forward(Context& ctx, Batch& batch, uint32_t i, uint32_t l3) noexcept {
    Packet& pkt = *batch[i];
    const PacketMeta& meta = pkt.meta();
    const NextHop* hop = hop_of(pkt);
    uint16_t interface = hop == nullptr ? kNoInterface : hop->interface;
    if (interface == kArrivalInterface) interface = meta.in_interface;
    if (hop == nullptr || interface >= resolver().interfaces().size()) {
      ctx.drop(batch, i, neighbour::kNoInterface);
      return;
    }
    const auto& ip = header_in<net::Ipv6>(pkt, l3);
    if (net::kIpv6Bytes + ip.payload_length > resolver().interfaces()[interface].mtu_bytes) {
      ctx.drop(batch, i, neighbour::kMtuExceeded);
      return;
    }
    const bool is_of_link =
        net::Address6(ip.src).is_link_local() || net::Address6(ip.dst).is_link_local();
    if (is_of_link && (meta.flags & kMetaOriginated) == 0 && !is_from_us(ip)) [[unlikely]] {
      ctx.drop(batch, i, neighbour::kBeyondScope);
      return;
    }
    send(ctx, batch, i, l3, interface, *hop, ip.dst);
  }

  // Replies reuse the request's packet and so lack kMetaOriginated: their source address tells.
  [[nodiscard]] bool is_from_us(const net::Ipv6& ip) const noexcept {
    const net::Address6 src = ip.src;
    for (const Interface& interface : resolver().interfaces()) {
      for (const net::Prefix6& own : interface.addresses6) {
        if (own.address == src) return true;
      }
    }
    return false;
  }
};

const Register<Neighbour6Module> kNeighbour6{{
    .kind = "neighbour6",
    .state = StateOf::kOneOwner,
    .help = "Resolves IPv6 next hops by neighbour discovery, writes Ethernet headers, answers "
            "solicitations, advertises prefixes.",
    .params = neighbour_params(
        30'000'000'000, "tell the links about our addresses at the start",
        {{.name = "advertise",
          .type = ParamType::kList,
          .default_value = List{},
          .help = "router advertisements: [{interface, prefix, dns, router_lifetime_s, "
                  "valid_lifetime_s, preferred_lifetime_s}]"},
         {.name = "advertise_interval_ns",
          .type = ParamType::kInt,
          .unit = "ns",
          .default_value = int64_t{200'000'000'000},
          .help = "longest time between two advertisements; the shortest is a third of it",
          .min = 4e9,
          .max = 1800e9}}),
    .drops = {&neighbour::kUnreachable, &neighbour::kHoldFull, &neighbour::kTableFull,
              &neighbour::kMtuExceeded, &neighbour::kNoInterface, &neighbour::kNdMalformed,
              &neighbour::kNdConflict, &neighbour::kNdDone, &neighbour::kBeyondScope,
              &reason::kTooShort},
    .notes =
        "Gate N leads to the port of interface N (in the order of the pipeline's interfaces). Send "
        "it the discovery messages to the router (gate `neighbour` of an icmp6_echo) and the IPv6 "
        "packets of an ipv6_lookup of the same table. Packets longer than the interface's MTU are "
        "dropped for mtu_exceeded, those of others from or to link-local addresses for "
        "beyond_scope. With advertise hosts configure addresses by themselves; prefix and dns are "
        "one text or a list of them. Live commands: add {interface, address, mac} (static), delete "
        "{interface, address}, list. At an apply the new file decides about the entries that files "
        "declare; those learnt or added live stay. Own addresses are not probed for duplicates; "
        "who claims one is counted as nd_conflict.",
    .is_for_ipv6 = true,
}};

}  // namespace
}  // namespace batchplane
