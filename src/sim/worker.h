// SPDX-License-Identifier: BSD-3-Clause
// worker.h - one simulated core: its clock, the tasks that it loops, and how often an idle one
// would have looked.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "exec/loop_times.h"
#include "exec/snapshot.h"
#include "exec/task_loop.h"
#include "sim/graph.h"
#include "sim/stalls.h"

namespace batchplane::sim {

// How many whole steps a time takes. A step keeps its length for long: its reciprocal is kept,
// since a division takes as long as the rest of a jump.
class StepCount {
 public:
  [[nodiscard]] uint64_t in(uint64_t ticks, uint64_t step_ticks) {
    if (step_ticks != step_ticks_) [[unlikely]] {
      step_ticks_ = step_ticks;
      per_tick_ = 1.0 / static_cast<double>(step_ticks);
    }
    // Beyond this rounding could miss by more than one.
    if (ticks >= 1ULL << 50) [[unlikely]]
      return (ticks - 1) / step_ticks + 1;
    auto steps = static_cast<uint64_t>(static_cast<double>(ticks) * per_tick_);
    steps -= static_cast<uint64_t>(steps * step_ticks > ticks);
    return steps + static_cast<uint64_t>(steps * step_ticks < ticks);
  }

 private:
  uint64_t step_ticks_ = 0;
  double per_tick_ = 0;
};

// Its clock runs ahead of those of others by one loop at most.
struct Worker {
  Context ctx;
  std::vector<Task*> tasks;
  exec::SampleTurn sample;
  exec::WorkerStats stats;
  std::unique_ptr<exec::FlowMeter> meter;
  exec::LoopTimes loop_times;
  exec::LoopTimes period_loop_times;  // as of the last period
  uint64_t period_gaps = 0;           // so, too
  uint64_t period_gap_ns = 0;
  uint64_t idle_polls = 0;
  uint64_t last_loop_ns = 0;
  bool was_busy = false;
  StepCount idle_steps;
  Stalls stalls;
};

}  // namespace batchplane::sim
