// SPDX-License-Identifier: BSD-3-Clause
// simulation_rounds.cc - a simulation without arrival times: inputs are never empty, work is the
// only clock.
#include <algorithm>

#include "sim/simulation.h"

namespace batchplane::sim {
namespace {

// Turns of other units before the input's turn; a task may hold its input back for ever.
constexpr uint32_t kMaxTurns = 1000;

uint32_t sources_of(const Task& task) {
  return static_cast<uint32_t>(std::ranges::count_if(
      task.inputs, [](const TaskInput& input) { return input.source != nullptr; }));
}

void fill_inputs(Task& task, uint32_t batch_pkts) {
  double max_pps = 0;
  bool any_saturates = false;
  for (const TaskInput& input : task.inputs) {
    if (input.source == nullptr) continue;
    any_saturates |= input.source->spec().is_saturating;
    max_pps = std::max(max_pps, input.source->offered_pps());
  }
  for (const TaskInput& input : task.inputs) {
    if (input.source == nullptr) continue;
    const bool is_full = any_saturates || max_pps <= 0;
    input.source->fill_always(is_full ? 1 : input.source->offered_pps() / max_pps, batch_pkts);
  }
}

}  // namespace

void Simulation::free_links() {
  for (const ModuleSpec& module : spec_.pipeline.modules) {
    if (!spec_.stages.contains(module.name)) continue;
    throw ConfigError("a plan runs every module on its worker",
                      spec_.pipeline.where("modules." + module.name + ".device"),
                      "leave out its device");
  }
  for (const auto& queue : graph_->queues) queue->free_link();
  for (const auto& module : graph_->modules) {
    if (module->pacing != nullptr) module->pacing->rule = {};
  }
  for (const auto& worker : workers_) worker->ctx.noise_sigma = 0;
}

void Simulation::saturate() {
  free_links();
  for (const auto& task : graph_->tasks) fill_inputs(*task, spec_.pipeline.engine.batch_pkts);
  for (const auto& queue : graph_->queues) queue->join_clocks();
}

void Simulation::feed_evenly(const std::vector<double>& pps_of_source) {
  free_links();
  for (size_t s = 0; s < graph_->sources.size(); ++s) {
    graph_->sources[s]->fill_evenly(pps_of_source.at(s));
  }
}

void Simulation::merge_branch(uint32_t module, uint32_t gate) {
  sim::merge_branch(*graph_, module, gate);
}

// Runs one loop, or as many turns as it takes to poll the input. False when that never happens.
bool Simulation::poll_next(Task& task) {
  Worker& worker = *workers_[task.worker];
  const uint64_t polls_before = task.polls;
  for (uint32_t turn = 0; turn < kMaxTurns && task.polls == polls_before; ++turn) {
    const uint64_t before_ns = worker.ctx.clock.ticks >> kTicksPerNsLog2;
    uint64_t began_ns = 0;
    exec::loop_task(task, worker.ctx, true, worker.sample, began_ns);
    const uint64_t took_ns = (worker.ctx.clock.ticks >> kTicksPerNsLog2) - before_ns;
    ++worker.stats.loops;
    worker.stats.busy_ns += took_ns;
    worker.loop_times.note(took_ns);
  }
  return task.polls != polls_before;
}

bool Simulation::poll_queues() {
  bool any = false;
  for (const auto& task : graph_->tasks) {
    for (uint32_t i = 0; i < task->inputs.size(); ++i) {
      const Queue* const queue = task->inputs[i].queue;
      if (queue == nullptr || queue->held_pkts() == 0) continue;
      task->next_input = i;
      any |= poll_next(*task);
    }
  }
  return any;
}

void Simulation::run_rounds(uint32_t rounds) {
  std::vector<uint64_t> began_ns;
  for (const auto& worker : workers_) {
    began_ns.push_back(worker->ctx.clock.ticks >> kTicksPerNsLog2);
  }
  for (uint32_t round = 0; round < rounds; ++round) {
    for (const auto& task : graph_->tasks) {
      for (uint32_t polls = sources_of(*task); polls > 0; --polls) {
        (void)poll_next(*task);
      }
    }
    while (poll_queues()) {
    }
  }
  uint64_t longest_ns = 0;
  for (size_t w = 0; w < workers_.size(); ++w) {
    began_ns[w] = (workers_[w]->ctx.clock.ticks >> kTicksPerNsLog2) - began_ns[w];
    longest_ns = std::max(longest_ns, began_ns[w]);
  }
  for (size_t w = 0; w < workers_.size(); ++w) {
    workers_[w]->stats.idle_ns += longest_ns - began_ns[w];
  }
  now_ns_ += longest_ns;
}

}  // namespace batchplane::sim
