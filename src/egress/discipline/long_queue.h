// SPDX-License-Identifier: BSD-3-Clause
// long_queue.h - finds a long queue to drop from when the shared store is full, by sampling a few
// queues at a time.
#pragma once

#include <cstdint>

namespace batchplane::egress {

// Keeps no order, so packets cost nothing while there is room. When the store is nearly full, each
// arrival looks at its own queue and a few others in turn, so a flood is found before the store is
// full.
class LongQueue {
 public:
  static constexpr uint32_t kLooks = 4;

  explicit LongQueue(uint32_t flows) : flows_(flows) {}

  // The longest by `length_of` among the last result, the newcomer and kLooks others. After flows /
  // kLooks calls every queue has been looked at. Returns a flow, or the newcomer's number if that
  // was a flow.
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
