// SPDX-License-Identifier: BSD-3-Clause
// slots.h - the packets in a ring between tasks, oldest first, each with the time at which it was put in.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/packet.h"

namespace batchplane::sim {

struct Slot {
  Packet* pkt = nullptr;
  uint64_t since_ns = 0;
};

// Grows with the most packets that it ever held, so that packets pass through without allocation.
class Slots {
 public:
  [[nodiscard]] size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] const Slot& front() const { return slots_[head_]; }
  [[nodiscard]] const Slot& operator[](size_t i) const { return slots_[(head_ + i) & mask_]; }
  void push_back(const Slot& slot) {
    if (size_ == slots_.size()) grow();
    slots_[(head_ + size_++) & mask_] = slot;
  }
  void pop_front() {
    head_ = (head_ + 1) & mask_;
    --size_;
  }
  void clear() { size_ = 0; }

 private:
  void grow() {
    std::vector<Slot> grown(slots_.empty() ? 4 : 2 * slots_.size());
    for (size_t i = 0; i < size_; ++i) grown[i] = (*this)[i];
    slots_ = std::move(grown);
    mask_ = slots_.size() - 1;
    head_ = 0;
  }

  std::vector<Slot> slots_;  // a power of two
  size_t mask_ = 0;
  size_t head_ = 0;
  size_t size_ = 0;
};

}  // namespace batchplane::sim
