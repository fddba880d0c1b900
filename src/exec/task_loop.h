// SPDX-License-Identifier: BSD-3-Clause
// task_loop.h - one loop of a task, the same in data plane and simulator: settle changes, check age limits
// and timers, poll once and run the batch, or release an idle buffer.
#pragma once

#include <cstdint>

#include "exec/unit_loop.h"

namespace batchplane::exec {

// Selects the runs to instrument: one in `one_in`.
struct SampleTurn {
  uint32_t countdown = 256;
  uint32_t one_in = 256;
  bool take() {
    if (--countdown != 0) return false;
    countdown = one_in;
    return true;
  }
  // Accounts for loops in which nothing happens, without running them one by one.
  void skip(uint64_t loops) {
    const bool is_power = (one_in & (one_in - 1)) == 0;
    const uint64_t left = is_power ? loops & (one_in - 1) : loops % one_in;
    countdown =
        static_cast<uint32_t>(countdown > left ? countdown - left : countdown + one_in - left);
  }
};

// Task supplies: executor (pointer to an Executor), next_input (position at which polling continues),
// housekeep(ctx), open_inputs(ctx) (0 while backpressure holds, otherwise the number of inputs),
// poll_one(input, ctx, is_sampled) (packets polled and run), flush(ctx) (returns freed packets to the pool).
// Returns the number of packets polled; 0 = idle.
template <class Task, class Context>
uint32_t loop_task(Task& task, Context& ctx, bool is_idle_hold, SampleTurn& sample,
                   uint64_t& began_ns) {
  auto& executor = *task.executor;
  const bool is_sampled = sample.take();
  if (executor.is_scheduled()) [[unlikely]]
    return loop_units(task, ctx, is_idle_hold, is_sampled, began_ns);
  if (is_sampled) executor.set_sampling(true);
  began_ns = executor.read_clock();
  // Packets upstream must not overtake leftovers.
  if (!task.leftovers.is_any()) [[likely]] {
    executor.settle_changes();
    executor.check_ages();
  }
  task.housekeep(ctx);
  const uint32_t n_inputs = task.open_inputs(ctx);
  uint32_t polled = 0;
  for (uint32_t i = 0; i < n_inputs && polled == 0 && executor.may_poll(); ++i) {
    const uint32_t input = task.next_input;
    task.next_input = input + 1 == n_inputs ? 0 : input + 1;
    polled = task.poll_one(input, ctx, is_sampled);
  }
  if (polled == 0) {
    const bool goes_on = n_inputs != 0 && executor.resume();
    if (!goes_on && !is_idle_hold && n_inputs != 0) executor.release_oldest();
    task.flush(ctx);
  }
  if (is_sampled) executor.set_sampling(false);
  return polled;
}

}  // namespace batchplane::exec
