// SPDX-License-Identifier: BSD-3-Clause
// engine_snapshot.cc - copies the workers' counters between two runs and adds them up.
#include <algorithm>

#include "core/engine/capture_order.h"
#include "core/engine/engine.h"
#include "core/engine/work_refresh.h"
#include "exec/capture.h"

namespace batchplane {
namespace {

// Position of a task's first input among those of all tasks.
size_t first_input(const Graph& graph, const Task& task) {
  size_t n = 0;
  for (const auto& each : graph.tasks) {
    if (each.get() == &task) break;
    if (each != nullptr) n += each->inputs.size();
  }
  return n;
}

}  // namespace

void Engine::capture_node(const Task& task, uint32_t rank, ModuleSnapshot& out) const {
  const ExecNode& node = task.nodes[rank];
  exec::capture_node(*task.executor, node, out);
  out.kept_pkts = static_cast<const Module*>(node.module)->held_pkts();
}

// Runs on the worker: only copies, into memory that snapshot() has prepared.
void Engine::capture(Worker& worker, Snapshot& out) {
  WorkerSnapshot& mine = out.workers[worker.options().index];
  uint64_t sent = 0;
  for (Task* task : worker.tasks()) {
    CoreExecutor& executor = *task->executor;
    out.now_ns = std::max(out.now_ns, executor.read_clock());
    if (is_work_refresh_due(previous_ns_, out.now_ns)) {
      executor.refresh_work_estimates(1.0 / TscClock::instance().cycles_per_ns());
    }
    exec::ExecutorStats& stats = executor.stats();
    mine.runs += stats.runs;
    mine.clock_reads += stats.clock_reads;
    mine.worst_firings_per_run = std::max(mine.worst_firings_per_run, stats.worst_firings_per_run);
    stats.worst_firings_per_run = 0;
    out.balance.dropped_pkts += stats.dropped_pkts;
    size_t at = first_input(*graph_, *task);
    for (const TaskInput& input : task->inputs) {
      if (input.counts_as_in) out.balance.in_pkts += input.pkts;
      const uint32_t i = graph_->index.find(input.module->name())->second;
      hand_overs_[i].taken_pkts = input.module->taken_pkts();
      const auto before = retired_inputs_.find(input.module->name());
      const RetiredInput earlier =
          before == retired_inputs_.end() ? RetiredInput{} : before->second;
      out.inputs[at].poll_pkts = task->poll_pkts;
      exec::InputCounts& demand = out.inputs[at++].counts;
      demand.taken_pkts = earlier.totals.pkts + input.pkts;
      demand.ring = input.module->ring_counts();
      ModuleSnapshot& module = out.modules[i];
      for (size_t r = 0; r < input.drops.size(); ++r) module.drops[r] += input.drops[r];
      if (input.is_queue) continue;
      module.batches = earlier.totals.batches + input.batches;
      module.pkts = earlier.totals.pkts + input.pkts;
      module.cost = earlier.cost;
      module.cost += input.cost;
      exec::capture_unit(executor, exec::UnitSchedule::kInput, module.unit);
    }
    for (uint32_t rank = 0; rank + 1 < task->nodes.size(); ++rank) {
      const uint32_t i = graph_->index.find(task->node_names[rank])->second;
      capture_node(*task, rank, out.modules[i]);
      const Instance& instance = graph_->instances[i];
      if (is_hand_over(instance)) {
        const uint32_t queue = instance.is_door() ? instance.door_of : i;
        hand_overs_[queue].put_pkts += instance.works_on->put_pkts(worker.options().index);
        out.modules[i].kept_pkts = 0;  // until its other end has been read
      }
      out.balance.held_pkts += out.modules[i].held_pkts + out.modules[i].kept_pkts;
    }
    for (const auto& left : task->leftovers.parts()) {
      const uint32_t i = graph_->index.find(task->node_names[left.first->rank])->second;
      out.modules[i].held_pkts += left.left_pkts();
      out.balance.held_pkts += left.left_pkts();
    }
    const uint64_t* dead_end_drops = task->nodes.back().drops;
    for (size_t r = 0; r < out.other_drops.size(); ++r) out.other_drops[r] += dead_end_drops[r];
  }
  mine.stats = worker.stats();
  mine.originated_pkts = worker.context().originated_pkts;
  sent = worker.meter()->sent_pkts();
  worker.meter()->switch_epoch();
  out.balance.originated_pkts += mine.originated_pkts;
  out.balance.sent_pkts += sent;
}

// Packets put in but not yet taken, each as counted by its worker, so that packets that move while workers
// are read are neither missed nor counted twice.
void Engine::close_queues(Snapshot& out) const {
  for (size_t i = 0; i < hand_overs_.size(); ++i) {
    if (!is_hand_over(graph_->instances[i])) continue;
    const auto [put, taken] = hand_overs_[i];
    if (put < taken) {
      out.balance.ahead_pkts += taken - put;
    } else {
      out.modules[i].kept_pkts = put - taken;
      out.balance.held_pkts += put - taken;
    }
  }
}

void Engine::collect_flows() {
  for (const auto& meter : meters_) flow_book_.collect(*meter);
}

Snapshot Engine::snapshot(bool with_fine_histograms) {
  Snapshot out;
  out.previous_ns = previous_ns_;
  for (const Instance& instance : graph_->instances) {
    ModuleSnapshot module;
    module.name = instance.name;
    module.kind = instance.info->kind;
    const Task* task = graph_->tasks[instance.task].get();
    module.worker = task == nullptr ? "" : task->worker;
    module.drops.resize(drop_reasons().size());
    module.handed_on.resize(drop_reasons().size());
    out.modules.push_back(std::move(module));
  }
  for (const auto& worker : workers_) {
    WorkerSnapshot made;
    made.name = worker->options().name;
    made.core = worker->options().core;
    out.workers.push_back(std::move(made));
  }
  for (const auto& task : graph_->tasks) {
    if (task == nullptr) continue;
    for (const TaskInput& input : task->inputs) out.inputs.push_back({input.module->name(), {}});
  }
  out.flows.resize(graph_->flow_names.size());
  out.other_drops.resize(drop_reasons().size());
  out.balance.in_pkts = retired_in_pkts_;
  out.balance.sent_pkts = retired_sent_pkts_;
  out.balance.dropped_pkts = retired_dropped_pkts_;
  hand_overs_.assign(graph_->instances.size(), {});
  for (const uint32_t w : capture_order_) {
    Worker& worker = *workers_[w];
    worker.execute([&] { capture(worker, out); });
  }
  size_t at = 0;
  for (const auto& task : graph_->tasks) {
    if (task == nullptr) continue;
    for (const TaskInput& input : task->inputs) {
      out.inputs[at++].counts.arrivals = input.module->arrival_counts();
    }
  }
  close_queues(out);
  for (auto& [key, pkts] : retired_drops_) {
    const auto it = graph_->index.find(key.first);
    const bool is_present = it != graph_->index.end();
    (is_present ? out.modules[it->second].drops : out.other_drops)[key.second] += pkts;
  }
  collect_flows();
  for (uint32_t f = 0; f < out.flows.size(); ++f) {
    FlowSnapshot& flow = out.flows[f];
    flow.name = graph_->flow_names[f];
    if (f < graph_->spec.flows.size()) flow.delay_slo_ns = graph_->spec.flows[f].delay_slo_ns;
    flow_book_.report(f, flow, with_fine_histograms);
  }
  previous_ns_ = out.now_ns;
  return out;
}

}  // namespace batchplane
