// SPDX-License-Identifier: BSD-3-Clause
// slot_mailbox.h - a mailbox for clients that hand over one packet at a time, as in PSPAT.
//
// No index is shared: each slot shows by itself whether it holds a packet. The client checks only
// the slot one line ahead, once per line, so one line always stays empty. The arbiter frees whole
// lines at the end of a round, so the two never write the same line at the same time.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>

#include "egress/discipline/descriptor.h"

namespace batchplane::egress {

class SlotMailbox {
 public:
  static constexpr uint32_t kSlotsPerLine = 8;  // 128 bytes: lines are fetched in pairs

  // Capacity: `slots` (rounded up to a power of two, at least two lines) minus one line.
  explicit SlotMailbox(uint32_t slots)
      : mask_(std::bit_ceil(std::max(slots, 2 * kSlotsPerLine)) - 1),
        slots_(std::make_unique<Line[]>((mask_ + 1) / kSlotsPerLine)) {}

  [[nodiscard]] uint32_t capacity_pkts() const { return mask_ + 1 - kSlotsPerLine; }

  // Client. False: full.
  bool put(const Descriptor& pkt) noexcept {
    if (write_ == checked_) {
      if (slot(checked_ + kSlotsPerLine).word.load(std::memory_order_acquire) != 0) return false;
      checked_ += kSlotsPerLine;
    }
    Slot& to = slot(write_++);
    to.flow = pkt.flow;
    to.entry_ticks = pkt.entry_ticks;
    to.word.store(pkt.handle_and_len, std::memory_order_release);
    return true;
  }
  uint32_t put(const Descriptor* pkts, uint32_t n) noexcept {
    uint32_t k = 0;
    while (k < n && put(pkts[k])) ++k;
    return k;
  }

  // Arbiter.
  uint32_t take(Descriptor* pkts, uint32_t max) noexcept {
    uint32_t n = 0;
    for (; n < max; ++n, ++read_) {
      const Slot& from = slot(read_);
      const uint64_t word = from.word.load(std::memory_order_acquire);
      if (word == 0) break;
      pkts[n] = {word, from.flow, from.entry_ticks};
    }
    return n;
  }
  // Frees the slots taken, except for the line being read. Called once per round.
  void clear() noexcept {
    const uint64_t end = read_ & ~uint64_t{kSlotsPerLine - 1};
    for (; cleared_ < end; ++cleared_) slot(cleared_).word.store(0, std::memory_order_release);
  }
  [[nodiscard]] bool is_empty() const noexcept {
    return slot(read_).word.load(std::memory_order_acquire) == 0;
  }
  [[nodiscard]] uint64_t taken_pkts() const { return read_; }
  [[nodiscard]] uint64_t put_pkts() const { return write_; }

 private:
  struct Slot {
    std::atomic<uint64_t> word{0};
    uint32_t flow = 0;
    uint32_t entry_ticks = 0;
  };
  struct alignas(128) Line {
    Slot slots[kSlotsPerLine];
  };
  [[nodiscard]] Slot& slot(uint64_t at) const {
    return slots_[(at & mask_) / kSlotsPerLine].slots[at % kSlotsPerLine];
  }

  const uint32_t mask_;
  const std::unique_ptr<Line[]> slots_;
  alignas(128) uint64_t write_ = 0;
  uint64_t checked_ = 0;
  alignas(128) uint64_t read_ = 0;
  uint64_t cleared_ = 0;
};

}  // namespace batchplane::egress
