// SPDX-License-Identifier: BSD-3-Clause
// neighbour_keeper.h - what ARP and neighbour discovery have in common: who is asked when, what
// waits meanwhile, and when what was learnt grows old.
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

  // Lets packet i wait for the neighbour (table entry `index`, or none yet), which is asked; or
  // drops it.
  void hold(Context& ctx, Batch& batch, uint32_t i, uint32_t index, uint16_t interface,
            const Address& address) noexcept;
  // Puts an Ethernet header in front of the IP header, wherever that is. The packet has headroom:
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
  // A static entry comes or goes.
  void obey(const NeighbourOrderOf<Address>& order) noexcept;
  void housekeep(Context& ctx, uint64_t budget_ns) noexcept;

  // Takes the table of `old`, packets included. False when that is of another size or for other
  // interfaces: neighbours are learnt again then.
  bool adopt(NeighbourKeeper& old) noexcept;
  void give_up_held(const std::function<void(Packet*)>& take);

 protected:
  NeighbourKeeper(const std::vector<Interface>& interfaces, const NeighbourLimits& limits);
  virtual ~NeighbourKeeper() = default;

  // Sends a question for `address`; to `known` alone when that is given.
  virtual void solicit(Context& ctx, uint16_t interface, const net::Mac* known,
                       const Address& address) noexcept = 0;

  [[nodiscard]] const Prefix* own_address(uint16_t interface, const Address& address) const;
  [[nodiscard]] bool is_on_link(uint16_t interface, const Address& address) const;
  // The own address in the subnet of `address`, else the first one, else 0.
  [[nodiscard]] Address source_for(uint16_t interface, const Address& address) const;

  void ask(Context& ctx, uint32_t index) noexcept;
  void learn(Context& ctx, uint16_t interface, const Address& address, const net::Mac& mac,
             bool may_add) noexcept;
  void resolve(Context& ctx, uint32_t index, const net::Mac& mac, NeighbourState state) noexcept;
  // A packet of the module's own making leaves, or is counted.
  static void send(Context& ctx, uint16_t interface, Packet* pkt) noexcept;

  const std::vector<Interface> interfaces_;
  const NeighbourLimits limits_;
  std::unique_ptr<Table> table_;

 private:
  // What does not fit this call leaves at the next tick.
  void send_held(Context& ctx, uint32_t index) noexcept;
  void give_up(Context& ctx, uint32_t index) noexcept;
  void age(Context& ctx, uint32_t index) noexcept;
  void forget(uint32_t index) noexcept;

  uint32_t cursor_ = 0;
};

extern template class NeighbourKeeper<Ipv4Family>;
extern template class NeighbourKeeper<Ipv6Family>;

}  // namespace batchplane
