// SPDX-License-Identifier: BSD-3-Clause
// neighbour_command.h - queue for edits of the neighbour table, from the control thread to the
// worker that owns the table.
#pragma once

#include <atomic>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/value.h"
#include "core/module/environment.h"
#include "modules/neighbour/neighbour_table.h"
#include "modules/route/route_family.h"

namespace batchplane {

template <class Address>
struct NeighbourOrderOf {
  Address address{};
  uint16_t interface = 0;
  bool is_delete = false;
  net::Mac mac{};
};

// Single producer (control thread), single consumer (worker). The worker drains the queue between
// two runs.
template <class Family>
class NeighbourCommandsOf {
 public:
  using Address = typename Family::Address;
  using NeighbourOrder = NeighbourOrderOf<Address>;
  using NeighbourView = NeighbourViewOf<Address>;

  // Throws ConfigError for bad static entries; good ones are queued as the first orders.
  NeighbourCommandsOf(const std::vector<Interface>& interfaces, const List& statics,
                      const std::string& where);

  // Call before the worker's first drain. `old` belongs to the replaced module. Entries added by
  // command stay; static entries that this pipeline no longer declares are deleted. If both declare
  // the same static entries, all live edits stay.
  void inherit(const NeighbourCommandsOf& old);

  Value run(const std::string& verb, const Value& args);
  [[nodiscard]] Value format(const std::vector<NeighbourView>& neighbours) const;
  [[nodiscard]] Dict saved_params() const;

  // Worker. At most kMaxOrders per call.
  template <class Obey>
  void drain(Obey obey) noexcept {
    uint32_t head = head_.load(std::memory_order_relaxed);
    const uint32_t tail = tail_.load(std::memory_order_acquire);
    while (head != tail) obey(orders_[head++ % orders_.size()]);
    head_.store(head, std::memory_order_release);
  }

 private:
  static constexpr uint32_t kMaxOrders = 1024;
  using Statics = std::map<std::pair<uint16_t, Address>, net::Mac>;  // by interface and address

  [[nodiscard]] NeighbourOrder parse(const Value& args, const std::string& where,
                                     bool has_mac) const;
  void push(const NeighbourOrder& order);
  // Our index of the interface that `there` numbers `index`, matched by name.
  [[nodiscard]] std::optional<uint16_t> index_here(const NeighbourCommandsOf& there,
                                                   uint16_t index) const;
  [[nodiscard]] Statics renumbered(const NeighbourCommandsOf& there, const Statics& statics) const;

  const std::vector<Interface>& interfaces_;
  Statics declared_;
  Statics statics_;  // including live edits
  std::vector<NeighbourOrder> orders_;
  std::atomic<uint32_t> head_{0};
  std::atomic<uint32_t> tail_{0};
};

extern template class NeighbourCommandsOf<Ipv4Family>;
extern template class NeighbourCommandsOf<Ipv6Family>;

}  // namespace batchplane
