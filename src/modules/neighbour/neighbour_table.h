// SPDX-License-Identifier: BSD-3-Clause
// neighbour_table.h - maps IP addresses on a link to MACs, and queues packets that wait for
// resolution.
//
// All memory is allocated at construction. Owner: one worker; list() may run on the control thread
// at any time: it reads a copy that the worker publishes entry by entry.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/net6.h"
#include "core/packet/packet.h"

namespace batchplane {

enum class NeighbourState : uint8_t {
  kFree,
  kUnresolved,  // request sent, no reply yet
  kReachable,
  kProbing,  // aged: request sent again, MAC still in use
  kStatic,
};
[[nodiscard]] const char* neighbour_state_name(NeighbourState state);

template <class Address>
struct NeighbourOf {
  Address address{};
  uint16_t interface = 0;
  NeighbourState state = NeighbourState::kFree;
  uint8_t tries = 0;     // requests sent without a reply
  bool is_used = false;  // packets were sent to it since it was last confirmed or aged
  net::Mac mac{};
  uint16_t n_held = 0;
  uint32_t held_first = ~0U;
  uint32_t held_last = ~0U;
  uint32_t next = ~0U;  // in its bucket or in the free list
  uint64_t at_ns = 0;   // time of the last confirmation or request

  [[nodiscard]] bool has_mac() const { return state >= NeighbourState::kReachable; }
};

template <class Address>
struct NeighbourViewOf {
  Address address;
  uint16_t interface;
  NeighbourState state;
  net::Mac mac;
};

inline constexpr uint32_t kNoNeighbour = ~0U;

template <class Address>
class NeighbourTableOf {
 public:
  using Neighbour = NeighbourOf<Address>;
  using NeighbourView = NeighbourViewOf<Address>;
  static constexpr uint32_t kNone = kNoNeighbour;

  NeighbourTableOf(uint32_t max_neighbours, uint32_t max_held_pkts);

  [[nodiscard]] uint32_t capacity() const { return static_cast<uint32_t>(entries_.size()); }
  [[nodiscard]] uint32_t size() const { return size_; }
  [[nodiscard]] uint32_t n_unresolved() const { return n_unresolved_; }
  [[nodiscard]] uint32_t n_held() const { return n_held_.load(std::memory_order_relaxed); }
  [[nodiscard]] uint32_t max_held() const { return static_cast<uint32_t>(held_.size()); }

  Neighbour& operator[](uint32_t index) { return entries_[index]; }
  // kNone when not found.
  [[nodiscard]] uint32_t find(uint16_t interface, const Address& address) const;
  // Adds an unresolved entry. When the table is full, looks at the next few entries for one to
  // evict: not static, no held packets, not used; kNone if there is none.
  uint32_t add(uint16_t interface, const Address& address);
  // The entry must hold no packets.
  void remove(uint32_t index);
  void set_state(uint32_t index, NeighbourState state);
  // Makes the current state of the entry visible to list().
  void publish(uint32_t index);

  // False when max_held_pkts packets are held.
  bool hold(uint32_t index, Packet* pkt);
  [[nodiscard]] Packet* first_held(uint32_t index) const {
    const Neighbour& entry = entries_[index];
    return entry.n_held == 0 ? nullptr : held_[entry.held_first].pkt;
  }
  void pop_held(uint32_t index);

  [[nodiscard]] std::vector<NeighbourView> list() const;

 private:
  struct Held {
    Packet* pkt = nullptr;
    uint32_t next = kNone;
  };
  struct Published {
    std::atomic<uint32_t> version{0};  // odd: being written
    std::atomic<uint64_t> where{0};    // interface, state
    std::atomic<uint64_t> high{0};     // first half of the address
    std::atomic<uint64_t> low{0};
    std::atomic<uint64_t> mac{0};
  };

  [[nodiscard]] uint32_t bucket_of(uint16_t interface, const Address& address) const;
  uint32_t make_room();

  std::vector<Neighbour> entries_;
  std::vector<uint32_t> buckets_;
  std::vector<Held> held_;
  std::unique_ptr<Published[]> published_;
  uint32_t free_entry_ = kNone;
  uint32_t free_held_ = kNone;
  uint32_t size_ = 0;
  uint32_t n_unresolved_ = 0;
  std::atomic<uint32_t> n_held_{0};
  uint32_t hand_ = 0;
};

extern template class NeighbourTableOf<uint32_t>;
extern template class NeighbourTableOf<net::Address6>;

using Neighbour = NeighbourOf<uint32_t>;
using NeighbourView = NeighbourViewOf<uint32_t>;
using NeighbourTable = NeighbourTableOf<uint32_t>;

}  // namespace batchplane
