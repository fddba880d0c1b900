// SPDX-License-Identifier: BSD-3-Clause
// neighbour_resolver.h - the worker's side of ARP: sends, answers and learns from its messages, and
// announces own addresses at the start.
#pragma once

#include <vector>

#include "modules/neighbour/neighbour_keeper.h"

namespace batchplane {

class NeighbourResolver final : public NeighbourKeeper<Ipv4Family> {
 public:
  NeighbourResolver(const std::vector<Interface>& interfaces, const Limits& limits,
                    bool is_announcing)
      : NeighbourKeeper(interfaces, limits), is_announcing_(is_announcing) {}

  // Packet i is an ARP frame with its message at byte `l3`: answers or drops it.
  void handle_arp(Context& ctx, Batch& batch, uint32_t i, uint32_t l3) noexcept;
  void housekeep(Context& ctx, uint64_t budget_ns) noexcept {
    if (is_announcing_) announce(ctx);
    NeighbourKeeper::housekeep(ctx, budget_ns);
  }
  bool adopt(NeighbourResolver& old) noexcept {
    const bool is_same = NeighbourKeeper::adopt(old);
    if (is_same) is_announcing_ = false;
    return is_same;
  }

 private:
  void solicit(Context& ctx, uint16_t interface, const net::Mac* known,
               const uint32_t& address) noexcept override;
  void send_request(Context& ctx, uint16_t interface, const net::Mac& dst, uint32_t source,
                    uint32_t wanted) noexcept;
  // Gratuitous ARP: announces our addresses, so that hosts drop stale entries of a former owner.
  void announce(Context& ctx) noexcept;

  bool is_announcing_;
};

}  // namespace batchplane
