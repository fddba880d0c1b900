// SPDX-License-Identifier: BSD-3-Clause
// patience.h - waits for another thread without keeping it from running.
#pragma once

#include <chrono>
#include <cstdint>
#include <thread>

namespace batchplane {

// Another thread answers within a run. One that does not was held up by the machine. To yield is not enough
// then: a thread of higher priority yields little to others, and the other may be bound to its core.
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
