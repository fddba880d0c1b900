// SPDX-License-Identifier: BSD-3-Clause
// long_queue.h - who has a long queue, for when all queues together are full: found by looking at a few at a time.
#pragma once

#include <cstdint>

namespace batchplane::egress {

// Nothing is kept in order, so that packets cost nothing while there is room. Those who come to the last of it are
// looked at, and with each of them a few others in turn: a flood is known before all is full.
class LongQueue {
 public:
  static constexpr uint32_t kLooks = 4;

  explicit LongQueue(uint32_t flows) : flows_(flows) {}

  // By `length_of`, the longest among that of the last call, the newcomer's and kLooks more. After flows / kLooks calls
  // every queue has been met. What is returned is a flow, or what the newcomer was called when it was one.
  template <class Length>
  uint32_t find(uint32_t newcomer, Length&& length_of) noexcept {
    auto most = length_of(long_);
    const auto look = [&](uint32_t flow) {
      const auto length = length_of(flow);
      if (length <= most) return;
      most = length;
      long_ = flow;
    };
    look(newcomer);
    for (uint32_t k = 0; k < kLooks; ++k) {
      looked_at_ = looked_at_ + 1 >= flows_ ? 0 : looked_at_ + 1;
      look(looked_at_);
    }
    return long_;
  }

 private:
  uint32_t flows_;
  uint32_t looked_at_ = 0;
  uint32_t long_ = 0;
};

}  // namespace batchplane::egress
