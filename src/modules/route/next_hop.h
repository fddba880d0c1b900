// SPDX-License-Identifier: BSD-3-Clause
// next_hop.h - next hops by ID; changing one is a single store that workers see at once.
//
// Glossary
//   next hop  an id that routes point to: a gate, and for routers interface, gateway and MAC
//   group     a next hop that spreads flows over others by weight (ECMP)
//   implicit  made for a route that names its target itself; shared by equal ones, freed with the
//   last
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "base/net6.h"
#include "core/module/live_table.h"
#include "core/packet/packet.h"

namespace batchplane {

// Link-scope addresses are reached through the interface where they were seen.
inline constexpr uint16_t kArrivalInterface = 0xfffe;

struct NextHop {
  enum class Kind : uint8_t { kForward, kLocal, kDrop, kGroup };
  struct Member {
    uint32_t id = 0;
    uint32_t weight = 1;
    bool operator==(const Member&) const = default;
  };

  Kind kind = Kind::kForward;
  uint16_t gate = 0;
  // kNoInterface: a gate and nothing else; kArrivalInterface: the interface that the packet came
  // from.
  uint16_t interface = kNoInterface;
  uint32_t gateway = 0;      // host order; 0 = the packet's own destination (on link)
  net::Address6 gateway6{};  // likewise, in tables of IPv6
  bool has_mac = false;      // fixed MAC: no ARP
  net::Mac mac{};
  std::vector<Member> members;    // groups
  std::vector<uint32_t> buckets;  // groups: member id per bucket, a power of two of them
};

// What the lookup needs, in one word: id << 32 | flags << 16 | gate.
using ForwardWord = uint64_t;
inline constexpr ForwardWord kForwardGroup = 1ULL << 16;
inline constexpr ForwardWord kForwardNoRoute = 1ULL << 17;
inline constexpr ForwardWord kForwardDrop = 1ULL << 18;
inline constexpr ForwardWord kForwardSpecial = kForwardGroup | kForwardNoRoute | kForwardDrop;

// forward(), at(): any thread. Everything else: control thread.
class NextHops {
 public:
  // Ids 0..capacity-1, and `miss_id` = capacity for addresses without a route.
  NextHops(uint32_t capacity, const Quiescence* quiescence);

  [[nodiscard]] ForwardWord forward(uint64_t id) const noexcept {
    return forward_[id].load(std::memory_order_relaxed);
  }
  // nullptr if there is no such entry. Valid until the module's call returns.
  [[nodiscard]] const NextHop* at(uint32_t id) const noexcept {
    return id < capacity_ ? entries_[id].load(std::memory_order_acquire) : nullptr;
  }
  [[nodiscard]] uint32_t capacity() const { return capacity_; }
  [[nodiscard]] uint32_t miss_id() const { return capacity_; }

  // Creates or changes entry `id` as an explicit one. O(1) whatever the number of routes. Throws
  // ConfigError (ID out of range or used by an implicit entry, members that are missing or are
  // groups themselves).
  void set(uint32_t id, NextHop hop);
  // Throws if routes or groups still use it.
  void erase(uint32_t id);
  // The ID of an implicit entry equal to `hop`, created if there is none. Prefers id = gate.
  uint32_t intern(const NextHop& hop);
  // Call before any entry is created: implicit entries get the IDs of equal entries in `old`,
  // others get IDs unused there. Packets that are between lookup and rewrite during an apply carry
  // such IDs.
  void keep_ids_of(const NextHops& old);
  // Routes and groups count as uses; an implicit entry is freed with its last use.
  void retain(uint32_t id) { ++uses_[id]; }
  void release(uint32_t id);
  [[nodiscard]] uint32_t uses(uint32_t id) const { return uses_[id]; }
  // Frees unused implicit entries, as a refused edit leaves behind.
  void drop_unused();

  // Sets where addresses without a route go: to entry `id`, or nowhere (id = miss_id()).
  void set_default(uint32_t id);
  [[nodiscard]] bool is_explicit(uint32_t id) const { return id < capacity_ && is_explicit_[id]; }
  [[nodiscard]] std::vector<uint32_t> explicit_ids() const;
  [[nodiscard]] uint32_t size() const { return size_; }
  // Largest gate in use; 0 if there is none.
  [[nodiscard]] uint32_t highest_gate() const;

 private:
  using Key =
      std::tuple<NextHop::Kind, uint16_t, uint16_t, uint32_t, net::Address6, std::vector<uint64_t>>;
  static Key key_of(const NextHop& hop);
  void check(uint32_t id, const NextHop& hop) const;
  void publish(uint32_t id, std::unique_ptr<NextHop> hop);
  uint32_t free_id(uint32_t preferred) const;

  uint32_t capacity_;
  const Quiescence* quiescence_;
  std::unique_ptr<std::atomic<ForwardWord>[]> forward_;
  std::unique_ptr<std::atomic<const NextHop*>[]> entries_;
  std::vector<std::unique_ptr<NextHop>> owned_;
  std::vector<uint32_t> uses_;
  std::vector<bool> is_explicit_;
  std::map<Key, uint32_t> implicit_;
  std::map<Key, uint32_t> earlier_ids_;
  std::vector<bool> is_reserved_;  // for earlier_ids_, as far as there is room
  uint32_t default_id_;
  uint32_t size_ = 0;
};

// Assigns buckets to members in proportion to their weights. Buckets of `old` keep their member as
// far as the new weights allow, so that few flows move.
std::vector<uint32_t> spread_buckets(const std::vector<NextHop::Member>& members,
                                     const std::vector<uint32_t>& old);

}  // namespace batchplane
