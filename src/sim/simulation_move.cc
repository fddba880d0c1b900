// SPDX-License-Identifier: BSD-3-Clause
// simulation_move.cc - moves parts of the graph to other workers, as the engine does.
#include <algorithm>

#include "sim/simulation.h"
#include "sim/swap.h"

namespace batchplane::sim {
// The running specification, live edits included.
Spec Simulation::present_spec() const {
  Spec spec = spec_;
  for (const auto& module : graph_->modules) {
    const auto named = std::ranges::find(spec.pipeline.modules, module->name, &ModuleSpec::name);
    const Stage* const stage = module->queue == nullptr ? nullptr : module->queue->stage();
    const CostLaw& cost = stage == nullptr ? module->cost : stage->cost();
    if (module->role != Role::kInput) spec.costs[module->name] = cost;
    if (module->queue != nullptr) named->params["credit_pkts"] = module->queue->credit_pkts();
  }
  for (const auto& task : graph_->tasks) {
    for (uint32_t rank = 0; rank < task->modules.size(); ++rank) {
      const auto& queue = *task->nodes[rank].queue;
      ModuleSpec& module = spec.pipeline.modules[task->modules[rank]];
      module.trigger_pkts = queue.wanted_trigger_pkts();
      module.age_limit_ns =
          queue.age_limit_ns == spec.pipeline.engine.stranding_limit_ns ? 0 : queue.age_limit_ns;
      const uint32_t unit = task->executor->unit_of(task->nodes[rank]);
      if (unit == 0) continue;
      const uint32_t weight = task->executor->units()->schedule.weight(unit);
      if (weight > 1 || module.weight != 0) module.weight = weight;
    }
    std::vector<uint32_t> inputs;
    for (const TaskInput& input : task->inputs) inputs.push_back(input.module->index);
    spec.pipeline.note_poll_pkts(inputs, task->poll_pkts);
  }
  return spec;
}

void Simulation::move(const std::vector<PartMove>& moves) {
  Spec next = present_spec();
  next.pipeline = with_moves(next.pipeline, moves, simulated_kinds(next.pipeline));
  if (has_same_layout(next.pipeline, spec_.pipeline)) return;
  auto graph = build_graph(next, pool_, recorder_, graph_.get());
  const std::vector<bool> is_involved = Swap(*graph_, *graph).involved();
  for (const auto& worker : workers_) {
    for (Task* task : worker->tasks) task->executor->read_clock();
  }
  collect_flows();
  collect_flows();  // both sets of each meter
  stand_still(is_involved);
  exec::FlowBook flows(
      static_cast<uint32_t>(graph->flow_names.size() + graph->model.legs.all.size()));
  for (uint32_t f = 0; f < graph->flow_names.size(); ++f) flows.go_on(f, flows_, f, true);
  for (const auto& worker : workers_) {
    sent_before_pkts_ += worker->meter->sent_pkts();
    worker->tasks.clear();
  }
  flows_ = std::move(flows);
  std::swap(graph_, graph);  // the old graph lives until everything is carried over
  spec_ = std::move(next);
  attach_tasks();
  Swap(*graph, *graph_).carry();
  estimate_work();
  set_budgets();
  update_recording();
  last_ = cumulative();
  begin_demand();
  ++graph_number_;
}

// Workers that give or take parts wait for each other, and then for the move itself.
void Simulation::stand_still(const std::vector<bool>& is_involved) {
  uint64_t ticks = 0;
  for (size_t w = 0; w < workers_.size(); ++w) {
    if (is_involved[w]) ticks = std::max(ticks, workers_[w]->ctx.clock.ticks);
  }
  ticks += spec_.move_ns << kTicksPerNsLog2;
  for (size_t w = 0; w < workers_.size(); ++w) {
    if (is_involved[w]) workers_[w]->ctx.clock.ticks = ticks;
  }
}

}  // namespace batchplane::sim
