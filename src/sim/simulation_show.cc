// SPDX-License-Identifier: BSD-3-Clause
// simulation_show.cc - snapshots and periods, from the same counters as the engine's.
#include <algorithm>
#include <utility>

#include "sim/simulation.h"

namespace batchplane::sim {

void Simulation::collect_flows() {
  for (const auto& worker : workers_) {
    worker->meter->flush(worker->ctx.clock.ticks >> kTicksPerNsLog2);
    worker->meter->switch_epoch();
    flows_.collect(*worker->meter);
  }
}

uint64_t Simulation::held_pkts() const {
  uint64_t held = 0;
  for (const auto& task : graph_->tasks) {
    held += task->executor->held_pkts() + task->leftovers.left_pkts();
  }
  for (const auto& queue : graph_->queues) held += queue->held_pkts();
  return held;
}

exec::InputCounts Simulation::demand_of(const TaskInput& input) const {
  if (input.queue != nullptr) return input.queue->counts(input.pkts);
  if (input.source != nullptr) return input.source->demand(input.pkts, now_ns_);
  return {input.pkts, {}, {}};
}

void Simulation::capture_modules(exec::Snapshot& out) const {
  for (const auto& module : graph_->modules) {
    exec::ModuleSnapshot made;
    made.name = module->name;
    made.kind = module->kind;
    made.worker = graph_->worker_names[0];
    made.drops.resize(kReasons);
    made.handed_on.resize(kReasons);
    if (module->queue != nullptr && module->ring == 0) made.kept_pkts = module->queue->held_pkts();
    out.modules.push_back(std::move(made));
  }
  out.other_drops.resize(kReasons);
  for (const auto& task : graph_->tasks) {
    const std::string& worker = graph_->worker_names[task->worker];
    for (uint32_t rank = 0; rank < task->modules.size(); ++rank) {
      exec::ModuleSnapshot& module = out.modules[task->modules[rank]];
      exec::capture_node(*task->executor, task->nodes[rank], module);
      module.worker = worker;
    }
    for (const auto& left : task->leftovers.parts()) {
      out.modules[task->modules[left.first->rank]].held_pkts += left.left_pkts();
    }
    for (const TaskInput& input : task->inputs) {
      out.inputs.push_back({input.module->name, demand_of(input), task->poll_pkts});
      exec::ModuleSnapshot& module = out.modules[input.module->index];
      for (uint32_t r = 0; r < kReasons; ++r) module.drops[r] += input.drops[r];
      if (input.queue != nullptr) continue;
      module.worker = worker;
      module.batches += input.batches;
      module.pkts += input.pkts;
      module.cost = input.cost;
      exec::capture_unit(*task->executor, exec::UnitSchedule::kInput, module.unit);
      out.balance.in_pkts += input.pkts;
    }
    for (uint32_t r = 0; r < kReasons; ++r) out.other_drops[r] += task->nodes.back().drops[r];
    out.balance.dropped_pkts += task->executor->stats().dropped_pkts;
  }
  out.balance.held_pkts = held_pkts();
}

void Simulation::capture_workers(exec::Snapshot& out) {
  out.balance.sent_pkts = sent_before_pkts_;
  for (size_t w = 0; w < workers_.size(); ++w) {
    exec::WorkerSnapshot made;
    made.name = graph_->worker_names[w];
    made.core = graph_->worker_cores[w];
    made.stats = workers_[w]->stats;
    for (const Task* task : workers_[w]->tasks) {
      exec::ExecutorStats& stats = task->executor->stats();
      made.runs += stats.runs;
      made.clock_reads += stats.clock_reads;
      made.worst_firings_per_run =
          std::max(made.worst_firings_per_run, stats.worst_firings_per_run);
      stats.worst_firings_per_run = 0;
    }
    out.balance.sent_pkts += workers_[w]->meter->sent_pkts();
    out.workers.push_back(std::move(made));
  }
}

exec::Snapshot Simulation::snapshot(bool with_fine) {
  exec::Snapshot out;
  out.now_ns = now_ns_;
  out.previous_ns = previous_ns_;
  collect_flows();
  capture_modules(out);
  capture_workers(out);
  out.flows.resize(graph_->flow_names.size());
  for (uint32_t f = 0; f < out.flows.size(); ++f) {
    out.flows[f].name = graph_->flow_names[f];
    if (f < slo_ns_.size()) out.flows[f].delay_slo_ns = slo_ns_[f];
    flows_.report(f, out.flows[f], with_fine);
  }
  previous_ns_ = now_ns_;
  return out;
}

Value Simulation::show(const std::string& what) {
  if (what == "generators") {
    List all;
    for (const auto& source : graph_->sources) all.push_back(source->show());
    return all;
  }
  if (what == "tables") return stages_value();
  const exec::Snapshot now = snapshot(what == "flows");
  if (what == "runtime") return telemetry::runtime_value(now, static_cast<double>(kTicksPerNs));
  if (what == "buffers") {
    uint32_t worst = 0;
    for (const exec::WorkerSnapshot& w : now.workers)
      worst = std::max(worst, w.worst_firings_per_run);
    return telemetry::buffers_value(now, worst);
  }
  if (what == "flows") return telemetry::flows_value(now, graph_->flow_paths);
  if (what == "placement") return placement_.show();
  if (what == "drops") return telemetry::drops_value(now, drop_reasons());
  if (what == "graph") return telemetry::graph_value(now, graph_->facts());
  throw ConfigError("there is nothing called '" + what + "' to show", "what",
                    "runtime, buffers, flows, drops, graph, generators, tables, placement");
}

// Modules on devices, as the daemon shows them among its tables.
Value Simulation::stages_value() const {
  List rows;
  for (const auto& module : graph_->modules) {
    const Queue* const queue = module->queue;
    if (queue == nullptr || queue->stage() == nullptr || module->ring != 0) continue;
    const uint64_t inside_pkts = queue->stage()->inside_pkts();
    Dict shown =
        queue->stage()->show(now_ns_, queue->held_pkts() - inside_pkts, queue->lost_pkts());
    rows.emplace_back(
        Dict{{"module", module->name}, {"kind", module->kind}, {"stage", std::move(shown)}});
  }
  return rows;
}

exec::PeriodSnapshot Simulation::cumulative() const {
  exec::PeriodSnapshot all;
  all.now_ns = now_ns_;
  all.modules.resize(graph_->modules.size());
  for (const auto& task : graph_->tasks) {
    for (uint32_t rank = 0; rank < task->modules.size(); ++rank) {
      exec::ModulePeriod& module = all.modules[task->modules[rank]];
      exec::capture_period(*task->executor, task->nodes[rank], module);
      module.cost = graph_->modules[task->modules[rank]]->cost;
    }
    exec::TaskPeriod made;
    for (const TaskInput& input : task->inputs) {
      made.in_pkts += input.pkts;
      exec::ModulePeriod& module = all.modules[input.module->index];
      if (input.queue != nullptr) continue;
      module.batches += input.batches;
      module.pkts += input.pkts;
      module.cost = input.module->cost;
      module.samples = input.cost;
      exec::capture_unit(*task->executor, exec::UnitSchedule::kInput, module);
    }
    const Worker& worker = *workers_[task->worker];
    made.runs = task->polls;
    made.idle_polls = worker.idle_polls;
    made.busy_ns = worker.stats.busy_ns;
    made.busy_gap_ns = worker.stats.busy_gap_ns;
    made.idle_ns = worker.stats.idle_ns;
    made.worst_firings_per_run = task->executor->stats().worst_firings_per_run;
    made.poll_pkts = task->poll_pkts;
    all.tasks.push_back(made);
  }
  return all;
}

// For each declared flow and scheduler: of its flows there, the one with the longest bound. An
// arbiter's rounds are its worker's rounds.
void Simulation::tell_promises(exec::PeriodSnapshot& period) {
  for (size_t t = 0; t < graph_->tasks.size(); ++t) {
    for (const TaskInput& input : graph_->tasks[t]->inputs) {
      Scheduler* const scheduler = input.queue == nullptr ? nullptr : input.queue->scheduler();
      if (scheduler == nullptr) continue;
      std::vector<exec::EgressPromise> here(period.flows.size());
      scheduler->take_promises([&](uint16_t state, uint32_t number) {
        const Scheduler::Flow& flow = scheduler->flow(number);
        exec::EgressPromise made{.is_on_way = true,
                                 .flow = number,
                                 .share_bps = static_cast<uint64_t>(flow.bound.share_bps)};
        made.is_beyond_share = flow.refused_pkts != 0 ||
                               egress::is_beyond_share(flow.bound, scheduler->held_pkts(number),
                                                       graph_->model.batch_limit_pkts);
        if (flow.bound.has_one()) {
          made.bound_ns =
              static_cast<uint64_t>(flow.bound.total_ns()) + 2 * period.tasks[t].run_p99_ns;
        }
        for (const uint32_t f : graph_->paths->flows_of(state)) here[f].add(made);
      });
      for (size_t f = 0; f < here.size(); ++f) period.flows[f].egress.join(here[f]);
    }
  }
}

exec::PeriodSnapshot Simulation::period() {
  collect_flows();
  exec::PeriodSnapshot now = cumulative();
  exec::PeriodSnapshot period = now;
  period.period_ns = now.now_ns - last_.now_ns;
  for (size_t m = 0; m < now.modules.size(); ++m) {
    period.modules[m] = exec::period_between(last_.modules[m], now.modules[m]);
    CostSamples& samples = period.modules[m].samples;
    samples = samples.in_units_of(uint64_t{1} << kTicksPerNsLog2);
    if (period.modules[m].samples.batches == 0) samples = {};
  }
  for (size_t t = 0; t < now.tasks.size(); ++t) {
    exec::TaskPeriod& task = period.tasks[t];
    const exec::TaskPeriod& before = last_.tasks[t];
    task.in_pkts -= before.in_pkts;
    task.runs -= before.runs;
    task.idle_polls -= before.idle_polls;
    task.busy_ns -= before.busy_ns;
    task.busy_gap_ns -= before.busy_gap_ns;
    task.idle_ns -= before.idle_ns;
    for (const uint32_t module : graph_->model.tasks[t].modules) {
      for (const exec::CauseCount& cause : period.modules[module].causes)
        task.firings += cause.firings;
    }
    const Worker& worker = *workers_[graph_->tasks[t]->worker];
    task.run_p99_ns = worker.loop_times.percentile_ns(worker.period_loop_times, 0.99);
    task.run_max_ns = worker.loop_times.percentile_ns(worker.period_loop_times, 1);
    task.gaps = worker.stats.gaps - worker.period_gaps;
    task.gap_ns = worker.stats.gap_ns - worker.period_gap_ns;
  }
  size_t at = 0;
  for (const auto& task : graph_->tasks) {
    for (const TaskInput& input : task->inputs) {
      period.inputs.push_back(demand_[at++].close(demand_of(input)));
      if (input.queue != nullptr) input.queue->begin_fill_period();
      if (input.source != nullptr) input.source->begin_fill_period();
    }
  }
  for (const auto& worker : workers_) {
    worker->period_loop_times = worker->loop_times;
    worker->period_gaps = worker->stats.gaps;
    worker->period_gap_ns = worker->stats.gap_ns;
  }
  for (uint32_t f = 0; f < slo_ns_.size(); ++f) {
    period.flows.push_back(flows_.take_period(f, slo_ns_[f], percentile_));
  }
  const auto n_flows = static_cast<uint32_t>(graph_->flow_names.size());
  for (uint32_t l = 0; l < graph_->model.legs.all.size(); ++l) {
    period.legs.push_back(flows_.take_period(n_flows + l, 0, percentile_));
  }
  tell_promises(period);
  last_ = std::move(now);
  return period;
}

}  // namespace batchplane::sim
