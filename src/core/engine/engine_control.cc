// SPDX-License-Identifier: BSD-3-Clause
// engine_control.cc - a running engine as seen by controllers, and changes of buffers.
#include <algorithm>
#include <array>

#include "core/engine/engine.h"
#include "exec/capture.h"
#include "exec/poll_limits.h"

namespace batchplane {

const exec::PeriodSnapshot& Engine::period(double percentile) {
  for (const auto& worker : workers_) {
    worker->execute([&] { tap_->copy(*worker); });
  }
  collect_flows();
  exec::PeriodSnapshot& period = tap_->close();
  for (uint32_t f = 0; f < period.flows.size(); ++f) {
    period.flows[f] = flow_book_.take_period(f, graph_->spec.flows[f].delay_slo_ns, percentile);
    period.flows[f].egress = tap_->promises()[f];
  }
  const auto n_flows = static_cast<uint32_t>(graph_->flow_names.size());
  for (uint32_t l = 0; l < period.legs.size(); ++l) {
    period.legs[l] = flow_book_.take_period(n_flows + l, 0, percentile);
  }
  return period;
}

void Engine::set_buffers(const std::vector<TriggerEdit>& triggers,
                         const std::vector<AgeEdit>& ages) {
  std::vector<exec::BufferChange> changes;
  const auto position_of = [&](const std::string& name) {
    return static_cast<uint32_t>(&graph_->at(name) - graph_->instances.data());
  };
  for (const TriggerEdit& edit : triggers) {
    changes.push_back({position_of(edit.module), edit.trigger_pkts, exec::kKeepAge});
  }
  for (const AgeEdit& edit : ages) {
    changes.push_back({position_of(edit.module), exec::kKeepTrigger, edit.age_limit_ns});
  }
  change_buffers(changes);
}

// The task in which the module is a unit, or the polling input.
Task* Engine::unit_task_of(uint32_t module) const {
  Task* const task = tap_->task_of(module);
  if (task != nullptr) {
    return task->executor->unit_of(*graph_->instances[module].node) == 0 ? nullptr : task;
  }
  for (const auto& each : graph_->tasks) {
    if (each == nullptr || each->unit_plan == nullptr) continue;
    for (const TaskInput& input : each->inputs) {
      if (input.module == graph_->instances[module].module.get()) return each.get();
    }
  }
  return nullptr;
}

uint32_t Engine::weight_of(const Instance& instance) const {
  const auto module = static_cast<uint32_t>(&instance - graph_->instances.data());
  const Task* const task = instance.node == nullptr ? nullptr : unit_task_of(module);
  const CoreExecutor* const executor = task == nullptr ? nullptr : task->executor.get();
  if (executor == nullptr || !executor->is_scheduled()) return 0;
  return executor->units()->schedule.weight(executor->unit_of(*instance.node));
}

void Engine::check_weights(const std::vector<WeightEdit>& edits) const {
  for (const WeightEdit& edit : edits) {
    const auto module = static_cast<uint32_t>(&graph_->at(edit.module) - graph_->instances.data());
    check_weight(module, edit.weight);
  }
}

void Engine::check_weight(uint32_t module, uint32_t weight) const {
  const std::string& name = graph_->instances[module].name;
  if (weight > exec::kMaxWeight) {
    throw ConfigError("weight " + std::to_string(weight) + " is out of range", name,
                      "1 to " + std::to_string(exec::kMaxWeight));
  }
  if (weight == 0 || unit_task_of(module) != nullptr) return;
  throw ConfigError("'" + name + "' is no scheduling unit", name,
                    "execution: wfq makes units of modules behind splits and merges, and of "
                    "those with a weight or queue_pkts in the pipeline");
}

void Engine::set_weights(const std::vector<WeightEdit>& edits) {
  std::vector<exec::BufferChange> changes;
  for (const WeightEdit& edit : edits) {
    const auto module = static_cast<uint32_t>(&graph_->at(edit.module) - graph_->instances.data());
    changes.push_back({.module = module,
                       .trigger_pkts = exec::kKeepTrigger,
                       .age_limit_ns = exec::kKeepAge,
                       .reason = "set",
                       .weight = edit.weight});
  }
  change_buffers(changes);
}

uint32_t Engine::credit_pkts(uint32_t module) const {
  return module < graph_->instances.size() ? graph_->instances[module].module->credit_pkts() : 0;
}

void Engine::change_credits(const std::vector<exec::CreditChange>& changes) {
  for (const exec::CreditChange& change : changes) {
    if (credit_pkts(change.module) != 0) continue;
    throw ConfigError("module " + std::to_string(change.module) + " is no queue", "decision",
                      "credits are of queues between tasks");
  }
  std::vector<exec::CreditChange> done;  // as they were before
  try {
    for (const exec::CreditChange& change : changes) {
      const uint32_t before_pkts = credit_pkts(change.module);
      graph_->instances[change.module].module->set_credit(change.credit_pkts);
      done.push_back({change.module, before_pkts});
    }
  } catch (const ConfigError&) {
    for (const exec::CreditChange& was : done) {
      graph_->instances[was.module].module->set_credit(was.credit_pkts);
    }
    throw;
  }
}

void Engine::change_stages(const std::vector<exec::StageChange>& changes) {
  for (const exec::StageChange& change : changes) {
    graph_->instances.at(change.module).module->set_stage(change);
  }
}

std::vector<exec::PollChange> Engine::poll_changes(const std::vector<PollEdit>& edits) const {
  std::vector<std::pair<uint32_t, uint32_t>> of_modules;
  for (const PollEdit& edit : edits) {
    const auto module = static_cast<uint32_t>(&graph_->at(edit.module) - graph_->instances.data());
    of_modules.emplace_back(module, edit.poll_pkts);
  }
  return exec::poll_changes(control_model(), of_modules);
}

void Engine::change_polls(const std::vector<exec::PollChange>& changes) {
  exec::check_polls(control_model(), changes);
  for (const exec::PollChange& change : changes) {
    Task& task = tap_->task(change.task);
    workers_[control_model().tasks[change.task].worker]->execute(
        [&] { task.poll_pkts = change.poll_pkts; });
  }
}

void Engine::change_buffers(const std::vector<exec::BufferChange>& changes) {
  const uint32_t batch_pkts = graph_->spec.engine.batch_pkts;
  std::vector<bool> has_new_trigger(graph_->instances.size(), false);
  for (const exec::BufferChange& change : changes) {
    if (change.module >= graph_->instances.size()) {
      throw ConfigError("a change names module " + std::to_string(change.module) + " of " +
                        std::to_string(graph_->instances.size()));
    }
    const Instance& instance = graph_->instances[change.module];
    check_weight(change.module, change.weight);
    if (instance.node == nullptr && change.weight != 0) continue;
    if (instance.node == nullptr) {
      throw ConfigError("'" + instance.name + "' is an input: it has no buffer", "",
                        "buffers stand in front of modules");
    }
    if (change.trigger_pkts == exec::kKeepTrigger) continue;
    if (change.trigger_pkts > batch_pkts) {
      throw ConfigError("trigger " + std::to_string(change.trigger_pkts) + " is out of range",
                        instance.name, "0 (no buffer) to " + std::to_string(batch_pkts));
    }
    has_new_trigger[change.module] = true;
  }
  // Stagger positions taken by buffers that this call leaves alone.
  std::array<uint32_t, exec::kMaxBatchPkts + 1> of_trigger{};
  for (size_t i = 0; i < graph_->instances.size(); ++i) {
    const ExecNode* node = graph_->instances[i].node;
    if (node != nullptr && !has_new_trigger[i]) ++of_trigger[node->queue->wanted_trigger_pkts()];
  }
  struct Step {
    CoreExecutor* executor;
    ExecNode* node;
    exec::BufferChange change;
    uint32_t release_at_pkts;
  };
  std::vector<std::vector<Step>> steps(workers_.size());
  for (exec::BufferChange change : changes) {
    uint32_t release_at_pkts = 0;
    if (graph_->instances[change.module].node == nullptr) {
      Task* const task = unit_task_of(change.module);
      steps[tap_->worker_of(change.module)].push_back({task->executor.get(), nullptr, change, 0});
      continue;
    }
    if (change.trigger_pkts != exec::kKeepTrigger) {
      release_at_pkts = stagger(change.trigger_pkts, of_trigger[change.trigger_pkts]++);
    }
    if (change.age_limit_ns == exec::kStrandingAge) {
      change.age_limit_ns = graph_->spec.engine.stranding_limit_ns;
    }
    steps[tap_->worker_of(change.module)].push_back({tap_->task_of(change.module)->executor.get(),
                                                     graph_->instances[change.module].node, change,
                                                     release_at_pkts});
  }
  for (size_t w = 0; w < workers_.size(); ++w) {
    if (steps[w].empty()) continue;
    workers_[w]->execute([&list = steps[w]] {
      for (const Step& step : list) {
        if (step.node == nullptr) {
          step.executor->set_weight(exec::UnitSchedule::kInput, step.change.weight);
          continue;
        }
        exec::apply_to_unit(*step.executor, *step.node, step.change);
        if (step.change.trigger_pkts != exec::kKeepTrigger) {
          step.executor->set_trigger(*step.node, step.change.trigger_pkts, step.release_at_pkts);
        }
        if (step.change.age_limit_ns != exec::kKeepAge) {
          step.executor->set_age_limit(*step.node, step.change.age_limit_ns);
        }
      }
    });
  }
}

}  // namespace batchplane
