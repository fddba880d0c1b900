// SPDX-License-Identifier: BSD-3-Clause
// queue.h - a bounded ring between two tasks, whose packets bear the time at which they were put
// in.
#pragma once

#include <cstdint>
#include <deque>

#include "sim/packet.h"

namespace batchplane::sim {

// A worker whose clock is behind its producer's sees only what was there at its own time.
class Queue {
 public:
  explicit Queue(uint32_t size_pkts) : size_pkts_(size_pkts) {}

  [[nodiscard]] uint32_t room_pkts() const {
    return size_pkts_ - static_cast<uint32_t>(slots_.size());
  }
  // False when full.
  bool put(Packet* pkt, uint64_t now_ns) {
    if (room_pkts() == 0) return false;
    slots_.push_back({pkt, now_ns});
    return true;
  }
  uint32_t take(Packet** pkts, uint32_t most, uint64_t now_ns) {
    uint32_t n = 0;
    while (n < most && !slots_.empty() && slots_.front().since_ns <= now_ns) {
      pkts[n++] = slots_.front().pkt;
      slots_.pop_front();
    }
    return n;
  }
  // When the next packet can be seen; kNeverNs while empty.
  [[nodiscard]] uint64_t next_ns() const {
    return slots_.empty() ? ~0ULL : slots_.front().since_ns;
  }
  [[nodiscard]] uint64_t held_pkts() const { return slots_.size(); }

 private:
  struct Slot {
    Packet* pkt;
    uint64_t since_ns;
  };
  uint32_t size_pkts_;
  std::deque<Slot> slots_;
};

}  // namespace batchplane::sim
