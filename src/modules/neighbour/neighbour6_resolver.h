// SPDX-License-Identifier: BSD-3-Clause
// neighbour6_resolver.h - the worker's side of neighbour discovery: asks, answers, learns, tells.
#pragma once

#include <vector>

#include "modules/neighbour/neighbour_keeper.h"
#include "modules/neighbour/router_advertiser.h"

namespace batchplane {

class Neighbour6Resolver final : public NeighbourKeeper<Ipv6Family> {
 public:
  Neighbour6Resolver(const std::vector<Interface>& interfaces, const Limits& limits,
                     bool is_announcing, RouterAdvertiser advertiser)
      : NeighbourKeeper(interfaces, limits),
        is_announcing_(is_announcing),
        advertiser_(std::move(advertiser)) {}

  // Whether the packet, an IPv6 header at `l3` and more, is a discovery message for this router.
  [[nodiscard]] bool is_for_us(Packet& pkt, uint32_t l3) const noexcept;
  // Packet i is such a message. Its fate is settled.
  void handle(Context& ctx, Batch& batch, uint32_t i, uint32_t l3) noexcept;
  void housekeep(Context& ctx, uint64_t budget_ns) noexcept;
  bool adopt(Neighbour6Resolver& old) noexcept;
  [[nodiscard]] const RouterAdvertiser& advertiser() const noexcept { return advertiser_; }

 private:
  void solicit(Context& ctx, uint16_t interface, const net::Mac* known,
               const net::Address6& address) noexcept override;
  // Each settles the fate of packet i, whose message was found valid.
  void handle_solicitation(Context& ctx, Batch& batch, uint32_t i, uint32_t l3,
                           const net::Mac* option_mac) noexcept;
  void handle_advertisement(Context& ctx, Batch& batch, uint32_t i, uint32_t l3,
                            const net::Mac* option_mac) noexcept;
  void handle_router_solicitation(Context& ctx, uint16_t interface, const net::Address6& sender,
                                  const net::Mac* option_mac) noexcept;
  // Tells the links about our addresses, so that hosts forget whoever had them before.
  void announce(Context& ctx) noexcept;

  bool is_announcing_;
  RouterAdvertiser advertiser_;
};

}  // namespace batchplane
