// SPDX-License-Identifier: BSD-3-Clause
// timed_loop.h - a worker's loop whose every round is timed, and what a table's swap costs in it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>

#include "common/engine_bench.h"

namespace bench {

// What one stretch of loops was like.
struct Stretch {
  uint64_t loops = 0;
  uint64_t pkts = 0;
  uint64_t longest_ns = 0;  // of the loops without a switch
  uint64_t preempted = 0;
  uint64_t control_ns = 0;
  uint64_t length_ns = 0;
  uint64_t swaps = 0;           // seen by the probes
  bool has_clean_swap = false;  // one that no switch of the kernel falls into
  double swap_extra_ns = 0;     // its loops, more than those before
  double swap_loop_ns = 0;      // the longest of them, more than the median before
  [[nodiscard]] double mpps() const {
    return static_cast<double>(pkts) * 1e3 / static_cast<double>(std::max<uint64_t>(length_ns, 1));
  }
};

// The worker's loop on a thread of its own, told apart into stretches by the control thread. `way`
// changes, on that thread, when a new table comes into force.
class TimedLoop {
 public:
  TimedLoop(EngineBench& contender, int core, const uint64_t* way)
      : engine_(contender.engine()), way_(way), thread_([this, core] { run(core); }) {
    while (seen_.load(std::memory_order_acquire) == 0) std::this_thread::yield();
  }
  ~TimedLoop() {
    wanted_.store(kEnd, std::memory_order_release);
    if (thread_.joinable()) thread_.join();
  }

  // The stretch that ends here; the next one begins.
  Stretch cut() {
    const uint64_t turn = wanted_.load(std::memory_order_relaxed) + 1;
    wanted_.store(turn, std::memory_order_release);
    while (seen_.load(std::memory_order_acquire) != turn) std::this_thread::yield();
    return done_;
  }

 private:
  static constexpr uint64_t kEnd = ~0ULL;

  void run(int core);
  Stretch loop_until_turn_ends(batchplane::Worker& worker, uint64_t turn);

  batchplane::Engine& engine_;
  const uint64_t* way_;
  std::atomic<uint64_t> wanted_{1};
  std::atomic<uint64_t> seen_{0};
  Stretch done_;  // handed over with seen_
  std::thread thread_;
};

}  // namespace bench
