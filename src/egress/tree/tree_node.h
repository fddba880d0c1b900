// SPDX-License-Identifier: BSD-3-Clause
// tree_node.h - the memory layout of a tree: one cache line per node, one more for its rates, two
// for the children of an inner node.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>

#include "base/big_array.h"
#include "base/watched.h"
#include "egress/aqm/fq_codel.h"
#include "egress/discipline/pkt_store.h"
#include "egress/tree/time_wheel.h"
#include "egress/tree/tree_params.h"

namespace batchplane::egress {

inline Aqm aqm_of(LeafQueue queue) { return queue == LeafQueue::kPie ? Aqm::kPie : Aqm::kCodel; }

// The list of its parent that a node is in.
enum class Place : uint8_t {
  kOut,    // nothing to send, or not allowed to send now
  kFresh,  // became active in this round with quantum left: goes first
  kEven,   // next turn in a round of even number
  kOdd,    // next turn in a round of odd number
  kGreen,  // it or a node below it is under its minimum rate
};
inline Place turn_in(uint16_t round) { return (round & 1) != 0 ? Place::kOdd : Place::kEven; }

struct alignas(64) TreeNode {
  struct Leaf {
    Leaf() : queue() {}
    union {
      PktQueue queue;
      FqLists connections;
    };
    Watched<uint32_t> backlog_bytes;
    uint32_t limit_bytes = 0;
  };
  // `active` has one bit per priority: set if any excess list has children; green children are 8
  // bits higher.
  struct Inner {
    uint32_t n_children = 0;
    uint16_t active = 0;
    std::array<uint16_t, kPriorities> rounds{};
  };

  TreeNode() : leaf() {}
  // Resets a leaf without packets, or an inner node without children; it then has no parent.
  void forget(bool is_inner) noexcept;
  union {
    Leaf leaf;
    Inner inner;
  };
  Watched<uint32_t> backlog_pkts;
  uint32_t next = kNone;
  uint32_t before = kNone;
  uint32_t parent = kNone;
  uint32_t shaper = kNone;
  int32_t credit_bytes = 0;
  uint16_t weight = 0;
  uint16_t round = 0;  // round of its last quantum
  uint8_t priority = 0;
  Place place = Place::kOut;
  LeafQueue queue = LeafQueue::kFifo;
  LeafQueue wanted_queue = LeafQueue::kFifo;  // takes effect once the leaf is empty
};
static_assert(sizeof(TreeNode) == 64);

// Does not write a leaf's backlog: other threads may be reading it, and it is 0 already.
inline void TreeNode::forget(bool is_inner) noexcept {
  if (is_inner) {
    std::construct_at(&inner);
  } else {
    std::construct_at(&leaf.queue);
    leaf.limit_bytes = 0;
  }
  next = before = parent = shaper = kNone;
  credit_bytes = 0;
  weight = round = 0;
  priority = 0;
  place = Place::kOut;
  queue = wanted_queue = LeafQueue::kFifo;
}

inline constexpr uint16_t kGreenBits = 0xff00;
inline uint16_t bit_of(Place place, uint8_t priority) {
  return static_cast<uint16_t>(1U << (place == Place::kGreen ? priority + kPriorities : priority));
}

// The children of one priority: the first of each list. Lists are rings.
struct ChildLists {
  std::array<uint32_t, 4> first{kNone, kNone, kNone, kNone};  // by place, without kOut

  uint32_t& of(Place place) { return first[static_cast<size_t>(place) - 1]; }
  [[nodiscard]] bool has_excess() const { return (first[0] & first[1] & first[2]) != kNone; }
};

// The rates of a node that has any.
struct alignas(64) Shaper {
  enum class Waits : uint8_t { kNot, kForCeil, kForMin };

  Pace ceil;
  Pace min;
  uint32_t burst_ns = 0;
  WheelLink wheel;
  uint32_t node = kNone;
  Waits waits = Waits::kNot;

  // Time from which its ceiling lets a packet through.
  [[nodiscard]] uint64_t ceil_due_ns() const {
    const uint64_t paid_at_ns = ceil.paid_at_ns();
    return paid_at_ns - std::min<uint64_t>(paid_at_ns, burst_ns);
  }
  // Bytes that it may send now before its ceiling stops it.
  [[nodiscard]] uint64_t room_bytes(uint64_t now_ns) const {
    return ceil.bytes_until(now_ns + burst_ns, now_ns);
  }
};
static_assert(sizeof(Shaper) == 64);

// Data of an inner node besides its own line.
struct InnerData {
  Shaper shaper;
  std::array<ChildLists, kPriorities> children;
};

// Extra data of inner nodes, by node - leaves; and the shapers: first those of inner nodes, then
// those of leaves.
class TreeRates {
 public:
  TreeRates(const TreeCapacity& capacity, uint32_t step_bytes)
      : first_inner_(capacity.leaves),
        step_bytes_(step_bytes),
        min_step_ns_(capacity.min_step_ns()),
        inner_(capacity.inner_nodes),
        leaves_(capacity.shaped_leaves) {}

  InnerData& inner(uint32_t node) { return inner_[node - first_inner_]; }
  Shaper& operator[](uint32_t shaper) {
    return shaper < inner_.size() ? inner_[shaper].shaper : leaves_[shaper - inner_.size()];
  }
  const Shaper& operator[](uint32_t shaper) const {
    return shaper < inner_.size() ? inner_[shaper].shaper : leaves_[shaper - inner_.size()];
  }

  void prefetch(uint32_t inner_node, uint8_t priority) const noexcept {
    const InnerData& inner = inner_[inner_node - first_inner_];
    __builtin_prefetch(&inner.shaper, 1);
    __builtin_prefetch(&inner.children[priority], 1);
  }

  // When a waiting shaper is due.
  [[nodiscard]] uint64_t due_ns(uint32_t shaper) const {
    const Shaper& at = (*this)[shaper];
    if (at.waits == Shaper::Waits::kForCeil) return at.ceil_due_ns();
    return at.min.paid_at_ns() + std::min(at.min.time_of_ns(step_bytes_), min_step_ns_);
  }

 private:
  uint32_t first_inner_;
  uint32_t step_bytes_;
  uint64_t min_step_ns_;
  BigArray<InnerData> inner_;
  BigArray<Shaper> leaves_;
};

}  // namespace batchplane::egress
