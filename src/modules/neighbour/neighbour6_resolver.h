// SPDX-License-Identifier: BSD-3-Clause
// neighbour6_resolver.h - the worker's side of neighbour discovery: sends, answers and learns from
// its messages, and announces own addresses.
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

  // True for a discovery message to this router. `l3`: offset of the IPv6 header.
  [[nodiscard]] bool is_for_us(Packet& pkt, uint32_t l3) const noexcept;
  // Packet i is a message for us: answers or drops it.
  void handle(Context& ctx, Batch& batch, uint32_t i, uint32_t l3) noexcept;
  void housekeep(Context& ctx, uint64_t budget_ns) noexcept;
  bool adopt(Neighbour6Resolver& old) noexcept;
  [[nodiscard]] const RouterAdvertiser& advertiser() const noexcept { return advertiser_; }

 private:
  void solicit(Context& ctx, uint16_t interface, const net::Mac* known,
               const net::Address6& address) noexcept override;
  // Each takes a valid message; the first two answer or drop packet i.
  void handle_solicitation(Context& ctx, Batch& batch, uint32_t i, uint32_t l3,
                           const net::Mac* option_mac) noexcept;
  void handle_advertisement(Context& ctx, Batch& batch, uint32_t i, uint32_t l3,
                            const net::Mac* option_mac) noexcept;
  void handle_router_solicitation(Context& ctx, uint16_t interface, const net::Address6& sender,
                                  const net::Mac* option_mac) noexcept;
  // Announces our addresses, so that hosts drop stale entries of a former owner.
  void announce(Context& ctx) noexcept;

  bool is_announcing_;
  RouterAdvertiser advertiser_;
};

}  // namespace batchplane
