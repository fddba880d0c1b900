// SPDX-License-Identifier: BSD-3-Clause
// simulation_end.cc - how a simulation ends: packets inside leave, as with the daemon's workers.
#include <algorithm>
#include <utility>

#include "sim/simulation.h"

namespace batchplane::sim {
namespace {
constexpr uint32_t kMaxLoops = 1'000'000;
constexpr uint32_t kMaxRounds = 100'000;
}  // namespace

// Advances time to the next packet for a scheduler's link, or to the end of the next job.
void Simulation::wait_for_links() {
  uint64_t next_ns = Scheduler::kNever;
  for (const auto& queue : graph_->queues) {
    const Scheduler* const scheduler = std::as_const(*queue).scheduler();
    if (scheduler != nullptr) next_ns = std::min(next_ns, scheduler->next_ns());
    if (queue->stage() != nullptr) next_ns = std::min(next_ns, queue->next_ns());
  }
  if (next_ns == Scheduler::kNever) return;
  for (const auto& worker : workers_) {
    uint64_t& ticks = worker->ctx.clock.ticks;
    ticks = std::max(ticks, next_ns << kTicksPerNsLog2);
  }
}

// Buffers no longer wait for their limits, and queues between tasks are emptied after them. Modules
// that pass packets to themselves for ever keep them.
void Simulation::drain() {
  const auto meet = [this] {
    uint64_t ticks = 0;
    for (const auto& worker : workers_) ticks = std::max(ticks, worker->ctx.clock.ticks);
    for (const auto& worker : workers_) worker->ctx.clock.ticks = ticks;
    now_ns_ = std::max(now_ns_, ticks >> kTicksPerNsLog2);
  };
  for (const auto& queue : graph_->queues) {
    if (queue->stage() != nullptr) queue->stage()->drain();
  }
  for (const auto& worker : workers_) {
    for (uint32_t i = 0; i < kMaxLoops && loop_once(*worker) != 0; ++i) {
    }
  }
  bool any = true;
  for (uint32_t round = 0; any && round < kMaxRounds; ++round) {
    any = false;
    meet();
    wait_for_links();
    for (const auto& worker : workers_) {
      for (Task* task : worker->tasks) {
        task->executor->read_clock();
        any |= exec::run_leftovers(*task, worker->ctx);
        while (!task->leftovers.is_any() && task->executor->release_oldest()) any = true;
        task->executor->read_clock();
        for (uint32_t i = 0; i < task->inputs.size(); ++i) {
          TaskInput& input = task->inputs[i];
          if (input.queue == nullptr) continue;
          input.is_open = !task->leftovers.is_any() && task->has_room(*input.first, 0, worker->ctx);
          any |= task->poll_one(i, worker->ctx, false) != 0;
          // Packets that wait for their link leave, too, once it is free, and so do packets on a
          // device.
          const bool waits = input.queue->scheduler() != nullptr || input.queue->stage() != nullptr;
          any |= waits && input.queue->held_pkts() != 0;
        }
      }
    }
  }
  meet();
}

}  // namespace batchplane::sim
