// SPDX-License-Identifier: BSD-3-Clause
// worker.h - one simulated core: its clock, its tasks, and how often it would have polled while
// idle.
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

// Number of whole steps in a time. Steps rarely change their length, so the reciprocal is kept: a
// division takes as long as the rest of a jump.
class StepCount {
 public:
  [[nodiscard]] uint64_t in(uint64_t ticks, uint64_t step_ticks) {
    if (step_ticks != step_ticks_) [[unlikely]] {
      step_ticks_ = step_ticks;
      per_tick_ = 1.0 / static_cast<double>(step_ticks);
    }
    // Beyond this, rounding could be off by more than one.
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

// Its clock is at most one loop ahead of the others'. If it is idle, its clock stays behind: the
// loops in which nothing happens are booked all at once, before the next one that may matter.
struct Worker {
  Context ctx;
  std::vector<Task*> tasks;
  bool is_any_scheduled = false;  // of the tasks
  uint32_t full_poll_pkts = 0;    // after as many there are most likely more
  exec::SampleTurn sample;
  exec::WorkerStats stats;
  std::unique_ptr<exec::FlowMeter> meter;
  exec::LoopTimes loop_times;
  exec::LoopTimes period_loop_times;  // at the end of the last period
  uint64_t period_gaps = 0;           // likewise
  uint64_t period_gap_ns = 0;
  uint64_t idle_polls = 0;
  uint64_t last_loop_ns = 0;
  uint64_t gap_in_loop_ns = 0;  // since then
  bool was_busy = false;
  StepCount idle_steps;
  uint64_t idle_loops = 0;  // that are not booked yet
  Stalls stalls;

  // Length of a loop in which nothing happens; each task reads the clock.
  [[nodiscard]] uint64_t idle_step_ticks() const {
    return to_ticks(ctx.loop.empty_poll_ns) + read_ticks();
  }
  [[nodiscard]] uint64_t read_ticks() const { return ctx.clock.read_ticks * tasks.size(); }
};

}  // namespace batchplane::sim
