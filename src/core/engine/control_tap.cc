// SPDX-License-Identifier: BSD-3-Clause
#include "core/engine/control_tap.h"

#include <algorithm>

#include "core/engine/work_refresh.h"
#include "exec/capture.h"

namespace batchplane {

ControlTap::ControlTap(const Graph& graph, const std::vector<std::unique_ptr<Worker>>& workers)
    : paths_(*graph.paths),
      task_of_(graph.instances.size(), nullptr),
      workers_(workers.size()),
      control_ns_(workers.size(), 0) {
  model_.batch_limit_pkts = graph.spec.engine.batch_pkts;
  std::vector<uint32_t> number(graph.tasks.size(), 0);  // without the empty ones
  for (size_t t = 0; t < graph.tasks.size(); ++t) {
    Task* const task = graph.tasks[t].get();
    if (task == nullptr) continue;
    number[t] = static_cast<uint32_t>(tasks_.size());
    TaskTap tap{task, 0, {}, {}, inputs_.size()};
    for (const auto& worker : workers) {
      if (worker->options().name == task->worker) tap.worker = worker->options().index;
    }
    for (size_t rank = 0; rank + 1 < task->nodes.size(); ++rank) {  // the last is the dead end
      tap.modules.push_back(graph.index.at(task->node_names[rank]));
      task_of_[tap.modules.back()] = task;
    }
    for (const TaskInput& input : task->inputs) {
      tap.inputs.push_back(graph.index.at(input.module->name()));
      model_.inputs.push_back(
          {.module = tap.inputs.back(),
           .task = number[t],
           .is_queue = input.is_queue && input.module->credit_pkts() != 0,
           .size_pkts = input.module->ring_pkts(),
           .holds_back = input.module->wants_backpressure(),
           .is_scheduler = input.module->is_scheduler(),
           .is_stage = input.module->is_stage(),
           .max_job_pkts = graph.spec.placement.is_null() ? input.module->max_job_pkts() : 0});
      inputs_.push_back({input.module, {}, {}});
    }
    model_.tasks.push_back({tap.worker, tap.inputs, tap.modules});
    if (task->unit_plan != nullptr) model_.tasks.back().scheduling = task->unit_plan->how;
    tasks_.push_back(std::move(tap));
  }
  for (const WorkerSpec& worker : graph.spec.workers) model_.workers.push_back(worker.name);
  if (model_.workers.empty()) model_.workers.push_back(graph.spec.first_worker());
  for (const Instance& instance : graph.instances) {
    model_.modules.push_back({.name = instance.name,
                              .task = number[instance.task],
                              .has_buffer = instance.node != nullptr,
                              .is_egress = instance.info->is_egress});
  }
  // A queue feeds one task; it is filled in another, which also has its buffer.
  for (uint32_t t = 0; t < tasks_.size(); ++t) {
    for (const uint32_t m : tasks_[t].modules) model_.modules[m].task = t;
    const Task& task = *tasks_[t].task;
    if (task.unit_plan == nullptr) continue;
    for (size_t u = 1; u < task.unit_plan->units.size(); ++u) {
      model_.modules[tasks_[t].modules[task.unit_plan->units[u].rank]].is_unit = true;
    }
  }
  for (const LinkedEdge& edge : graph.edges)
    model_.edges.push_back({edge.from, edge.gate, edge.to});
  for (size_t f = 0; f < graph.flow_paths.size(); ++f) {
    exec::ControlFlow flow{graph.flow_names[f], {}};
    for (const std::string& name : graph.flow_paths[f]) flow.path.push_back(graph.index.at(name));
    model_.flows.push_back(std::move(flow));
  }
  for (exec::PeriodSnapshot* each : {&now_, &last_, &period_}) {
    each->modules.resize(model_.modules.size());
    each->tasks.resize(model_.tasks.size());
  }
  model_.legs = graph.legs;
  for (exec::Leg& leg : model_.legs.all) leg.task = number[leg.task];
  period_.flows.resize(model_.flows.size());
  period_.legs.resize(model_.legs.all.size());
  period_.inputs.resize(model_.inputs.size());
}

uint32_t ControlTap::worker_of(uint32_t module) const {
  return tasks_[model_.modules[module].task].worker;
}

void ControlTap::begin_rings(uint32_t worker) {
  for (const TaskTap& tap : tasks_) {
    if (tap.worker != worker) continue;
    for (size_t i = 0; i < tap.inputs.size(); ++i) {
      inputs_[tap.first_input + i].now = {
          tap.task->inputs[i].pkts, tap.task->inputs[i].module->ring_counts(), {}};
    }
  }
}

void ControlTap::begin_arrivals() {
  for (InputTap& input : inputs_) {
    input.now.arrivals = input.module->arrival_counts();
    input.now.stage = input.module->stage_period();
    input.book.begin(input.now);
  }
}

void ControlTap::copy_task(const TaskTap& tap, const Worker& worker, exec::TaskPeriod& out) {
  CoreExecutor& executor = *tap.task->executor;
  for (uint32_t rank = 0; rank < tap.modules.size(); ++rank) {
    exec::capture_period(executor, tap.task->nodes[rank], now_.modules[tap.modules[rank]]);
  }
  out.in_pkts = 0;
  out.runs = 0;
  for (size_t i = 0; i < tap.inputs.size(); ++i) {
    const TaskInput& input = tap.task->inputs[i];
    out.in_pkts += input.pkts;
    out.runs += input.batches;
    InputTap& demand = inputs_[tap.first_input + i];
    demand.now.taken_pkts = input.pkts;
    demand.now.ring = input.module->ring_counts();
    input.module->begin_fill_period();
    if (input.is_queue) continue;
    now_.modules[tap.inputs[i]].batches = input.batches;
    now_.modules[tap.inputs[i]].pkts = input.pkts;
    now_.modules[tap.inputs[i]].dropped_pkts = input.dropped_pkts;
    now_.modules[tap.inputs[i]].samples = input.cost;
    exec::capture_unit(executor, exec::UnitSchedule::kInput, now_.modules[tap.inputs[i]]);
  }
  out.idle_polls = worker.idle_loops();
  out.busy_ns = worker.stats().busy_ns;
  out.busy_gap_ns = worker.stats().busy_gap_ns;
  out.idle_ns = worker.stats().idle_ns;
  out.poll_pkts = tap.task->poll_pkts;
  out.worst_firings_per_run = executor.stats().worst_firings_per_run;
}

void ControlTap::copy(Worker& worker) {
  const uint32_t index = worker.options().index;
  // Without clients nobody takes snapshots, so work estimates are refreshed here.
  const bool must_refresh = is_work_refresh_due(period_.now_ns - period_.period_ns, period_.now_ns);
  for (size_t t = 0; t < tasks_.size(); ++t) {
    if (tasks_[t].worker != index) continue;
    CoreExecutor& executor = *tasks_[t].task->executor;
    now_.now_ns = std::max(now_.now_ns, executor.read_clock());
    if (must_refresh) {
      executor.refresh_work_estimates(1.0 / TscClock::instance().cycles_per_ns());
    }
    copy_task(tasks_[t], worker, now_.tasks[t]);
  }
  workers_[index].now = worker.loop_times();
  workers_[index].now_gaps = {worker.stats().gap_ns, worker.stats().gaps};
  control_ns_[index] = worker.stats().control_ns;
  worker.meter()->switch_epoch();
}

exec::PeriodSnapshot& ControlTap::close() {
  const double cycles_per_ns = TscClock::instance().cycles_per_ns();
  period_.now_ns = now_.now_ns;
  period_.period_ns = now_.now_ns - last_.now_ns;
  for (size_t m = 0; m < now_.modules.size(); ++m) {
    period_.modules[m] = exec::period_between(last_.modules[m], now_.modules[m]);
    CostSamples& samples = period_.modules[m].samples;
    samples = samples.in_units_of(cycles_per_ns);
  }
  for (size_t t = 0; t < now_.tasks.size(); ++t) {
    exec::TaskPeriod& task = period_.tasks[t];
    const exec::TaskPeriod& before = last_.tasks[t];
    task = now_.tasks[t];
    task.in_pkts -= before.in_pkts;
    task.runs -= before.runs;
    task.idle_polls -= before.idle_polls;
    task.busy_ns -= before.busy_ns;
    task.busy_gap_ns -= before.busy_gap_ns;
    task.idle_ns -= before.idle_ns;
    task.firings = 0;
    for (const uint32_t m : tasks_[t].modules) {
      for (const exec::CauseCount& cause : period_.modules[m].causes) task.firings += cause.firings;
    }
    const WorkerTap& worker = workers_[tasks_[t].worker];
    task.run_p99_ns = worker.now.percentile_ns(worker.last, 0.99);
    task.run_max_ns = worker.now.percentile_ns(worker.last, 1);
    task.gaps = worker.now_gaps.count - worker.last_gaps.count;
    task.gap_ns = worker.now_gaps.ns - worker.last_gaps.ns;
  }
  for (size_t i = 0; i < inputs_.size(); ++i) {
    inputs_[i].now.arrivals = inputs_[i].module->arrival_counts();
    inputs_[i].now.stage = inputs_[i].module->stage_period();
    period_.inputs[i] = inputs_[i].book.close(inputs_[i].now);
  }
  tell_promises();
  period_gaps_ = {};
  for (WorkerTap& worker : workers_) {
    worker.last = worker.now;
    const Gaps gaps{worker.now_gaps.ns - worker.last_gaps.ns,
                    worker.now_gaps.count - worker.last_gaps.count};
    if (gaps.ns > period_gaps_.ns) period_gaps_ = gaps;
    worker.last_gaps = worker.now_gaps;
  }
  last_ = now_;
  return period_;
}

// The bounds leave out polling rounds. Counted from the round in which it arrives, a packet is seen in the
// second round at the latest, and the link becomes free in the round after; the rounds are those of the
// polling worker.
void ControlTap::tell_promises() {
  promises_.assign(model_.flows.size(), {});
  for (size_t t = 0; t < tasks_.size(); ++t) {
    for (const TaskInput& input : tasks_[t].task->inputs) {
      if (!input.module->is_scheduler()) continue;
      promised_here_.assign(promises_.size(), {});
      input.module->take_promises([&](uint16_t state, exec::EgressPromise promise) {
        if (promise.bound_ns != exec::EgressPromise::kNone) {
          promise.bound_ns += 2 * period_.tasks[t].run_p99_ns;
        }
        if (state >= paths_.n_states()) return;
        for (const uint32_t f : paths_.flows_of(state)) promised_here_[f].add(promise);
      });
      for (size_t f = 0; f < promises_.size(); ++f) promises_[f].join(promised_here_[f]);
    }
  }
}

}  // namespace batchplane
