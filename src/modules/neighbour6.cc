// SPDX-License-Identifier: BSD-3-Clause
// neighbour6.cc - sends IPv6 packets on to their next hops: finds the MAC, writes the Ethernet
// header; speaks neighbour discovery and advertises prefixes.
//
// in: 1 (discovery messages to us, and IPv6 after its lookup)   out: gate = interface index
// drops: neighbour_reasons.h, neighbour6_reasons.h   state: neighbours and the packets that wait
// for them; owner: the worker
#include <algorithm>

#include "base/net6.h"
#include "core/module.h"
#include "modules/neighbour6_reasons.h"
#include "modules/neighbour6_resolver.h"
#include "modules/neighbour_command.h"
#include "modules/route_commands.h"

namespace batchplane {
namespace {

constexpr uint64_t kTickNs = 10'000'000;

NeighbourLimits limits_of(const Args& args) {
  return {.max_neighbours = args.u32("max_neighbours"),
          .hold_pkts = args.u32("hold_pkts"),
          .max_hold_pkts = args.u32("max_hold_pkts"),
          .max_tries = args.u32("max_tries"),
          .retry_ns = args.u64("retry_ns"),
          .reachable_ns = args.u64("reachable_ns")};
}

class Neighbour6Module final : public Module {
 public:
  explicit Neighbour6Module(const Args& args)
      : routes_(shared_route_table<Ipv6Family>(args.env(), args.string("table"))),
        resolver_(args.env().interfaces, limits_of(args), args.flag("announce"),
                  RouterAdvertiser(args.env().interfaces, args.list("advertise"), args.where(),
                                   args.u64("advertise_interval_ns"))),
        commands_(resolver_.interfaces(), args.list("neighbours"), args.where()) {
    if (resolver_.interfaces().empty()) {
      throw ConfigError("a neighbour6 module needs interfaces", args.where(),
                        "declare interfaces with addresses in the pipeline");
    }
  }

  void classify(Context& ctx, Batch& batch) noexcept {
    for (uint32_t i = 0; i < batch.size_pkts; ++i) {
      Packet& pkt = *batch[i];
      const uint32_t l3 = pkt.meta().l3_offset_bytes;
      if (pkt.len_bytes() < l3 + net::kIpv6Bytes ||
          (l3 < net::kEthBytes && pkt.headroom_bytes() < net::kEthBytes - l3)) {
        ctx.drop(batch, i, reason::kTooShort);
      } else if (resolver_.is_for_us(pkt, l3)) {
        resolver_.handle(ctx, batch, i, l3);
      } else {
        forward(ctx, batch, i, l3);
      }
    }
  }

  void housekeep(Context& ctx, uint64_t budget_ns) noexcept override {
    commands_.drain([&](const NeighbourOrderOf<net::Address6>& order) { resolver_.obey(order); });
    resolver_.housekeep(ctx, budget_ns);
  }
  [[nodiscard]] uint64_t housekeep_interval_ns() const override { return kTickNs; }

  [[nodiscard]] uint32_t gates_used(uint32_t connected) const override {
    return std::max(connected, static_cast<uint32_t>(resolver_.interfaces().size()));
  }
  [[nodiscard]] uint64_t held_pkts() const override { return resolver_.table().n_held(); }
  [[nodiscard]] uint32_t max_held_pkts() const override { return resolver_.table().max_held(); }
  void give_up_held(const std::function<void(Packet*)>& take) override {
    resolver_.give_up_held(take);
  }

  void inherit(Module& old) override {
    commands_.inherit(static_cast<Neighbour6Module&>(old).commands_);
  }
  void adopt(Module& old) noexcept override {
    resolver_.adopt(static_cast<Neighbour6Module&>(old).resolver_);
  }

  Value command(const std::string& verb, const Value& args) override {
    if (verb == "list") return commands_.format(resolver_.table().list());
    return commands_.run(verb, args);
  }
  [[nodiscard]] Value show() const override {
    const auto& table = resolver_.table();
    return Dict{{"neighbours", static_cast<uint64_t>(table.list().size())},
                {"max_neighbours", table.capacity()},
                {"held_pkts", table.n_held()},
                {"max_held_pkts", table.max_held()},
                {"advertising_interfaces", resolver_.advertiser().n_interfaces()}};
  }
  [[nodiscard]] Dict saved_params() const override { return commands_.saved_params(); }

 private:
  void forward(Context& ctx, Batch& batch, uint32_t i, uint32_t l3) noexcept {
    Packet& pkt = *batch[i];
    const PacketMeta& meta = pkt.meta();
    const NextHop* hop = routes_->is_built() ? routes_->hops().at(meta.next_hop) : nullptr;
    uint16_t interface = hop == nullptr ? kNoInterface : hop->interface;
    if (interface == kArrivalInterface) interface = meta.in_interface;
    if (hop == nullptr || interface >= resolver_.interfaces().size()) {
      ctx.drop(batch, i, neighbour::kNoInterface);
      return;
    }
    const uint8_t* ip = pkt.data() + l3;
    if (net::kIpv6Bytes + net::load16(ip + net::kIp6PayloadLength) >
        resolver_.interfaces()[interface].mtu_bytes) {
      ctx.drop(batch, i, neighbour::kMtuExceeded);
      return;
    }
    if ((net::load16(ip + net::kIp6Src) & 0xffc0) == 0xfe80 && interface != meta.in_interface &&
        (meta.flags & kMetaOriginated) == 0) [[unlikely]] {
      ctx.drop(batch, i, neighbour::kBeyondScope);
      return;
    }
    ctx.gates[i] = interface;
    if (hop->has_mac) {
      resolver_.write_header(pkt, l3, interface, hop->mac);
      return;
    }
    const net::Address6 address =
        hop->gateway6.is_unspecified() ? net::load_address6(ip + net::kIp6Dst) : hop->gateway6;
    const uint32_t index = resolver_.table().find(interface, address);
    if (index != kNoNeighbour) [[likely]] {
      auto& entry = resolver_.table()[index];
      entry.is_used = true;
      if (entry.has_mac() && entry.n_held == 0) [[likely]] {
        resolver_.write_header(pkt, l3, interface, entry.mac);
        return;
      }
    }
    resolver_.hold(ctx, batch, i, index, interface, address);
  }

  const std::shared_ptr<RouteTable6> routes_;
  Neighbour6Resolver resolver_;
  NeighbourCommandsOf<Ipv6Family> commands_;
};

const Register<Neighbour6Module> kNeighbour6{{
    .kind = "neighbour6",
    .help = "Resolves IPv6 next hops by neighbour discovery, writes Ethernet headers, answers "
            "solicitations, advertises prefixes.",
    .params = {{.name = "table",
                .type = ParamType::kString,
                .help = "the route table whose next hops packets carry"},
               {.name = "neighbours",
                .type = ParamType::kList,
                .default_value = List{},
                .help = "static entries {interface, address, mac}"},
               {.name = "max_neighbours",
                .type = ParamType::kInt,
                .unit = "entries",
                .default_value = 4096,
                .help = "size of the table; unresolved ones take a quarter at most",
                .min = 4,
                .max = 1'000'000},
               {.name = "hold_pkts",
                .type = ParamType::kInt,
                .unit = "pkts",
                .default_value = 16,
                .help = "packets that wait for one unresolved neighbour",
                .min = 1,
                .max = 1024},
               {.name = "max_hold_pkts",
                .type = ParamType::kInt,
                .unit = "pkts",
                .default_value = 512,
                .help = "packets that wait in total",
                .min = 1,
                .max = 100'000},
               {.name = "max_tries",
                .type = ParamType::kInt,
                .default_value = 3,
                .help = "requests before a neighbour counts as unreachable",
                .min = 1,
                .max = 100},
               {.name = "retry_ns",
                .type = ParamType::kInt,
                .unit = "ns",
                .default_value = 1'000'000'000,
                .help = "between two requests",
                .min = 1'000'000,
                .max = 60e9},
               {.name = "reachable_ns",
                .type = ParamType::kInt,
                .unit = "ns",
                .default_value = int64_t{30'000'000'000},
                .help = "age at which a used neighbour is asked again and an unused one forgotten",
                .min = 1'000'000,
                .max = 86'400e9},
               {.name = "announce",
                .type = ParamType::kBool,
                .default_value = true,
                .help = "tell the links about our addresses at the start"},
               {.name = "advertise",
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
                .max = 1800e9}},
    .drops = {&neighbour::kUnreachable, &neighbour::kHoldFull, &neighbour::kTableFull,
              &neighbour::kMtuExceeded, &neighbour::kNoInterface, &neighbour::kNdMalformed,
              &neighbour::kNdConflict, &neighbour::kNdDone, &neighbour::kBeyondScope,
              &reason::kTooShort},
    .notes =
        "Gate N leads to the port of interface N (in the order of the pipeline's interfaces). Send "
        "it the discovery messages to the router (gate `neighbour` of an icmp6_echo) and the IPv6 "
        "packets of an ipv6_lookup of the same table. Packets longer than the interface's MTU are "
        "dropped for mtu_exceeded, those from link-local addresses to other links for "
        "beyond_scope. With advertise hosts configure addresses by themselves; prefix and dns are "
        "one text or a list of them. Live commands: add {interface, address, mac} (static), delete "
        "{interface, address}, list. At an apply the new file decides about the entries that files "
        "declare; those learnt or added live stay. Own addresses are not probed for duplicates; "
        "who claims one is counted as nd_conflict.",
}};

}  // namespace
}  // namespace batchplane
