// SPDX-License-Identifier: BSD-3-Clause
// simulation_loop.cc - advances virtual time: the worker that is furthest behind runs the engine's
// loop, and jumps over loops in which nothing can happen.
#include <algorithm>

#include "sim/simulation.h"

namespace batchplane::sim {

bool Task::has_room(const Node& first, uint32_t loose_rank, const Context& ctx) {
  return exec::has_room(
      *executor, hold_backs, first.rank, loose_rank, ctx.batch_limit_pkts,
      [](const Module& end) { return end.queue->room_pkts(end.ring); },
      [](const Module& end) { return end.queue->space_pkts(end.ring); });
}

bool Task::has_space_for_held(const Context& ctx) {
  return exec::has_space_for_held(
      *executor, hold_backs, ctx.batch_limit_pkts,
      [](const Module& end) { return end.queue->room_pkts(end.ring); },
      [](const Module& end) { return end.queue->space_pkts(end.ring); });
}

uint32_t Task::open_inputs(Context& ctx) {
  return exec::open_inputs(*this, ctx) ? static_cast<uint32_t>(inputs.size()) : absorb(ctx);
}

// While the task is held back, schedulers still take in packets that have come.
uint32_t Task::absorb(Context& ctx) {
  for (TaskInput& input : inputs) {
    if (input.queue == nullptr || input.queue->scheduler() == nullptr) continue;
    input.queue->take_in(ctx.now_ns);
    input.pkts += drop_refused(input, ctx);
  }
  return 0;
}

uint32_t Task::drop_refused(TaskInput& input, Context& ctx) {
  if (input.queue == nullptr || input.queue->scheduler() == nullptr) return 0;
  auto& refused = input.queue->scheduler()->refused();
  const auto n = static_cast<uint32_t>(refused.size());
  for (const auto& [pkt, why] : refused) {
    const Reason reason = why == egress::Enqueued::kTooLong ? kEgressTooLong
                          : why == egress::Enqueued::kShed  ? kEgressShed
                                                            : kEgressFull;
    ++input.drops[reason];
    ctx.end(pkt);
  }
  executor->stats().dropped_pkts += n;
  refused.clear();
  return n;
}

bool Task::run_leftovers(Context& ctx) {
  return leftovers.run(
      ctx.batch_limit_pkts,
      [&](const Node& first) {
        executor->settle_changes(first.rank);
        return has_room(first, first.rank, ctx);
      },
      [&](Node& first, Packet** pkts, uint32_t n) { enter(first, pkts, n, ctx, false); },
      [&] {
        if (!has_space_for_held(ctx)) return false;
        executor->settle_changes();  // packets that are polled next may pass by pointer
        return true;
      });
}

void Task::enter(Node& first, Packet** pkts, uint32_t n, Context& ctx, bool is_sampled) {
  for (uint32_t p = 0; p < n; ++p) pkts[p]->polled_ns = ctx.now_ns;
  uint64_t bound_ns = 0;
  if (executor->has_buffers()) {
    bound_ns = pkts[0]->task_entry_ns;
    for (uint32_t p = 1; p < n; ++p) bound_ns = std::min(bound_ns, pkts[p]->task_entry_ns);
  }
  executor->run(first, {pkts, n, bound_ns}, is_sampled);
}

uint32_t Task::poll_one(uint32_t i, Context& ctx, bool is_sampled) {
  TaskInput& input = inputs[i];
  if (!input.is_open) [[unlikely]]
    return 0;
  Packet* pkts[exec::kMaxBatchPkts + 8];
  uint32_t n = 0;
  if (input.source != nullptr) {
    n = input.source->poll(pkts, ctx.batch_limit_pkts, ctx.now_ns);
  } else if (input.queue != nullptr && input.queue->stage() != nullptr) {
    n = input.queue->stage()->poll(*input.queue, ctx, pkts, ctx.batch_limit_pkts);
  } else if (input.queue != nullptr) {
    // Packets released in this very loop are already in the queue, whatever the last clock reading
    // says.
    n = input.queue->take(pkts, ctx.batch_limit_pkts, ctx.clock.ticks >> kTicksPerNsLog2);
  }
  const uint32_t n_polled = n + drop_refused(input, ctx);
  if (n_polled == 0) return 0;
  input.batches += 1;
  input.pkts += n_polled;
  ++polls;
  if (n == 0) return n_polled;
  if (input.entry_state != exec::PathOp::kKeep) {
    for (uint32_t p = 0; p < n; ++p) pkts[p]->path_state = input.entry_state;
  }
  const bool is_far = input.source != nullptr && !input.source->spec().is_inline;
  ctx.clock.ticks += ctx.loop.poll + (is_far ? ctx.loop.far_poll : 0) + ctx.loop.poll_pkt * n +
                     input.module->ticks_of(n);
  if (is_far) {
    // The ring has room when its packets have been taken in, not when the poll begins; their data
    // comes over later, as modules touch it.
    input.source->note_room(ctx.clock.ticks >> kTicksPerNsLog2);
    ctx.clock.ticks += ctx.loop.far_pkt * n + ctx.loop.far_early_pkt * std::min(n, kFarEarlyPkts);
  }
  enter(*input.first, pkts, n, ctx, is_sampled);
  return n_polled;
}

void Simulation::take_stalls(Worker& worker) {
  while ((worker.ctx.clock.ticks >> kTicksPerNsLog2) >= worker.stalls.next_ns()) {
    const uint64_t length_ns = worker.stalls.take();
    worker.ctx.clock.ticks += length_ns << kTicksPerNsLog2;
    worker.stats.gaps += 1;
    worker.stats.gap_ns += length_ns;
    worker.stats.gap_max_ns = std::max(worker.stats.gap_max_ns, length_ns);
  }
}

// Like the engine's worker loop, plus the time of an empty poll.
uint32_t Simulation::loop_once(Worker& worker) {
  take_stalls(worker);
  Context& ctx = worker.ctx;
  uint32_t polled = 0;
  const uint64_t ticks = ctx.clock.ticks;
  uint64_t first_began_ns = ticks >> kTicksPerNsLog2;
  for (Task* task : worker.tasks) {
    uint64_t began_ns = 0;
    polled += exec::loop_task(*task, ctx, is_idle_hold_, worker.sample, began_ns);
    if (task == worker.tasks.front()) first_began_ns = began_ns;
  }
  // Idle only if the clock was read and nothing else happened: modules may cost nothing, and
  // packets that left through them still wait for the clock reading that ends their delay.
  const bool is_idle = ctx.clock.ticks == ticks + ctx.clock.read_ticks * worker.tasks.size() &&
                       !worker.meter->has_unbooked();
  if (polled == 0) {
    ctx.clock.ticks += ctx.loop.empty_poll;
    ++worker.idle_polls;
  }
  ++worker.stats.loops;
  note_loop(worker, first_began_ns);
  worker.was_busy = polled != 0 || !is_idle;
  return polled;
}

// The loop that begins at began_ns ends the previous one.
void Simulation::note_loop(Worker& worker, uint64_t began_ns) {
  const uint64_t elapsed_ns = began_ns - worker.last_loop_ns;
  worker.last_loop_ns = began_ns;
  if (worker.was_busy) {
    worker.stats.busy_ns += elapsed_ns;
    worker.loop_times.note(elapsed_ns);
  } else {
    worker.stats.idle_ns += elapsed_ns;
  }
}

// Time of an idle worker's next event, as far as it depends on the worker itself.
uint64_t Simulation::next_event_ns(const Worker& worker) const {
  uint64_t next_ns = worker.stalls.next_ns();
  for (const Task* task : worker.tasks) {
    next_ns = std::min(next_ns, task->executor->next_release_ns());
    const Executor& executor = *task->executor;
    if (executor.has_changes() || executor.has_ready_units() || executor.has_ready()) return 0;
    if (!is_idle_hold_ && task->executor->held_pkts() != 0) return 0;
    for (const TaskInput& input : task->inputs) {
      if (input.source != nullptr) next_ns = std::min(next_ns, input.source->next_ns());
      if (input.queue != nullptr) next_ns = std::min(next_ns, input.queue->next_ns());
    }
  }
  return next_ns;
}

// Jumps over loops in which nothing can happen, to where the last of them would have ended.
void Simulation::skip_idle(Worker& worker, uint64_t until_ns) {
  uint64_t target_ns = std::min(next_event_ns(worker), until_ns);
  for (const auto& other : workers_) {
    if (other.get() == &worker) continue;
    // An idle worker puts nothing into a queue before it has received something itself.
    uint64_t other_ns = other->ctx.clock.ticks >> kTicksPerNsLog2;
    if (!other->was_busy) other_ns = std::max(other_ns, next_event_ns(*other));
    target_ns = std::min(target_ns, other_ns);
  }
  // Each task reads the clock; the last one in a loop may be the one that finds something.
  const uint64_t read = worker.ctx.clock.read_ticks * worker.tasks.size();
  const uint64_t step = worker.ctx.loop.empty_poll + read;
  const uint64_t first_read = worker.ctx.clock.ticks + read;
  const uint64_t target_ticks = target_ns << kTicksPerNsLog2;
  if (target_ticks <= first_read) return;
  uint64_t skipped = worker.idle_steps.in(target_ticks - first_read, step);
  // Explicit scheduling's record of idle turns settles in the second idle loop: that one runs.
  if (skipped != 0 && std::ranges::any_of(worker.tasks, [](const Task* task) {
        return task->executor->is_scheduled();
      })) {
    --skipped;
  }
  if (skipped == 0) return;
  if (worker.was_busy) {
    note_idle_loop(worker);
    --skipped;
  }
  if (skipped == 0) return;
  worker.ctx.clock.ticks += skipped * step;
  // The last skipped loop began one step earlier.
  note_loop(worker,
            (worker.ctx.clock.ticks - step + worker.ctx.clock.read_ticks) >> kTicksPerNsLog2);
  worker.sample.skip(skipped * worker.tasks.size());  // each task takes its turn
  worker.stats.loops += skipped;
  worker.idle_polls += skipped;
  for (Task* task : worker.tasks) task->executor->stats().clock_reads += skipped;
}

// Effects of a loop that finds nothing. The first one after a busy loop reads the time at which
// that loop's packets left.
void Simulation::note_idle_loop(Worker& worker) {
  for (Task* task : worker.tasks) {
    const uint64_t began_ns = task->executor->read_clock();
    task->executor->note_idle_turn(began_ns);
    if (task == worker.tasks.front()) note_loop(worker, began_ns);
  }
  worker.was_busy = false;
  worker.ctx.clock.ticks += worker.ctx.loop.empty_poll;
  worker.sample.skip(worker.tasks.size());
  ++worker.stats.loops;
  ++worker.idle_polls;
}

uint64_t Simulation::loop_alone(uint32_t worker, uint64_t from_ns) {
  Worker& alone = *workers_.at(worker);
  alone.ctx.clock.ticks = from_ns << kTicksPerNsLog2;
  loop_once(alone);
  for (const auto& each : workers_) each->ctx.clock.ticks = alone.ctx.clock.ticks;
  now_ns_ = alone.ctx.clock.ticks >> kTicksPerNsLog2;
  return now_ns_;
}

void Simulation::run_until(uint64_t until_ns) {
  const uint64_t until_ticks = until_ns << kTicksPerNsLog2;
  for (;;) {
    Worker* first = workers_.front().get();
    for (const auto& worker : workers_) {
      if (worker->ctx.clock.ticks < first->ctx.clock.ticks) first = worker.get();
    }
    if (first->ctx.clock.ticks >= until_ticks) break;
    // After a full batch there is most likely another one.
    const bool is_full = loop_once(*first) >= first->ctx.batch_limit_pkts;
    if (skips_idle_ && !is_full) skip_idle(*first, until_ns);
  }
  now_ns_ = std::max(now_ns_, until_ns);
}

}  // namespace batchplane::sim
