// SPDX-License-Identifier: BSD-3-Clause
// load_balancer_table.h - the read-only table of the workers: services by address, their slots, and
// the action for each backend.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/flat_table.h"
#include "base/net.h"
#include "exec/batch.h"

namespace batchplane {

// A backend keeps its number as long as it exists; slots, actions and counters are indexed by it.
// The first three numbers stand for packets that get no backend.
inline constexpr uint16_t kForTooShort = 0;
inline constexpr uint16_t kForNoBackend = 1;
inline constexpr uint16_t kForNoService = 2;
inline constexpr uint16_t kFirstBackend = 3;

inline constexpr uint32_t kMaxServices = 1024;
inline constexpr uint32_t kMaxBackends = 4096;  // sum over all services
// Twice kMaxBackends: when a pipeline is replaced, its new backends get numbers that the old
// pipeline does not use.
inline constexpr uint32_t kBackendNumbers = kFirstBackend + 2 * kMaxBackends;

// What to do with a packet for a backend. A quarter of a cache line.
struct BackendAction {
  exec::GateIndex gate = 0;
  net::Mac mac{};
  uint32_t tunnel_id = 0;
  bool has_mac = false;
  bool has_tunnel = false;

  bool operator==(const BackendAction&) const = default;
};
static_assert(sizeof(BackendAction) == 16);

using Slots = std::shared_ptr<const std::vector<uint16_t>>;  // backend numbers

// Addresses and ports in network byte order; port 0 = any, protocol 0 = any.
using Key4 = FlatTable<1>::Key;
using Key6 = FlatTable<3>::Key;
inline Key4 service_key4(uint32_t address_raw, uint32_t proto, uint32_t port_raw) {
  return {uint64_t{address_raw} << 32 | proto << 16 | port_raw};
}
inline Key6 service_key6(const uint8_t* address, uint32_t proto, uint32_t port_raw) {
  Key6 key{0, 0, proto << 16 | port_raw};
  std::memcpy(key.data(), address, 16);
  return key;
}

// Read by workers; immutable once published.
class LoadBalancerTable {
 public:
  // Result of a service lookup: an index into the views.
  static constexpr uint32_t kNoService = 0;
  static constexpr uint32_t kTooShort = 1;

  LoadBalancerTable() : actions_(kFirstBackend) {
    add_view(constant(kForNoService));
    add_view(constant(kForTooShort));
  }

  // Control thread, before the table is published.
  void set_other_gate(exec::GateIndex gate) { actions_[kForNoService].gate = gate; }
  void set_action(uint16_t number, const BackendAction& action) {
    if (actions_.size() <= number) actions_.resize(number + 1U);
    actions_[number] = action;
    has_macs_ |= action.has_mac;
    has_tunnels_ |= action.has_tunnel;
  }
  // Slots may be null: a service without backends.
  void add_service(const Key4& key, const Slots& slots) {
    note_mask(masks4_, key[0]);
    services4_.insert_or_assign(key, add_view(slots == nullptr ? constant(kForNoBackend) : slots));
  }
  void add_service(const Key6& key, const Slots& slots) {
    note_mask(masks6_, key[2]);
    services6_.insert_or_assign(key, add_view(slots == nullptr ? constant(kForNoBackend) : slots));
  }

  // found[i] = view of the service of keys[i]. An exact match wins over a service for any port,
  // which wins over one for any protocol. Defined in load_balancer_table.cc.
  void find_bulk(const Key4* keys, uint32_t n, uint32_t* found) const noexcept;
  [[nodiscard]] uint32_t find(const Key4& key) const noexcept;
  [[nodiscard]] uint32_t find(const Key6& key) const noexcept;

  [[nodiscard]] const uint16_t* slot_of(uint32_t view, uint32_t hash) const noexcept {
    const View& at = views_[view];
    return at.slots + (uint64_t{hash} * at.n_slots >> 32);
  }
  [[nodiscard]] const BackendAction* actions() const noexcept { return actions_.data(); }
  [[nodiscard]] bool has_macs() const noexcept { return has_macs_; }
  [[nodiscard]] bool has_tunnels() const noexcept { return has_tunnels_; }
  [[nodiscard]] bool has_ipv6() const noexcept { return services6_.size() != 0; }
  [[nodiscard]] size_t size_bytes() const;

 private:
  struct View {
    const uint16_t* slots;
    uint32_t n_slots;
  };
  // The key masks in use: exact, any port, any protocol and port.
  struct Masks {
    std::array<uint64_t, 3> in_use{};
    uint32_t n = 0;
  };

  static Slots constant(uint16_t number) {
    return std::make_shared<const std::vector<uint16_t>>(1, number);
  }
  uint32_t add_view(const Slots& slots) {
    owned_.push_back(slots);
    views_.push_back({slots->data(), static_cast<uint32_t>(slots->size())});
    return static_cast<uint32_t>(views_.size() - 1);
  }
  static void note_mask(Masks& masks, uint64_t word);
  void find_rest(const Key4* keys, uint32_t n, uint64_t mask, uint32_t* found) const noexcept;

  FlatTable<1> services4_;
  FlatTable<3> services6_;
  Masks masks4_;
  Masks masks6_;
  std::vector<View> views_;
  std::vector<Slots> owned_;
  std::vector<BackendAction> actions_;
  bool has_macs_ = false;
  bool has_tunnels_ = false;
};

}  // namespace batchplane
