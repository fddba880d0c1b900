// SPDX-License-Identifier: BSD-3-Clause
// spsc_ring.h - a single-producer, single-consumer ring; never blocks, has exact capacity, and a credit can
// limit it further while packets move.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <limits>
#include <memory>
#include <type_traits>

#include "base/ring_fill.h"

namespace batchplane {

// Owner of produce/free_slots: the producer. Owner of consume/peek: the consumer. size(): any thread. Indices
// only grow; each side caches the other's index and reads the shared one only when the cached one says full
// or empty, so that the index's cache line moves between the cores once per burst. To tell how full the ring
// is, the consumer reads it now and then (RingFill::due).
template <class Slot>
class SpscRing {
  static_assert(std::is_trivially_copyable_v<Slot>);

 public:
  explicit SpscRing(uint32_t capacity)
      : capacity_(std::max(capacity, 1U)),
        credit_(capacity_),
        mask_(std::bit_ceil(capacity_) - 1),
        slots_(new(std::align_val_t{64}) Slot[mask_ + 1]()) {}

  // write(i, slot) for i in 0..k-1, where k = min(n, free slots); returns k.
  template <class Write>
  uint32_t produce(uint32_t n, Write&& write) {
    const uint64_t tail = tail_.load(std::memory_order_relaxed);
    if (room(tail) < n) seen_head_ = head_.load(std::memory_order_acquire);
    const uint32_t k = std::min(n, room(tail));
    Slot* const slots = slots_.get();
    for (uint32_t i = 0; i < k; ++i) write(i, slots[(tail + i) & mask_]);
    tail_.store(tail + k, std::memory_order_release);
    return k;
  }
  uint32_t enqueue(const Slot* from, uint32_t n) {
    return produce(n, [from](uint32_t i, Slot& slot) { slot = from[i]; });
  }
  // Slots that were free when the consumer's index was last read: that is now, unless at least `enough` were.
  [[nodiscard]] uint32_t free_slots(uint32_t enough = std::numeric_limits<uint32_t>::max()) {
    const uint64_t tail = tail_.load(std::memory_order_relaxed);
    if (room(tail) < enough) seen_head_ = head_.load(std::memory_order_acquire);
    return room(tail);
  }

  // read(i, slot) for i in 0..k-1, where k = min(max, filled slots); returns k.
  template <class Read>
  uint32_t consume(uint32_t max, Read&& read) {
    const uint64_t head = head_.load(std::memory_order_relaxed);
    if (seen_tail_ - head < max) {
      look_at_tail();
      fill_.look(seen_tail_ - head);
    } else if (const uint32_t polls = fill_.due(); polls != 0) {
      look_at_tail();
      fill_.look(seen_tail_ - head, polls);
    }
    const auto k = static_cast<uint32_t>(std::min<uint64_t>(max, seen_tail_ - head));
    const Slot* const slots = slots_.get();
    for (uint32_t i = 0; i < k; ++i) read(i, slots[(head + i) & mask_]);
    if (k != 0) head_.store(head + k, std::memory_order_release);
    return k;
  }
  uint32_t dequeue(Slot* to, uint32_t max) {
    return consume(max, [to](uint32_t i, const Slot& slot) { to[i] = slot; });
  }
  // look(slot) for up to `max` of the filled slots that the next consume will read, for prefetching. Their
  // lines are requested together, before the first is read.
  template <class Look>
  void peek(uint32_t max, Look&& look) {
    const uint64_t head = head_.load(std::memory_order_relaxed);
    if (seen_tail_ - head < max) look_at_tail();
    const auto k = static_cast<uint32_t>(std::min<uint64_t>(max, seen_tail_ - head));
    const Slot* const slots = slots_.get();
    for (uint32_t i = 0; i < k; i += kSlotsPerLine) __builtin_prefetch(&slots[(head + i) & mask_]);
    for (uint32_t i = 0; i < k; ++i) look(slots[(head + i) & mask_]);
  }

  [[nodiscard]] uint32_t capacity() const { return capacity_; }
  // Limits the filled slots to `slots`, 1 to capacity; packets beyond that stay. Any thread.
  void set_credit(uint32_t slots) {
    credit_.store(std::clamp(slots, 1U, capacity_), std::memory_order_relaxed);
  }
  // Fill levels that polls found. Consumer.
  [[nodiscard]] const RingFill& fill() const { return fill_; }
  void begin_fill_period() { fill_.begin_period(); }
  // Slots ever filled, and ever emptied: exact when read by the producer or the consumer, respectively.
  [[nodiscard]] uint64_t produced() const { return tail_.load(std::memory_order_acquire); }
  [[nodiscard]] uint64_t consumed() const { return head_.load(std::memory_order_acquire); }
  // Reads head first: a tail read later is never behind it. May be off by packets that move meanwhile.
  [[nodiscard]] uint32_t size() const {
    const uint64_t head = head_.load(std::memory_order_acquire);
    const uint64_t tail = tail_.load(std::memory_order_acquire);
    return static_cast<uint32_t>(std::min<uint64_t>(tail - head, capacity_));
  }

 private:
  [[nodiscard]] uint32_t room(uint64_t tail) const {
    const auto filled = static_cast<uint32_t>(tail - seen_head_);
    const uint32_t credit = credit_.load(std::memory_order_relaxed);
    return credit - std::min(credit, filled);
  }
  void look_at_tail() { seen_tail_ = tail_.load(std::memory_order_acquire); }

  static constexpr uint32_t kSlotsPerLine = std::max<uint32_t>(64 / sizeof(Slot), 1);

  struct FreeSlots {
    void operator()(Slot* p) const { ::operator delete[](p, std::align_val_t{64}); }
  };

  const uint32_t capacity_;
  std::atomic<uint32_t> credit_;
  const uint32_t mask_;
  const std::unique_ptr<Slot[], FreeSlots> slots_;
  alignas(128) std::atomic<uint64_t> tail_{0};  // 128: the CPU prefetches lines in pairs
  uint64_t seen_head_ = 0;
  alignas(128) std::atomic<uint64_t> head_{0};
  uint64_t seen_tail_ = 0;
  RingFill fill_;
};

}  // namespace batchplane
