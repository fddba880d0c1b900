// SPDX-License-Identifier: BSD-3-Clause
// patience.h - waits for another thread without keeping it from running.
#pragma once

#include <chrono>
#include <cstdint>
#include <thread>

namespace batchplane {

// The other thread normally answers within one run; if it does not, the machine has delayed it. Yielding is
// not enough then: a high-priority thread hardly yields to others, and the other thread may be bound to this
// core.
class Patience {
 public:
  void wait() {
    if (tries_ < kYields) {
      ++tries_;
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(kSleep);
    }
  }

 private:
  static constexpr uint32_t kYields = 200;  // about 100 us
  static constexpr std::chrono::microseconds kSleep{50};
  uint32_t tries_ = 0;
};

}  // namespace batchplane
