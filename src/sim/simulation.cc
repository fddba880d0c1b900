// SPDX-License-Identifier: BSD-3-Clause
// simulation.cc - the parts of a simulation: workers with clocks and costs, executors, and their
// weights and budgets.
#include "sim/simulation.h"

#include <algorithm>

#include "sim/placing.h"

namespace batchplane::sim {

Simulation::Simulation(const Spec& spec)
    : spec_(spec),
      graph_(build_graph(spec, pool_, recorder_)),
      flows_(static_cast<uint32_t>(graph_->flow_names.size() + graph_->model.legs.all.size())),
      is_idle_hold_(spec.pipeline.engine.is_idle_hold),
      placement_([this] { return std::make_unique<SimulatedStages>(graph_, spec_); },
                 [] { return uint64_t{0}; }) {
  // The sources hold the traces.
  for (SourceSpec& source : spec_.sources) source.trace = {};
  for (const FlowSpec& flow : spec.pipeline.flows) slo_ns_.push_back(flow.delay_slo_ns);
  find_closed_loops();
  make_workers();
  estimate_work();
  set_budgets();
  last_ = cumulative();
  demand_.resize(graph_->model.inputs.size());
  const Value& placement = spec_.pipeline.placement;
  std::vector<std::string> declared;
  for (const DeviceSpec& device : spec_.pipeline.devices) declared.push_back(device.name);
  placement::Loop::check(placement, SimulatedStages(graph_, spec_), declared);
  placement_.choose(placement);
}

// Packets that are already there are no demand of the period that begins.
void Simulation::begin_demand() {
  demand_.assign(graph_->model.inputs.size(), {});
  size_t at = 0;
  for (const auto& task : graph_->tasks) {
    for (const TaskInput& input : task->inputs) demand_[at++].begin(demand_of(input));
  }
}

Simulation::~Simulation() = default;

void Simulation::find_closed_loops() {
  std::vector<Source*> of_flow;
  bool any = false;
  for (const auto& source : graph_->sources) {
    const bool is_closed = source->spec().window_pkts != 0;
    any |= is_closed;
    of_flow.resize(of_flow.size() + source->spec().flows.size(),
                   is_closed ? source.get() : nullptr);
  }
  if (any) closed_loops_ = std::move(of_flow);
}

void Simulation::make_workers() {
  const EngineSpec& engine = spec_.pipeline.engine;
  for (uint32_t w = 0; w < graph_->worker_names.size(); ++w) {
    auto worker = std::make_unique<Worker>();
    Context& ctx = worker->ctx;
    ctx.batch_limit_pkts = engine.batch_pkts;
    ctx.pool = &pool_;
    ctx.recorder = &recorder_;
    ctx.clock.read_ticks = to_ticks(spec_.loop.clock_read_ns);
    ctx.loop = spec_.loop;
    if (!closed_loops_.empty()) ctx.closed_loops = closed_loops_.data();
    ctx.noise_sigma = spec_.noise_sigma;
    ctx.noise = Rng(spec_.seed * 31 + w);
    worker->sample = {engine.sample_one_run_in, engine.sample_one_run_in};
    worker->stalls = Stalls(spec_.stalls, spec_.seed * 37 + w);
    workers_.push_back(std::move(worker));
  }
  attach_tasks();
}

void Simulation::attach_tasks() {
  const EngineSpec& engine = spec_.pipeline.engine;
  for (const auto& worker : workers_) {
    worker->meter = std::make_unique<exec::FlowMeter>(
        static_cast<uint32_t>(graph_->flow_names.size()), graph_->model.legs);
    for (uint32_t f = 0; f < slo_ns_.size(); ++f) worker->meter->set_slo(f, slo_ns_[f]);
    worker->ctx.meter = worker->meter.get();
    worker->is_any_scheduled = false;
  }
  for (const auto& task : graph_->tasks) {
    Worker& worker = *workers_[task->worker];
    worker.tasks.push_back(task.get());
    task->executor = std::make_unique<Executor>(std::span(task->nodes), worker.ctx,
                                                worker.ctx.clock, *worker.meter);
    if (task->unit_plan != nullptr) task->executor->schedule(*task->unit_plan);
    worker.is_any_scheduled |= task->executor->is_scheduled();
    if (!engine.runs_by_deadline) continue;
    task->executor->run_by_deadline({engine.heavy_ns, kBacklogBatches * engine.batch_pkts});
  }
  set_wakers();
  note_full_polls();
  for (const auto& worker : workers_) {
    for (Task* task : worker->tasks) task->executor->set_shares_worker(worker->tasks.size() > 1);
  }
}

// Tells queues and sources whom to wake.
void Simulation::set_wakers() {
  const auto n_workers = static_cast<uint32_t>(workers_.size());
  loop_order_.resize(n_workers);
  woken_.resize(n_workers);
  for (const auto& task : graph_->tasks) {
    for (const TaskInput& input : task->inputs) {
      if (input.source != nullptr) input.source->wake(woken_, task->worker);
      if (input.queue != nullptr) input.queue->wake(woken_, task->worker);
    }
    for (const uint32_t m : task->modules) {
      const Module& module = *graph_->modules[m];
      if (module.queue != nullptr) module.queue->set_writer(module.ring, task->worker);
    }
  }
}

// What packets on their way between workers on two cores cost at a node.
double Simulation::hop_per_pkt_ns(const Task& task, const Node& node) const {
  const auto& module = *static_cast<const Module*>(node.module);
  const bool sends = module.queue != nullptr && module.queue->is_far(module.ring);
  const bool takes = std::ranges::any_of(task.inputs, [&](const TaskInput& input) {
    return input.first == &node && input.queue != nullptr && input.queue->is_fed_from_afar();
  });
  return (sends ? spec_.loop.hop.send_per_pkt_ns : 0) +
         (takes ? spec_.loop.hop.take_per_pkt_ns : 0);
}

void Simulation::estimate_work() {
  for (const auto& task : graph_->tasks) {
    for (size_t i = task->nodes.size(); i-- > 0;) {
      Node& node = task->nodes[i];
      const CostLaw::Line& cost = static_cast<const Module*>(node.module)->cost.line();
      // The engine's sampled runs include the cache-line transfers where a packet is touched first.
      const bool is_far = std::ranges::any_of(task->inputs, [&](const TaskInput& input) {
        return input.first == &node && input.source != nullptr && !input.source->spec().is_inline;
      });
      const FarCost far = is_far ? spec_.loop.far : FarCost{};
      task->executor->set_work_estimate(
          node, {cost.cost_per_batch_ns + spec_.loop.sampled_per_batch_ns +
                     kFarEarlyPkts * far.early_per_pkt_ns,
                 cost.cost_per_pkt_ns + far.per_pkt_ns + hop_per_pkt_ns(*task, node)});
    }
  }
}

// A packet's budget in front of a module: the least SLO of the flows that pass there.
void Simulation::set_budgets() {
  if (!spec_.pipeline.engine.runs_by_deadline) return;
  std::vector<uint64_t> budgets_ns(graph_->modules.size(), exec::kNeverNs);
  for (size_t f = 0; f < graph_->flow_paths.size(); ++f) {
    if (slo_ns_[f] == 0) continue;
    for (const std::string& name : graph_->flow_paths[f]) {
      uint64_t& budget_ns = budgets_ns[graph_->at(name)];
      budget_ns = std::min(budget_ns, slo_ns_[f]);
    }
  }
  for (const auto& task : graph_->tasks) {
    for (uint32_t rank = 0; rank < task->modules.size(); ++rank) {
      task->executor->set_budget(task->nodes[rank], budgets_ns[task->modules[rank]]);
    }
  }
}

void Simulation::update_recording() {
  for (const auto& task : graph_->tasks) task->executor->set_tracing(recorder_.is_on());
}

}  // namespace batchplane::sim
