// SPDX-License-Identifier: BSD-3-Clause
// unit_loop.h - one loop of an explicitly scheduled task: age limits, timers, then one turn of the input or
// of a unit.
#pragma once

#include <cstdint>

#include "exec/unit_schedule.h"

namespace batchplane::exec {

// Polls inputs in turn until one has packets.
template <class Task, class Context>
uint32_t poll_inputs(Task& task, Context& ctx, uint32_t n_inputs, bool is_sampled) {
  uint32_t polled = 0;
  for (uint32_t i = 0; i < n_inputs && polled == 0; ++i) {
    const uint32_t input = task.next_input;
    task.next_input = input + 1 == n_inputs ? 0 : input + 1;
    polled = task.poll_one(input, ctx, is_sampled);
  }
  return polled;
}

// Requires the same of Task as loop_task. Returns the packets polled or run; 0 = idle.
template <class Task, class Context>
uint32_t loop_units(Task& task, Context& ctx, bool is_idle_hold, bool is_sampled,
                    uint64_t& began_ns) {
  auto& executor = *task.executor;
  if (is_sampled) executor.set_sampling(true);
  began_ns = executor.read_clock();
  executor.settle_charge(began_ns);
  // A move can leave packets at a node that is no unit any more.
  if (!task.leftovers.is_any()) executor.settle_changes();
  executor.check_ages();
  task.housekeep(ctx);
  const uint32_t n_inputs = task.open_inputs(ctx);
  uint32_t n_pkts = 0;
  // While the ring to another task is full, nothing runs that could end in it.
  for (bool with_input = true; n_inputs != 0;) {
    const uint32_t unit = executor.next_unit(with_input);
    if (unit == UnitSchedule::kNobody) break;
    executor.begin_turn(unit);
    n_pkts = unit == UnitSchedule::kInput ? poll_inputs(task, ctx, n_inputs, is_sampled)
                                          : executor.run_unit(unit);
    if (n_pkts != 0) {
      executor.end_turn(unit, began_ns);
      break;
    }
    executor.leave_turn();
    with_input = false;
  }
  if (n_pkts == 0 && !is_idle_hold && n_inputs != 0) executor.release_oldest();
  task.flush(ctx);
  if (is_sampled) executor.set_sampling(false);
  return n_pkts;
}

}  // namespace batchplane::exec
