// SPDX-License-Identifier: BSD-3-Clause
// simulation_order.cc - advances virtual time: of all workers, the one whose loop begins first runs
// it. Loops of idle workers in which nothing can happen are booked without being run.
#include <algorithm>
#include <utility>

#include "sim/simulation.h"

namespace batchplane::sim {
namespace {

enum class Entry : uint8_t {
  kOpen,
  kFull,       // held back until a consumer makes room, which wakes the worker
  kReleasing,  // buffers may fire to make room
};

Entry entry_of(const Task& task, const TaskInput& input, const Context& ctx) {
  Entry entry = Entry::kOpen;
  for (const auto& back : task.hold_backs) {
    if (back.leads_there[input.first->rank] == 0) continue;
    const Module& end = *back.end;
    if (end.queue->room_pkts(end.ring) < ctx.batch_limit_pkts) return Entry::kFull;
    if (!task.executor->has_buffers()) continue;
    const uint64_t at_worst_pkts =
        ctx.batch_limit_pkts + task.executor->buffered_pkts(back.leads_there);
    if (end.queue->space_pkts(end.ring) < at_worst_pkts) entry = Entry::kReleasing;
  }
  return entry;
}

// Between two loops only buffers and units hold packets: most tasks have none, and a splitter has
// many queues to look at.
bool holds_pkts(const Executor& executor) {
  return (executor.has_buffers() || executor.is_scheduled()) && executor.held_pkts() != 0;
}

}  // namespace

// Of a task whose inputs may be held back; 0 if something may happen in any loop.
uint64_t Simulation::next_input_ns(const Task& task, const Context& ctx) const {
  uint64_t next_ns = exec::kNeverNs;
  bool any_open = false;
  for (const TaskInput& input : task.inputs) {
    const Entry entry = entry_of(task, input, ctx);
    if (entry == Entry::kReleasing) return 0;
    if (entry == Entry::kFull) {
      // Schedulers take packets in nevertheless, and explicit scheduling takes turns.
      if (input.queue != nullptr && input.queue->scheduler() != nullptr) return 0;
      if (task.executor->is_scheduled()) return 0;
      continue;
    }
    any_open = true;
    if (input.source != nullptr) next_ns = std::min(next_ns, input.source->next_ns());
    if (input.queue != nullptr) next_ns = std::min(next_ns, input.queue->next_ns());
  }
  // While every input is held back, an idle task releases nothing.
  return any_open && !is_idle_hold_ && holds_pkts(*task.executor) ? 0 : next_ns;
}

// Time of an idle worker's next event, unless it is woken before.
uint64_t Simulation::next_event_ns(const Worker& worker) const {
  uint64_t next_ns = worker.stalls.next_ns();
  for (const Task* task : worker.tasks) {
    const Executor& executor = *task->executor;
    next_ns = std::min(next_ns, executor.next_release_ns());
    if (executor.has_changes() || executor.has_ready_units() || executor.has_ready()) return 0;
    if (task->leftovers.is_any()) return 0;
    if (!task->hold_backs.empty()) [[unlikely]] {
      next_ns = std::min(next_ns, next_input_ns(*task, worker.ctx));
      continue;
    }
    if (!is_idle_hold_ && holds_pkts(executor)) return 0;
    for (const TaskInput& input : task->inputs) {
      if (input.source != nullptr) next_ns = std::min(next_ns, input.source->next_ns());
      if (input.queue != nullptr) next_ns = std::min(next_ns, input.queue->next_ns());
    }
  }
  return next_ns;
}

// Number of the worker's next loops in which nothing happens if nothing does before event_ns.
uint64_t Simulation::loops_before(Worker& worker, uint64_t event_ns) {
  const uint64_t target_ticks = event_ns << kTicksPerNsLog2;
  // The last task in a loop may be the one that finds something.
  const uint64_t first_read = worker.ctx.clock.ticks + worker.read_ticks();
  if (target_ticks <= first_read) return 0;
  const uint64_t loops = worker.idle_steps.in(target_ticks - first_read, worker.idle_step_ticks());
  // Explicit scheduling's record of idle turns settles in the second idle loop: that one runs.
  return worker.is_any_scheduled ? loops - 1 : loops;
}

uint64_t Simulation::idle_loops(Worker& worker, uint64_t until_ns) const {
  return loops_before(worker, std::min(next_event_ns(worker), until_ns));
}

void Simulation::book_idle_loops(Worker& worker, uint64_t loops) {
  if (loops == 0) return;
  if (worker.was_busy) {
    note_idle_loop(worker);
    --loops;
  }
  if (loops == 0) return;
  const uint64_t step = worker.idle_step_ticks();
  worker.ctx.clock.ticks += loops * step;
  // The last of them began one step earlier; a worker without tasks reads no clock.
  const uint64_t read = worker.tasks.empty() ? 0 : worker.ctx.clock.read_ticks;
  note_loop(worker, (worker.ctx.clock.ticks - step + read) >> kTicksPerNsLog2);
  worker.sample.skip(loops * worker.tasks.size());  // each task takes its turn
  worker.stats.loops += loops;
  worker.idle_polls += loops;
  for (Task* task : worker.tasks) task->executor->stats().clock_reads += loops;
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
  worker.ctx.clock.ticks += to_ticks(worker.ctx.loop.empty_poll_ns);
  worker.sample.skip(worker.tasks.size());
  ++worker.stats.loops;
  ++worker.idle_polls;
}

void Simulation::set_turn(uint32_t worker) {
  const Worker& next = *workers_[worker];
  loop_order_.set(worker, next.ctx.clock.ticks + next.idle_loops * next.idle_step_ticks());
}

// Something reaches the worker at at_ns. The waker's loop began at waker_ticks: earlier loops have
// found nothing, although it may have left packets there that are older.
void Simulation::wake(uint32_t woken, uint64_t at_ns, uint32_t waker, uint64_t waker_ticks,
                      uint64_t until_ns) {
  Worker& worker = *workers_[woken];
  if (worker.idle_loops == 0) return;
  const uint64_t past_ticks = waker_ticks + (woken < waker ? 1 : 0);
  const uint64_t gone = past_ticks - std::min(past_ticks, worker.ctx.clock.ticks);
  const uint64_t past_loops = worker.idle_steps.in(gone, worker.idle_step_ticks());
  const uint64_t loops = at_ns == Woken::kUnknown
                             ? idle_loops(worker, until_ns)
                             : std::min(worker.idle_loops, loops_before(worker, at_ns));
  worker.idle_loops = std::max(past_loops, loops);
  set_turn(woken);
}

// Nobody else can have an earlier loop, and nobody wakes it.
void Simulation::run_alone(Worker& worker, uint64_t until_ns) {
  while (worker.ctx.clock.ticks < until_ns << kTicksPerNsLog2) {
    const bool is_full = loop_once(worker) >= worker.full_poll_pkts;
    if (skips_idle_ && !is_full) book_idle_loops(worker, idle_loops(worker, until_ns));
  }
}

// Placement looks at stages as often as the daemon does.
void Simulation::run_until(uint64_t until_ns) {
  constexpr uint64_t kLookNs = 10'000'000;
  while (placement_.is_on() && now_ns_ < until_ns) {
    const uint64_t look_ns = (now_ns_ / kLookNs + 1) * kLookNs;
    run_workers(std::min(look_ns, until_ns));
    if (now_ns_ == look_ns) placement_.step(now_ns_);
  }
  if (!placement_.is_on()) run_workers(until_ns);
}

void Simulation::run_workers(uint64_t until_ns) {
  if (workers_.size() == 1) {
    run_alone(*workers_.front(), until_ns);
  } else {
    run_in_turn(until_ns);
  }
  now_ns_ = std::max(now_ns_, until_ns);
}

void Simulation::run_in_turn(uint64_t until_ns) {
  const uint64_t until_ticks = until_ns << kTicksPerNsLog2;
  // Anything may have been edited: each worker runs a loop before it counts as idle.
  for (uint32_t w = 0; w < workers_.size(); ++w) set_turn(w);
  for (;;) {
    const uint32_t first = loop_order_.first();
    if (loop_order_.ticks_of(first) >= until_ticks) break;
    Worker& worker = *workers_[first];
    book_idle_loops(worker, std::exchange(worker.idle_loops, 0));
    const uint64_t began_ticks = worker.ctx.clock.ticks;
    // After a full batch there is most likely another one.
    const bool is_full = loop_once(worker) >= worker.full_poll_pkts;
    if (skips_idle_ && !is_full) worker.idle_loops = idle_loops(worker, until_ns);
    set_turn(first);
    woken_.take_all(
        [&](uint32_t woken, uint64_t at_ns) { wake(woken, at_ns, first, began_ticks, until_ns); });
  }
  for (const auto& worker : workers_) {
    book_idle_loops(*worker, std::exchange(worker->idle_loops, 0));
  }
}

}  // namespace batchplane::sim
