// SPDX-License-Identifier: BSD-3-Clause
// time_wheel.h - a timing wheel: inserts, removes and finds items in constant time, exact to the
// nanosecond.
//
// Two wheels of 4096 slots: slots of 1.024 us for the next 4.2 ms, and of 4.2 ms for the next 17 s.
// Items due later come out at the end of the wheel and are inserted again.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "egress/discipline/flow_set.h"

namespace batchplane::egress {

// Embedded in each item.
struct WheelLink {
  uint32_t next = kNone;
  uint32_t before = kNone;
  uint32_t slot = kNone;  // kNone: not in the wheel
};

// One bit per slot, and one bit per word of these.
class SlotBits {
 public:
  static constexpr uint32_t kSlots = 4096;

  void set(uint32_t slot) {
    words_[slot / 64] |= 1ULL << slot % 64;
    summary_ |= 1ULL << slot / 64;
  }
  void clear(uint32_t slot) {
    words_[slot / 64] &= ~(1ULL << slot % 64);
    if (words_[slot / 64] == 0) summary_ &= ~(1ULL << slot / 64);
  }
  // Slots from `from` (included) to the first slot set; kSlots: none.
  [[nodiscard]] uint32_t distance_from(uint32_t from) const {
    if (summary_ == 0) return kSlots;
    const uint64_t here = words_[from / 64] >> from % 64;
    if (here != 0) return static_cast<uint32_t>(std::countr_zero(here));
    // Search the words after `from`'s, round the wheel; its own word comes last.
    const uint64_t turned = std::rotr(summary_, static_cast<int>(from / 64 + 1));
    const uint32_t word = (from / 64 + 1 + static_cast<uint32_t>(std::countr_zero(turned))) % 64;
    const uint32_t slot = word * 64 + static_cast<uint32_t>(std::countr_zero(words_[word]));
    return (slot - from) % kSlots;
  }

 private:
  std::array<uint64_t, kSlots / 64> words_{};
  uint64_t summary_ = 0;
};

// `items[i].wheel` is a WheelLink; `items.due_ns(i)` is its due time, which may move later while
// the item waits, but never earlier.
template <class Items>
class TimeWheel {
 public:
  static constexpr uint64_t kNever = ~0ULL;

  TimeWheel() { first_.fill(kNone); }

  void put(Items& items, uint32_t item) {
    const uint64_t due_ns = items.due_ns(item);
    const uint64_t fine = std::max(due_ns, now_ns_) >> kFineShift;
    if (fine - (now_ns_ >> kFineShift) < kSlots) {
      quiet_until_ns_ = std::min(quiet_until_ns_, due_ns);
      link(items, item, static_cast<uint32_t>(fine % kSlots));
      return;
    }
    const uint64_t farthest = (now_ns_ >> kCoarseShift) + kSlots - 1;
    const uint64_t coarse = std::min(due_ns >> kCoarseShift, farthest);
    quiet_until_ns_ = std::min(quiet_until_ns_, coarse << kCoarseShift);
    link(items, item, kSlots + static_cast<uint32_t>(coarse % kSlots));
  }
  void take_out(Items& items, uint32_t item) {
    WheelLink& at = items[item].wheel;
    if (at.next != kNone) items[at.next].wheel.before = at.before;
    if (at.before != kNone) {
      items[at.before].wheel.next = at.next;
    } else {
      first_[at.slot] = at.next;
      if (at.next == kNone && at.slot != kReady) bits_of(at.slot).clear(at.slot % kSlots);
    }
    at = {};
  }

  // Calls ready(item) for each item due by now, after removing it. The call may insert and remove
  // any item.
  template <class Ready>
  void advance(Items& items, uint64_t now_ns, Ready&& ready) {
    if (now_ns <= now_ns_) return;
    const uint64_t before_ns = now_ns_;
    now_ns_ = now_ns;
    if (now_ns < quiet_until_ns_) return;
    quiet_until_ns_ = kNever;
    empty_until(items, 0, before_ns >> kFineShift, now_ns >> kFineShift);
    empty_until(items, kSlots, before_ns >> kCoarseShift, now_ns >> kCoarseShift);
    while (first_[kReady] != kNone) {
      const uint32_t item = first_[kReady];
      take_out(items, item);
      ready(item);
    }
    quiet_until_ns_ = next_due_ns(items);
  }
  // Next due time; may be early if that is milliseconds away or has been moved later.
  [[nodiscard]] uint64_t next_due_ns(const Items& items) const {
    uint64_t next_ns = kNever;
    const uint64_t fine = now_ns_ >> kFineShift;
    const uint32_t far = fine_.distance_from(fine % kSlots);
    if (far < kSlots) {
      next_ns = (fine + far + 1) << kFineShift;
      for (uint32_t i = first_[(fine + far) % kSlots]; i != kNone; i = items[i].wheel.next) {
        next_ns = std::min(next_ns, items.due_ns(i));
      }
    }
    const uint64_t coarse = now_ns_ >> kCoarseShift;
    const uint32_t farther = coarse_.distance_from(coarse % kSlots);
    if (farther == kSlots) return next_ns;
    return std::min(next_ns, (coarse + farther) << kCoarseShift);
  }

 private:
  static constexpr uint32_t kSlots = SlotBits::kSlots;
  static constexpr uint32_t kReady = 2 * kSlots;
  static constexpr uint32_t kFineShift = 10;
  static constexpr uint32_t kCoarseShift = 22;

  SlotBits& bits_of(uint32_t slot) { return slot < kSlots ? fine_ : coarse_; }
  void link(Items& items, uint32_t item, uint32_t slot) {
    WheelLink& at = items[item].wheel;
    at = {.next = first_[slot], .slot = slot};
    if (at.next != kNone) items[at.next].wheel.before = item;
    first_[slot] = item;
    if (slot != kReady) bits_of(slot).set(slot % kSlots);
  }
  // Empties all slots between two times, at most one turn of the wheel.
  void empty_until(Items& items, uint32_t base, uint64_t from, uint64_t until) {
    const SlotBits& bits = base == 0 ? fine_ : coarse_;
    const uint64_t last = std::min(until, from + kSlots - 1);
    for (uint64_t at = from; at <= last; ++at) {
      at += bits.distance_from(at % kSlots);
      if (at > last) return;
      empty(items, base + static_cast<uint32_t>(at % kSlots));
    }
  }
  // Items that are not due yet go back in, into the same slot or a finer one.
  void empty(Items& items, uint32_t slot) {
    uint32_t item = first_[slot];
    first_[slot] = kNone;
    bits_of(slot).clear(slot % kSlots);
    while (item != kNone) {
      const uint32_t next = items[item].wheel.next;
      if (items.due_ns(item) <= now_ns_) {
        link(items, item, kReady);
      } else {
        put(items, item);
      }
      item = next;
    }
  }

  SlotBits fine_;
  SlotBits coarse_;
  std::array<uint32_t, kReady + 1> first_{};
  uint64_t now_ns_ = 0;
  uint64_t quiet_until_ns_ = kNever;  // no item is due before
};

}  // namespace batchplane::egress
