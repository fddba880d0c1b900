// SPDX-License-Identifier: BSD-3-Clause
// qfq_groups.h - the order of QFQ: finds the next of any number of flows in constant time.
//
// Flows whose longest packet takes about as long in virtual time form a group; sigma = 2^shift is
// that time, rounded up to a power of two. Within a group flows lie in slots of sigma by their start,
// rounded down. A group is eligible when its first slot has begun, and blocked while an eligible
// group of longer packets finishes before it. Groups are kept in four sets by these two properties,
// as bitmaps; among groups that are eligible and not blocked, the lowest finishes first.
// (F. Checconi, L. Rizzo, P. Valente: QFQ, IEEE/ACM ToN 2013.)
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "egress/discipline/virtual_time.h"

namespace batchplane::egress {

// QFQ's state of a flow, or of an aggregate of flows.
struct QfqTimes {
  static constexpr uint32_t kNobody = ~0U;

  uint64_t start = 0;
  uint64_t finish = 0;
  uint64_t inverse_weight : 42 = 0;
  uint64_t group : 6 = 0;
  uint64_t lmax_bytes : 16 = 0;  // stored here so that a flow is one cache line
  uint32_t next = kNobody;       // in its slot
  uint32_t before = kNobody;

  void set_rate(uint64_t inverse, uint32_t group_index) {
    inverse_weight = inverse & ((1ULL << 42) - 1);
    group = group_index & 63;
  }
};

// `Table` maps a number to an object that derives from QfqTimes. Owner: one discipline.
template <class Table>
class QfqGroups {
 public:
  // A longest packet of 64 bytes with weight 65536 takes 2^30 of virtual time, one of 65535 bytes
  // with weight 1 2^56.
  static constexpr uint32_t kMinShift = 30;
  static constexpr uint32_t kGroups = 28;
  static constexpr uint32_t kSlots = 32;

  explicit QfqGroups(uint64_t virtual_time) : virtual_time_(virtual_time) {}

  [[nodiscard]] uint64_t virtual_time() const { return virtual_time_; }
  void set_weight_sum(uint64_t sum) { inverse_sum_ = inverse_of_weight(sum); }
  // Virtual time advances as the link sends len_bytes, so other groups may become eligible.
  void advance(uint32_t len_bytes) noexcept {
    const uint64_t before = virtual_time_;
    virtual_time_ += len_bytes * inverse_sum_;
    let_begin(before, virtual_time_);
  }

  // Group of a flow whose longest packet takes `longest` in virtual time.
  static uint32_t group_of(uint64_t longest) {
    const auto shift = static_cast<uint32_t>(std::bit_width(longest - 1));
    return shift <= kMinShift ? 0 : shift - kMinShift;
  }

  // Start of a flow that was idle: its last finish, but no earlier than now. A finish too far ahead
  // dates from before virtual time wrapped, or from a group with shorter slots.
  [[nodiscard]] uint64_t start_of_idle(const QfqTimes& times) const noexcept {
    const uint64_t sigma = sigma_of(times.group);
    if (!is_later(times.finish, virtual_time_)) return virtual_time_;
    const uint64_t limit = (virtual_time_ & ~(sigma - 1)) + sigma;
    if (!is_later(times.finish & ~(sigma - 1), limit)) return times.finish;
    const uint64_t longer = sets_[kReady] & ~((2ULL << times.group) - 1);
    if (longer == 0) return limit;
    return earlier_of(limit, groups_[static_cast<uint32_t>(std::countr_zero(longer))].finish);
  }

  // Inserts a flow that has a start and is not in the order.
  void insert(Table& table, uint32_t id) noexcept;
  // The next flow; kNobody if there is none. Virtual time jumps ahead if no flow has started.
  uint32_t first() noexcept;
  // Moves the flow that first() returned to its new place after its start moved on.
  void settle_first(Table& table, uint32_t id) noexcept;
  // Removes the flow that first() returned.
  void erase_first(Table& table, uint32_t id) noexcept;
  // Removes a flow anywhere in the order. Slower than the others; for changes of flows.
  void erase(Table& table, uint32_t id) noexcept;
  void prefetch_first(const Table& table) const noexcept {
    if (sets_[kReady] == 0) return;
    const Group& group = groups_[static_cast<uint32_t>(std::countr_zero(sets_[kReady]))];
    table.prefetch(group.slots[group.front].first);
  }

 private:
  // Sets: bit 0 is set for groups that have not begun, bit 1 for blocked ones.
  static constexpr uint32_t kReady = 0;
  static constexpr uint32_t kWaiting = 1;
  static constexpr uint32_t kBlocked = 2;
  static constexpr uint32_t kWaitingBlocked = 3;
  struct Slot {
    uint32_t first = QfqTimes::kNobody;
    uint32_t last = QfqTimes::kNobody;
  };
  struct Group {
    uint64_t start = 0;   // of the first slot
    uint64_t finish = 0;  // start + 2 sigma
    uint32_t full = 0;    // bit k: the k-th slot from the front is not empty
    uint32_t front = 0;
    std::array<Slot, kSlots> slots;
  };

  static uint64_t sigma_of(uint64_t group) { return 1ULL << (kMinShift + group); }
  static uint64_t rounded(uint64_t time, uint64_t group) { return time & ~(sigma_of(group) - 1); }

  void begin_at(Group& group, uint32_t index, uint64_t start) noexcept {
    group.start = start;
    group.finish = start + 2 * sigma_of(index);
  }
  // The set of a group, given the groups above it.
  [[nodiscard]] uint32_t set_of(const Group& group, uint32_t index) const noexcept {
    const uint32_t is_waiting = is_later(group.start, virtual_time_) ? kWaiting : 0;
    const uint64_t above = sets_[kReady] & ~((2ULL << index) - 1);
    if (above == 0) return is_waiting;
    const Group& next = groups_[static_cast<uint32_t>(std::countr_zero(above))];
    return is_waiting | (is_later(group.finish, next.finish) ? kBlocked : 0);
  }
  void put_in_set(uint32_t index) noexcept {
    sets_[set_of(groups_[index], index)] |= 1ULL << index;
  }
  void move(uint64_t mask, uint32_t from, uint32_t to) noexcept {
    sets_[to] |= sets_[from] & mask;
    sets_[from] &= ~mask;
  }

  void append(Table& table, uint32_t index, uint32_t id) noexcept;
  void unlink(Table& table, Group& group, uint32_t slot, uint32_t id) noexcept;
  void after_front_changed(uint32_t index) noexcept;
  void let_begin(uint64_t from, uint64_t to) noexcept;
  void sort_all() noexcept;

  std::array<uint64_t, 4> sets_{};
  uint64_t virtual_time_;
  uint64_t inverse_sum_ = 0;
  std::array<Group, kGroups> groups_;
};

}  // namespace batchplane::egress

#include "egress/discipline/qfq_groups.inl"
