// SPDX-License-Identifier: BSD-3-Clause
// napt_ports.h - the external addresses and their used ports.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/rng.h"
#include "modules/common/tally.h"

namespace batchplane::nat {

inline constexpr uint32_t kMaxExternal = 1024;
inline constexpr uint32_t kNoPort = ~0U;
inline constexpr uint32_t kNoExternal = ~0U;

enum class PortSpace : uint8_t { kTcp, kUdp, kIcmp };
inline constexpr uint32_t kPortSpaces = 3;
[[nodiscard]] PortSpace port_space_of(uint8_t proto);

// Ports of one address and protocol; finding a free one takes a bounded number of steps.
class PortMap {
 public:
  PortMap(uint32_t first, uint32_t last);
  // Takes `wanted` if it is free, else the first free port from a random one on; kNoPort if all are
  // taken.
  [[nodiscard]] uint32_t take(uint32_t wanted, Rng& rng) noexcept;
  void give_back(uint32_t port) noexcept;
  [[nodiscard]] uint64_t n_used() const { return n_used_.value(); }
  [[nodiscard]] uint32_t n_all() const { return n_all_; }
  [[nodiscard]] bool is_exhausted() const { return n_used() == n_all_; }

 private:
  static constexpr uint32_t kWords = 65536 / 64;

  [[nodiscard]] bool is_taken(uint32_t port) const {
    return (taken_[port / 64] >> (port % 64) & 1) != 0;
  }
  void mark(uint32_t port);

  std::array<uint64_t, kWords> taken_{};
  std::array<uint64_t, kWords / 64> full_{};  // one bit per word of taken_
  Tally n_used_;
  uint32_t n_all_;
};

struct External {
  External(uint32_t raw, uint32_t first_port, uint32_t last_port);
  [[nodiscard]] PortMap& ports(PortSpace space) { return maps[static_cast<uint32_t>(space)]; }
  [[nodiscard]] const PortMap& ports(PortSpace space) const {
    return maps[static_cast<uint32_t>(space)];
  }
  [[nodiscard]] bool is_unused() const;
  uint32_t address_raw;
  std::atomic<bool> is_withdrawn{false};  // keeps its connections, gets no new ones
  std::array<PortMap, kPortSpaces> maps;
};

// Owner: the worker, once it runs.
class ExternalPool {
 public:
  using Addresses = std::vector<uint32_t>;  // host order

  ExternalPool(const Addresses& addresses, uint32_t first_port, uint32_t last_port);
  ~ExternalPool();
  ExternalPool(const ExternalPool&) = delete;
  ExternalPool& operator=(const ExternalPool&) = delete;

  // Returns kNoExternal for an address that is not in the pool or was withdrawn.
  [[nodiscard]] uint32_t index_of(uint32_t address_raw) const noexcept {
    for (uint32_t at = home_of(address_raw);; at = (at + 1) % kPlaces) {
      const Place& place = places_[at];
      if (place.index == kNowhere) return kNoExternal;
      if (place.address_raw == address_raw) return place.index;
    }
  }
  [[nodiscard]] External& operator[](uint32_t index) { return at(index); }
  // The external address for a new inside host: the one chosen by the hash, or the next that has a
  // free port.
  [[nodiscard]] uint32_t choose(uint64_t hash, PortSpace space) const noexcept;

  // Swaps `external` into a slot; the caller frees the pointer it gets back, on another thread.
  // False: no slot is free.
  bool add(std::unique_ptr<External>& external) noexcept;
  void withdraw(uint32_t address_raw) noexcept;
  // Switches to the configuration of `next`; ports in use stay taken.
  void change_to(ExternalPool& next) noexcept;

  // Any thread, since the addresses visited are freed only by the control thread.
  template <class Visit>
  void for_each(Visit visit) const {
    const uint32_t n = n_slots_.load(std::memory_order_acquire);
    for (uint32_t i = 0; i < n; ++i) {
      const External* external = slots_[i].load(std::memory_order_acquire);
      if (external != nullptr) visit(*external);  // null if change_to() moved it to another pool
    }
  }

 private:
  static constexpr uint32_t kPlaces = 4 * kMaxExternal;
  static constexpr uint32_t kNowhere = ~0U;
  struct Place {
    uint32_t address_raw = 0;
    uint32_t index = kNowhere;
  };
  static uint32_t home_of(uint32_t address_raw) { return (address_raw * 0x9e3779b1U) >> 20; }
  static_assert(kPlaces == 1U << 12);
  [[nodiscard]] External& at(uint32_t index) const {
    return *slots_[index].load(std::memory_order_relaxed);
  }
  [[nodiscard]] uint32_t n_slots() const { return n_slots_.load(std::memory_order_relaxed); }
  void index_all() noexcept;

  std::array<std::atomic<External*>, kMaxExternal> slots_{};
  std::atomic<uint32_t> n_slots_{0};
  std::array<Place, kPlaces> places_;
  std::array<uint16_t, kMaxExternal> open_{};  // slots that are not withdrawn
  uint32_t n_open_ = 0;
};

}  // namespace batchplane::nat
