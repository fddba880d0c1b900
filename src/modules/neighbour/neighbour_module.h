// SPDX-License-Identifier: BSD-3-Clause
// neighbour_module.h - common base of the ARP and neighbour discovery modules. Each adds how it
// recognises its messages and its checks before forwarding.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/module/module.h"
#include "modules/neighbour/neighbour_command.h"
#include "modules/neighbour/neighbour_keeper.h"
#include "modules/neighbour/neighbour_reasons.h"
#include "modules/route/route_commands.h"

namespace batchplane {

inline NeighbourLimits neighbour_limits_of(const Args& args) {
  return {.max_neighbours = args.u32("max_neighbours"),
          .hold_pkts = args.u32("hold_pkts"),
          .max_hold_pkts = args.u32("max_hold_pkts"),
          .max_tries = args.u32("max_tries"),
          .retry_ns = args.u64("retry_ns"),
          .reachable_ns = args.u64("reachable_ns")};
}

// Parameters of both modules, followed by `extra`.
std::vector<ParamSpec> neighbour_params(int64_t reachable_ns, const char* announce_help,
                                        std::vector<ParamSpec> extra = {});

// `Resolver`: a NeighbourKeeper<Family> with its own housekeep() and adopt().
template <class Family, class Resolver>
class NeighbourModuleOf : public Module {
 public:
  void housekeep(Context& ctx, uint64_t budget_ns) noexcept override {
    commands_.drain(
        [&](const NeighbourOrderOf<typename Family::Address>& order) { resolver_.obey(order); });
    resolver_.housekeep(ctx, budget_ns);
  }
  [[nodiscard]] uint64_t housekeep_interval_ns() const override { return 10'000'000; }

  uint32_t link(uint32_t connected) override {
    return std::max(connected, static_cast<uint32_t>(resolver_.interfaces().size()));
  }
  [[nodiscard]] uint64_t held_pkts() const override { return resolver_.table().n_held(); }
  [[nodiscard]] uint32_t max_held_pkts() const override { return resolver_.table().max_held(); }
  void give_up_held(const std::function<void(Packet*)>& take) override {
    resolver_.give_up_held(take);
  }

  void inherit(Module& old) override {
    commands_.inherit(static_cast<NeighbourModuleOf&>(old).commands_);
  }
  void adopt(Module& old) noexcept override {
    resolver_.adopt(static_cast<NeighbourModuleOf&>(old).resolver_);
  }

  Value command(const std::string& verb, const Value& args) override {
    if (verb == "list") return commands_.format(resolver_.table().list());
    return commands_.run(verb, args);
  }
  [[nodiscard]] Value show() const override { return shown(); }
  [[nodiscard]] Dict saved_params() const override { return commands_.saved_params(); }

 protected:
  // `more`: the resolver's arguments after interfaces, limits and announce.
  template <class... More>
  explicit NeighbourModuleOf(const Args& args, More&&... more)
      : routes_(shared_route_table<Family>(args.env(), args.string("table"))),
        resolver_(args.env().interfaces, neighbour_limits_of(args), args.flag("announce"),
                  std::forward<More>(more)...),
        commands_(resolver_.interfaces(), args.list("neighbours"), args.where()) {
    if (resolver_.interfaces().empty()) {
      throw ConfigError("a module that resolves neighbours needs interfaces", args.where(),
                        "declare interfaces with addresses in the pipeline");
    }
  }

  // False if there is room for an IP header at `l3` and an Ethernet header in front of it.
  static bool is_too_short(Packet& pkt, uint32_t l3, uint32_t ip_bytes) noexcept {
    return pkt.len_bytes() < l3 + ip_bytes ||
           (l3 < net::kEthBytes && pkt.headroom_bytes() < net::kEthBytes - l3);
  }
  // nullptr for packets that no lookup has seen.
  [[nodiscard]] const NextHop* hop_of(Packet& pkt) const noexcept {
    return routes_->is_built() ? routes_->hops().at(pkt.meta().next_hop) : nullptr;
  }
  // Sends packet i out of `interface` to the next hop, or to `dst` if the route is on-link.
  void send(Context& ctx, Batch& batch, uint32_t i, uint32_t l3, uint16_t interface,
            const NextHop& hop, const typename Family::Address& dst) noexcept {
    Packet& pkt = *batch[i];
    ctx.gates[i] = interface;
    if (hop.has_mac) {
      resolver_.write_header(pkt, l3, interface, hop.mac);
      return;
    }
    const auto& gateway = Family::gateway(hop);
    const auto address = Family::is_zero(gateway) ? dst : gateway;
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

  [[nodiscard]] Dict shown() const {
    const auto& table = resolver_.table();
    return Dict{{"neighbours", static_cast<uint64_t>(table.list().size())},
                {"max_neighbours", table.capacity()},
                {"held_pkts", table.n_held()},
                {"max_held_pkts", table.max_held()}};
  }
  [[nodiscard]] Resolver& resolver() noexcept { return resolver_; }
  [[nodiscard]] const Resolver& resolver() const noexcept { return resolver_; }

 private:
  const std::shared_ptr<RouteTableOf<Family>> routes_;
  Resolver resolver_;
  NeighbourCommandsOf<Family> commands_;
};

}  // namespace batchplane
