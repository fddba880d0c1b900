// SPDX-License-Identifier: BSD-3-Clause
// simulation_loop.cc - one loop of a worker: the engine's loop in virtual time.
#include <algorithm>
#include <utility>

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
    n = input.source->poll(pkts, poll_pkts, ctx.now_ns);
  } else if (input.queue != nullptr && input.queue->stage() != nullptr) {
    n = input.queue->stage()->poll(*input.queue, ctx, pkts, poll_pkts);
  } else if (input.queue != nullptr) {
    // Packets released in this very loop are already in the queue, whatever the last clock reading
    // says.
    n = input.queue->take(pkts, poll_pkts, ctx.clock.ticks >> kTicksPerNsLog2);
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
  const uint64_t module_ticks = input.module->ticks_of(n);
  if (is_sampled && input.queue == nullptr) input.cost.add(n, module_ticks);
  ctx.clock.ticks +=
      to_ticks(ctx.loop.poll_per_batch_ns) + to_ticks(ctx.loop.poll_per_pkt_ns) * n + module_ticks;
  if (input.queue != nullptr && input.queue->is_fed_from_afar()) {
    ctx.clock.ticks += to_ticks(ctx.loop.hop.take_per_pkt_ns) * n;
  }
  if (is_far) {
    const FarCost& far = ctx.loop.far;
    ctx.clock.ticks += to_ticks(far.per_batch_ns);
    // The ring has room when its packets have been taken in, not when the poll begins; their data
    // comes over later, as modules touch it.
    input.source->note_room(ctx.clock.ticks >> kTicksPerNsLog2);
    ctx.clock.ticks +=
        to_ticks(far.per_pkt_ns) * n + to_ticks(far.early_per_pkt_ns) * std::min(n, kFarEarlyPkts);
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
    worker.gap_in_loop_ns += length_ns;
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
    ctx.clock.ticks += to_ticks(ctx.loop.empty_poll_ns);
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
  const uint64_t gap_ns = std::exchange(worker.gap_in_loop_ns, 0);
  if (worker.was_busy) {
    worker.stats.busy_ns += elapsed_ns;
    worker.stats.busy_gap_ns += gap_ns;
    worker.loop_times.note(elapsed_ns);
  } else {
    worker.stats.idle_ns += elapsed_ns;
  }
}

uint64_t Simulation::loop_alone(uint32_t worker, uint64_t from_ns) {
  Worker& alone = *workers_.at(worker);
  alone.ctx.clock.ticks = from_ns << kTicksPerNsLog2;
  loop_once(alone);
  for (const auto& each : workers_) each->ctx.clock.ticks = alone.ctx.clock.ticks;
  now_ns_ = alone.ctx.clock.ticks >> kTicksPerNsLog2;
  return now_ns_;
}

}  // namespace batchplane::sim
