// SPDX-License-Identifier: BSD-3-Clause
// give_way.h - for threads that poll on cores which are not theirs alone.
#pragma once

#include <chrono>
#include <cstdint>
#include <thread>

#include "base/timer_slack.h"

namespace batchplane {

// Leaves the core to others that wait for it. To yield alone is not enough: each call moves a thread on by a whole
// slice in Linux' account of who has run how much. Calls by the million make that account useless, and a thread
// that only yields was seen to keep its core for seconds to minutes from all others, the kernel's own threads
// among them (6.18). While it sleeps, whoever waits runs, and it begins anew.
class GiveWay {
 public:
  // By the thread that will poll.
  GiveWay() { wake_to_the_microsecond(); }

  void to_others(uint64_t now_ns) {
    if (now_ns - slept_ns_ < kMostYieldedNs) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(kSleep);
      slept_ns_ = now_ns;
    }
  }

 private:
  static constexpr uint64_t kMostYieldedNs = 20'000'000;
  static constexpr std::chrono::microseconds kSleep{1};
  uint64_t slept_ns_ = 0;
};

}  // namespace batchplane
