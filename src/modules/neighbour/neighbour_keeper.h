// SPDX-License-Identifier: BSD-3-Clause
// neighbour_keeper.h - the common part of ARP and neighbour discovery: when to send requests, which
// packets wait for a reply, and when entries age out.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "core/module/context.h"
#include "core/module/environment.h"
#include "modules/headers/arp.h"
#include "modules/neighbour/neighbour_command.h"
#include "modules/neighbour/neighbour_table.h"

namespace batchplane {

struct NeighbourLimits {
  uint32_t max_neighbours = 0;
  uint32_t hold_pkts = 0;
  uint32_t max_hold_pkts = 0;
  uint32_t max_tries = 0;
  uint64_t retry_ns = 0;
  uint64_t reachable_ns = 0;
};

// Owner: one worker; construction, give_up_held() and table().list() on the control thread.
template <class Family>
class NeighbourKeeper {
 public:
  using Address = typename Family::Address;
  using Prefix = typename Family::Prefix;
  using Table = NeighbourTableOf<Address>;
  using Neighbour = NeighbourOf<Address>;
  using Limits = NeighbourLimits;

  [[nodiscard]] Table& table() noexcept { return *table_; }
  [[nodiscard]] const Table& table() const noexcept { return *table_; }
  [[nodiscard]] const std::vector<Interface>& interfaces() const noexcept { return interfaces_; }

  // Holds packet i until the neighbour is resolved, or drops it. `index`: its table entry; if it
  // has none yet, adds one and sends a request.
  void hold(Context& ctx, Batch& batch, uint32_t i, uint32_t index, uint16_t interface,
            const Address& address) noexcept;
  // Puts an Ethernet header in front of the IP header at `l3`. The packet has headroom for it:
  // ports leave kHeadroomBytes.
  void write_header(Packet& pkt, uint32_t l3, uint16_t interface,
                    const net::Mac& dst) const noexcept {
    if (l3 > net::kEthBytes) {
      pkt.pull_front(l3 - net::kEthBytes);
    } else if (l3 < net::kEthBytes) {
      pkt.push_front(net::kEthBytes - l3);
    }
    pkt.meta().l3_offset_bytes = net::kEthBytes;
    constexpr uint16_t kType = Family::kBits == 32 ? net::kTypeIpv4 : net::kTypeIpv6;
    arp::write_eth(pkt.data(), dst, interfaces_[interface].mac, kType);
  }
  // Adds or deletes a static entry.
  void obey(const NeighbourOrderOf<Address>& order) noexcept;
  void housekeep(Context& ctx, uint64_t budget_ns) noexcept;

  // Takes over the table of `old`, held packets included. False if the sizes or interfaces differ:
  // neighbours are then learnt anew.
  bool adopt(NeighbourKeeper& old) noexcept;
  void give_up_held(const std::function<void(Packet*)>& take);

 protected:
  NeighbourKeeper(const std::vector<Interface>& interfaces, const NeighbourLimits& limits);
  virtual ~NeighbourKeeper() = default;

  // Sends a request for `address`: unicast to `known` if given, else to all (ARP) or to the group.
  virtual void solicit(Context& ctx, uint16_t interface, const net::Mac* known,
                       const Address& address) noexcept = 0;

  [[nodiscard]] const Prefix* own_address(uint16_t interface, const Address& address) const;
  [[nodiscard]] bool is_on_link(uint16_t interface, const Address& address) const;
  // The own address in the subnet of `address`, else the first own address, else 0.
  [[nodiscard]] Address source_for(uint16_t interface, const Address& address) const;

  void ask(Context& ctx, uint32_t index) noexcept;
  void learn(Context& ctx, uint16_t interface, const Address& address, const net::Mac& mac,
             bool may_add) noexcept;
  void resolve(Context& ctx, uint32_t index, const net::Mac& mac, NeighbourState state) noexcept;
  // Sends a packet made by this module. If the call has no room left, the packet is counted as a
  // drop.
  static void send(Context& ctx, uint16_t interface, Packet* pkt) noexcept;

  const std::vector<Interface> interfaces_;
  const NeighbourLimits limits_;
  std::unique_ptr<Table> table_;

 private:
  // Packets that do not fit into this call leave at the next tick.
  void send_held(Context& ctx, uint32_t index) noexcept;
  void give_up(Context& ctx, uint32_t index) noexcept;
  void age(Context& ctx, uint32_t index) noexcept;
  void forget(uint32_t index) noexcept;

  uint32_t cursor_ = 0;
};

extern template class NeighbourKeeper<Ipv4Family>;
extern template class NeighbourKeeper<Ipv6Family>;

}  // namespace batchplane
