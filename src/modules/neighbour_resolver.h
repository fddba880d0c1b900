// SPDX-License-Identifier: BSD-3-Clause
// neighbour_resolver.h - the worker's side of ARP: asks, answers, learns, lets packets wait, ages.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "core/context.h"
#include "core/environment.h"
#include "modules/arp.h"
#include "modules/neighbour_command.h"
#include "modules/neighbour_table.h"

namespace batchplane {

// Owner: one worker; construction, give_up_held() and table().list() on the control thread.
class NeighbourResolver {
 public:
  struct Limits {
    uint32_t max_neighbours = 0;
    uint32_t hold_pkts = 0;
    uint32_t max_hold_pkts = 0;
    uint32_t max_tries = 0;
    uint64_t retry_ns = 0;
    uint64_t reachable_ns = 0;
  };

  NeighbourResolver(const std::vector<Interface>& interfaces, const Limits& limits,
                    bool is_announcing);

  [[nodiscard]] NeighbourTable& table() noexcept { return *table_; }
  [[nodiscard]] const NeighbourTable& table() const noexcept { return *table_; }
  [[nodiscard]] const std::vector<Interface>& interfaces() const noexcept { return interfaces_; }

  // Packet i is an ARP frame: the message begins at byte `l3`. Its fate is settled.
  void handle_arp(Context& ctx, Batch& batch, uint32_t i, uint32_t l3) noexcept;
  // Lets packet i wait for the neighbour (table entry `index`, or none yet), which is asked; or
  // drops it.
  void hold(Context& ctx, Batch& batch, uint32_t i, uint32_t index, uint16_t interface,
            uint32_t address) noexcept;
  // Puts an Ethernet header in front of the IPv4 header, wherever that is. The packet has headroom:
  // ports leave kHeadroomBytes.
  void write_header(Packet& pkt, uint32_t l3, uint16_t interface,
                    const net::Mac& dst) const noexcept {
    if (l3 > net::kEthBytes) {
      pkt.pull_front(l3 - net::kEthBytes);
    } else if (l3 < net::kEthBytes) {
      pkt.push_front(net::kEthBytes - l3);
    }
    pkt.meta().l3_offset_bytes = net::kEthBytes;
    arp::write_eth(pkt.data(), dst, interfaces_[interface].mac, net::kTypeIpv4);
  }
  // A static entry comes or goes.
  void obey(const NeighbourOrder& order) noexcept;
  void housekeep(Context& ctx, uint64_t budget_ns) noexcept;

  // Takes the table of `old`, packets included. False when that is of another size or for other
  // interfaces: neighbours are learnt again then.
  bool adopt(NeighbourResolver& old) noexcept;
  void give_up_held(const std::function<void(Packet*)>& take);

 private:
  [[nodiscard]] const net::Prefix4* own_address(uint16_t interface, uint32_t address) const;
  // The own address in the subnet of `address`, else the first one, else 0.
  [[nodiscard]] uint32_t source_for(uint16_t interface, uint32_t address) const;
  [[nodiscard]] bool is_on_link(uint16_t interface, uint32_t address) const;

  void ask(Context& ctx, uint32_t index) noexcept;
  void send_request(Context& ctx, uint16_t interface, const net::Mac& dst, uint32_t source,
                    uint32_t wanted) noexcept;
  void learn(Context& ctx, uint16_t interface, uint32_t address, const net::Mac& mac,
             bool may_add) noexcept;
  void resolve(Context& ctx, uint32_t index, const net::Mac& mac, NeighbourState state) noexcept;
  // What does not fit this call leaves at the next tick.
  void send_held(Context& ctx, uint32_t index) noexcept;
  void give_up(Context& ctx, uint32_t index) noexcept;
  void age(Context& ctx, uint32_t index) noexcept;
  // Gratuitous: tells the links about our addresses, so that hosts forget whoever had them before.
  void announce(Context& ctx) noexcept;
  void forget(uint32_t index) noexcept;

  const std::vector<Interface> interfaces_;
  const Limits limits_;
  bool is_announcing_;
  std::unique_ptr<NeighbourTable> table_;
  uint32_t cursor_ = 0;
};

}  // namespace batchplane
