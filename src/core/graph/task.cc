// SPDX-License-Identifier: BSD-3-Clause
#include "core/graph/task.h"

#include <algorithm>

#include "core/graph/trace.h"

namespace batchplane {
namespace {
// Time limit of a timer call: below any promised delay, above a cache miss.
constexpr uint64_t kHousekeepBudgetNs = 2'000;

const DropReason kHeldAtStop{"held_at_stop",
                             "a module still held the packet when the engine stopped",
                             "nothing to mend: the packet waited for something that did not come"};
}  // namespace

void Task::attach(Context& ctx, CoreTraits::Clock& clock, exec::FlowMeter& meter) {
  executor = std::make_unique<CoreExecutor>(std::span(nodes), ctx, clock, meter);
  if (unit_plan != nullptr) executor->schedule(*unit_plan);
}

uint32_t Task::poll_one(uint32_t i, Context& ctx, bool is_sampled) {
  TaskInput& input = inputs[i];
  if (!input.is_open) [[unlikely]]
    return 0;
  Packet* pkts[exec::kMaxBatchPkts + 8];
  const bool is_timed = is_sampled && input.is_timed && ctx.tracer == nullptr;
  const uint64_t began_cycles = is_timed ? TscClock::cycles() : 0;
  const uint32_t n = input.poll(*input.module, ctx, pkts, poll_pkts);
  const uint32_t n_polled = n + ctx.n_dropped;
  if (n_polled == 0) return 0;
  if (is_timed) [[unlikely]]
    input.add_sample(n_polled, TscClock::cycles() - began_cycles, ctx.clock_cost_cycles);
  input.batches += 1;
  input.pkts += n_polled;
  if (n_polled != n) [[unlikely]] {
    settle_refused(input, ctx);
    if (n == 0) return n_polled;
  }
  if (ctx.tracer != nullptr && !input.is_queue) [[unlikely]]
    ctx.tracer->tag(pkts, n, ctx.now_ns);
  if (input.entry_state != exec::PathOp::kKeep) {
    for (uint32_t p = 0; p < n; ++p) pkts[p]->meta().path_state = input.entry_state;
  }
  enter(*input.first, pkts, n, ctx, is_sampled);
  return n_polled;
}

void Task::enter(ExecNode& first, Packet** pkts, uint32_t n, Context& ctx, bool is_sampled) {
  // Bursts usually arrive in order of entry, but a lower bound must hold for any input.
  uint64_t bound_ns = 0;
  if (executor->has_buffers()) {
    bound_ns = task_entry_ns(*pkts[0]);
    for (uint32_t p = 1; p < n; ++p) bound_ns = std::min(bound_ns, task_entry_ns(*pkts[p]));
  }
  executor->run(first, Batch{pkts, n, bound_ns}, is_sampled);
  ctx.flush_free();
}

// Accounts for packets that the input polled but dropped before any module saw them.
void Task::settle_refused(TaskInput& input, Context& ctx) {
  for (uint32_t i = 0; i < ctx.n_dropped; ++i) {
    input.drops[ctx.dropped[i].reason] += 1;
    ctx.free(ctx.dropped[i].pkt);
  }
  input.dropped_pkts += ctx.n_dropped;
  executor->stats().dropped_pkts += ctx.n_dropped;
  ctx.n_dropped = 0;
  ctx.n_fates = 0;
  ctx.flush_free();
}

void Task::run_housekeepers(Context& ctx) {
  for (Housekeeper& keeper : housekeepers) {
    if (ctx.now_ns < keeper.due_ns) continue;
    keeper.due_ns = ctx.now_ns + keeper.interval_ns;
    keeper.module->housekeep(ctx, kHousekeepBudgetNs);
    executor->settle_module(*keeper.node);
  }
}

bool Task::has_room(const ExecNode& first, uint32_t loose_rank, const Context& ctx) {
  return exec::has_room(
      *executor, hold_backs, first.rank, loose_rank, ctx.batch_limit_pkts,
      [&](const Module& end) { return end.room_pkts(ctx.worker_index); },
      [&](const Module& end) { return end.space_pkts(ctx.worker_index); });
}

bool Task::has_space_for_held(const Context& ctx) {
  return exec::has_space_for_held(
      *executor, hold_backs, ctx.batch_limit_pkts,
      [&](const Module& end) { return end.room_pkts(ctx.worker_index); },
      [&](const Module& end) { return end.space_pkts(ctx.worker_index); });
}

uint32_t Task::open_inputs(Context& ctx) {
  return exec::open_inputs(*this, ctx) ? static_cast<uint32_t>(inputs.size()) : absorb(ctx);
}

// While held back, some inputs still take in packets that have arrived.
uint32_t Task::absorb(Context& ctx) {
  for (TaskInput& input : inputs) {
    if (!input.absorbs) continue;
    Packet* none[1];
    input.poll(*input.module, ctx, none, 0);
    if (ctx.n_dropped == 0) continue;
    input.pkts += ctx.n_dropped;
    settle_refused(input, ctx);
  }
  return 0;
}

bool Task::flush_held(Context& ctx) {
  executor->read_clock();
  bool any = false;
  while (!leftovers.is_any() && executor->release_oldest()) any = true;
  for (Housekeeper& keeper : housekeepers) {
    keeper.module->give_up_held([&](Packet* pkt) {
      ctx.free(pkt);
      keeper.node->drops[kHeldAtStop.index()] += 1;
      keeper.node->dropped_pkts += 1;
      executor->stats().dropped_pkts += 1;
      any = true;
    });
  }
  ctx.flush_free();
  executor->read_clock();
  return any;
}

bool Task::poll_queues(Context& ctx) {
  bool any = exec::run_leftovers(*this, ctx);
  for (uint32_t i = 0; i < inputs.size(); ++i) {
    inputs[i].is_open = !leftovers.is_any() && has_room(*inputs[i].first, 0, ctx);
    any |= inputs[i].is_queue && poll_one(i, ctx, false) != 0;
  }
  return any;
}

uint64_t Task::held_pkts() const {
  uint64_t held = executor == nullptr ? 0 : executor->held_pkts();
  for (const ExecNode& node : nodes) held += static_cast<const Module*>(node.module)->held_pkts();
  return held + leftovers.left_pkts();
}

}  // namespace batchplane
