// SPDX-License-Identifier: BSD-3-Clause
// simulation_edit.cc - live edits, as the daemon makes them: each one whole or not at all.
#include <algorithm>

#include "base/nearest_word.h"
#include "exec/poll_limits.h"
#include "sim/simulation.h"

namespace batchplane::sim {

// The task that polls there, where it is scheduled explicitly.
Task* Simulation::task_polling(uint32_t module) {
  for (const auto& task : graph_->tasks) {
    for (const TaskInput& input : task->inputs) {
      if (task->unit_plan != nullptr && input.queue == nullptr && input.module->index == module) {
        return task.get();
      }
    }
  }
  return nullptr;
}

Executor& Simulation::executor_of(uint32_t module, Node*& node) {
  for (const auto& task : graph_->tasks) {
    const auto it = std::ranges::find(task->modules, module);
    if (it == task->modules.end()) continue;
    node = &task->nodes[static_cast<size_t>(it - task->modules.begin())];
    return *task->executor;
  }
  throw ConfigError("'" + graph_->modules[module]->name + "' is an input: it has no buffer",
                    "module", "name a module behind it");
}

void Simulation::check_credits(const std::vector<exec::CreditChange>& credits) const {
  for (const exec::CreditChange& change : credits) {
    const bool is_known = change.module < graph_->modules.size();
    const Queue* const queue = is_known ? graph_->modules[change.module]->queue : nullptr;
    if (queue == nullptr) {
      throw ConfigError("module " + std::to_string(change.module) + " is no queue", "decision",
                        "credits are of queues between tasks");
    }
    // A batch that has no room would hold back the producers for ever.
    const uint32_t least_pkts = queue->holds_back() ? graph_->model.batch_limit_pkts : 1;
    if (change.credit_pkts >= least_pkts && change.credit_pkts <= queue->size_pkts()) continue;
    throw ConfigError(
        "a credit of " + std::to_string(change.credit_pkts) + " packets is out of range",
        graph_->modules[change.module]->name,
        std::to_string(least_pkts) + " to size_pkts, " + std::to_string(queue->size_pkts()));
  }
}

void Simulation::apply(const exec::Decision& decision) {
  check_credits(decision.credits);
  exec::check_polls(graph_->model, decision.polls);
  Node* node = nullptr;
  for (const exec::BufferChange& change : decision.changes) {
    if (change.weight > exec::kMaxWeight) {
      throw ConfigError("weight " + std::to_string(change.weight) + " is out of range", "decision",
                        "1 to " + std::to_string(exec::kMaxWeight));
    }
    if (change.module >= graph_->modules.size()) {
      throw ConfigError("a change names module " + std::to_string(change.module) + " of " +
                            std::to_string(graph_->modules.size()),
                        "decision", "modules are numbered from 0, as the model lists them");
    }
    if (task_polling(change.module) != nullptr) continue;
    const Executor& executor = executor_of(change.module, node);
    if (change.weight != 0 && executor.unit_of(*node) == 0) {
      throw ConfigError("'" + graph_->modules[change.module]->name + "' is no scheduling unit",
                        "decision",
                        "execution: wfq makes units of modules behind splits and merges, and of "
                        "those with a weight or queue_pkts in the pipeline");
    }
    const uint32_t limit = spec_.pipeline.engine.batch_pkts;
    if (change.trigger_pkts != exec::kKeepTrigger && change.trigger_pkts > limit) {
      throw ConfigError("trigger " + std::to_string(change.trigger_pkts) +
                            " is larger than the batch size " + std::to_string(limit),
                        graph_->modules[change.module]->name, "0 to " + std::to_string(limit));
    }
  }
  // Trigger phases of buffers that this decision leaves alone count as taken, as in the engine.
  std::map<uint32_t, uint32_t> of_trigger;
  for (const auto& task : graph_->tasks) {
    for (uint32_t rank = 0; rank < task->modules.size(); ++rank) {
      const auto it =
          std::ranges::find(decision.changes, task->modules[rank], &exec::BufferChange::module);
      if (it == decision.changes.end())
        ++of_trigger[task->nodes[rank].queue->wanted_trigger_pkts()];
    }
  }
  for (const exec::BufferChange& change : decision.changes) {
    if (Task* const task = task_polling(change.module)) {
      if (change.weight != 0) {
        task->executor->set_weight(exec::UnitSchedule::kInput, change.weight);
      }
      continue;
    }
    Executor& executor = executor_of(change.module, node);
    exec::apply_to_unit(executor, *node, change);
    if (change.trigger_pkts != exec::kKeepTrigger) {
      executor.set_trigger(*node, change.trigger_pkts,
                           exec::stagger(change.trigger_pkts, of_trigger[change.trigger_pkts]++));
    }
    if (change.age_limit_ns == exec::kKeepAge) continue;
    executor.set_age_limit(*node, change.age_limit_ns == exec::kStrandingAge
                                      ? spec_.pipeline.engine.stranding_limit_ns
                                      : change.age_limit_ns);
  }
  if (!decision.changes.empty()) estimate_work();
  for (const exec::CreditChange& change : decision.credits) {
    graph_->modules[change.module]->queue->set_credit(change.credit_pkts);
  }
  for (const exec::StageChange& change : decision.stages) {
    Stage& stage = *graph_->modules.at(change.module)->queue->stage();
    placement::Placing next = stage.placing();
    next.batch_pkts.fill(change.batch_pkts);
    next.age_limit_ns = change.age_limit_ns;
    stage.place(next);
  }
  for (const exec::PollChange& change : decision.polls) {
    graph_->tasks[change.task]->poll_pkts = change.poll_pkts;
  }
  note_full_polls();
}

void Simulation::note_full_polls() {
  for (const auto& worker : workers_) {
    worker->full_poll_pkts = worker->ctx.batch_limit_pkts;
    for (const Task* task : worker->tasks) {
      worker->full_poll_pkts = std::min(worker->full_poll_pkts, task->poll_pkts);
    }
  }
}

void Simulation::set_slo(const std::string& flow, uint64_t slo_ns) {
  const auto end = graph_->flow_names.end() - 1;
  const auto it = std::find(graph_->flow_names.begin(), end, flow);
  if (it == end) {
    const std::vector<std::string> known(graph_->flow_names.begin(), end);
    const std::string near = nearest_word(flow, known);
    throw ConfigError("no flow '" + flow + "'", "flow",
                      near.empty() ? "" : "did you mean '" + near + "'?");
  }
  const auto f = static_cast<uint32_t>(it - graph_->flow_names.begin());
  slo_ns_[f] = slo_ns;
  for (const auto& worker : workers_) worker->meter->set_slo(f, slo_ns);
  set_budgets();
}

void Simulation::set_cost(const std::string& module, const CostLaw& cost) {
  if (module == kAnyInQueue) {
    spec_.costs[module] = cost;
    for (const ModuleSpec& spec : spec_.pipeline.modules) {
      if (!spec.leads_to.empty()) set_cost(spec.name, cost);
      if (spec.device.is_null()) continue;
      Module& stage = *graph_->modules[graph_->at(spec.name)];
      stage.set_cost(cost, spec_.pipeline.engine.batch_pkts);
    }
    return;
  }
  Module& changed = *graph_->modules[graph_->at(module)];
  const uint32_t batch_pkts = spec_.pipeline.engine.batch_pkts;
  Stage* const stage = changed.queue == nullptr ? nullptr : changed.queue->stage();
  if (stage != nullptr) {
    stage->set_cost(cost, batch_pkts);
  } else {
    changed.set_cost(cost, batch_pkts);
  }
  estimate_work();
}

void Simulation::set_stage(const std::string& module, const Value& args) {
  Queue* const queue = graph_->modules[graph_->at(module)]->queue;
  if (queue == nullptr || queue->stage() == nullptr) {
    throw ConfigError("'" + module + "' has no device", "device", "give it one in the pipeline");
  }
  queue->stage()->set(args);
}

Source& Simulation::source(const std::string& name) {
  std::vector<std::string> names;
  for (const auto& source : graph_->sources) {
    if (source->spec().name == name) return *source;
    names.push_back(source->spec().name);
  }
  const std::string near = nearest_word(name, names);
  throw ConfigError("no generator '" + name + "'", "generators",
                    near.empty() ? "" : "did you mean '" + near + "'?");
}

void Simulation::stall(uint32_t worker, uint64_t length_ns) {
  Worker& stalled = *workers_.at(worker);
  stalled.ctx.clock.ticks += length_ns << kTicksPerNsLog2;
  stalled.stats.gaps += 1;
  stalled.stats.gap_ns += length_ns;
  stalled.gap_in_loop_ns += length_ns;
  stalled.stats.gap_max_ns = std::max(stalled.stats.gap_max_ns, length_ns);
}

uint32_t Simulation::trigger_pkts(uint32_t module) {
  Node* node = nullptr;
  (void)executor_of(module, node);
  return node->queue->wanted_trigger_pkts();
}

uint64_t Simulation::unreplayed_pkts() const {
  uint64_t sum = 0;
  for (const auto& source : graph_->sources) {
    const SourceSpec& spec = source->spec();
    if (spec.trace.time_ns.empty() || spec.is_saturating) continue;
    sum += source->unreplayed_pkts() + source->held_pkts();
  }
  return sum;
}

}  // namespace batchplane::sim
