// SPDX-License-Identifier: BSD-3-Clause
// simulation_end.cc - how a simulation ends: as the daemon's workers do, what is inside leaves.
#include <algorithm>

#include "sim/simulation.h"

namespace batchplane::sim {
namespace {
constexpr uint32_t kMaxLoops = 1'000'000;
constexpr uint32_t kMaxRounds = 100'000;
}  // namespace

// Buffers do not wait for their limits any more, and queues between tasks are emptied after them.
// Modules that pass packets on to themselves for ever keep what they have.
void Simulation::drain() {
  const auto meet = [this] {
    uint64_t ticks = 0;
    for (const auto& worker : workers_) ticks = std::max(ticks, worker->ctx.clock.ticks);
    for (const auto& worker : workers_) worker->ctx.clock.ticks = ticks;
    now_ns_ = std::max(now_ns_, ticks >> kTicksPerNsLog2);
  };
  for (const auto& worker : workers_) {
    for (uint32_t i = 0; i < kMaxLoops && loop_once(*worker) != 0; ++i) {
    }
  }
  bool any = true;
  for (uint32_t round = 0; any && round < kMaxRounds; ++round) {
    any = false;
    meet();
    for (const auto& worker : workers_) {
      for (Task* task : worker->tasks) {
        task->executor->read_clock();
        while (task->executor->release_oldest()) any = true;
        task->executor->read_clock();
        any |= task->run_leftovers(worker->ctx);
        for (uint32_t i = 0; i < task->inputs.size(); ++i) {
          TaskInput& input = task->inputs[i];
          if (input.queue == nullptr) continue;
          input.is_open = task->has_room(*input.first, worker->ctx);
          any |= task->poll_one(i, worker->ctx, false) != 0;
        }
      }
    }
  }
  meet();
}

}  // namespace batchplane::sim
