// SPDX-License-Identifier: BSD-3-Clause
// runtime_apply.cc - checks a pipeline, and swaps it in for the running one.
#include <algorithm>

#include "app/control/placed_stages.h"
#include "app/plan/environment_build.h"
#include "app/plan/memory_plan.h"
#include "app/runtime/runtime.h"
#include "app/wire/messages.h"
#include "offload/devices.h"

namespace batchplane::app {
namespace {

List names_value(const std::vector<std::string>& names) { return {names.begin(), names.end()}; }

List moves_value(const std::vector<Difference::Move>& moves) {
  List list;
  for (const Difference::Move& move : moves) {
    list.emplace_back(Dict{{"module", move.module}, {"from", move.from}, {"to", move.to}});
  }
  return list;
}

Dict difference_value(const Difference& difference) {
  return Dict{{"added", names_value(difference.added)},
              {"removed", names_value(difference.removed)},
              {"changed", names_value(difference.changed)},
              {"moved", moves_value(difference.moved)},
              {"kept", names_value(difference.kept)}};
}

Value plan_value(const Graph& graph, uint32_t pool_pkts, uint32_t data_bytes) {
  List workers;
  for (const WorkerSpec& worker : graph.spec.workers) {
    workers.emplace_back(
        Dict{{"name", worker.name}, {"core", worker.core < 0 ? Value() : Value(worker.core)}});
  }
  uint64_t tasks = 0;
  for (const auto& task : graph.tasks) tasks += task != nullptr ? 1 : 0;
  return Dict{{"pool_pkts", pool_pkts},
              {"min_pool_pkts", Engine::min_pool_pkts(graph)},
              {"packet_bytes", data_bytes},
              {"memory_mb", memory_mb_estimate(graph.spec)},
              {"tasks", tasks},
              {"workers", std::move(workers)}};
}

// Reports errors with the pipeline's keys.
void check_controller(const PipelineSpec& spec, const Graph& graph) {
  if (spec.controller.is_null()) return;
  const ControlChoice choice = choice_from(spec.controller);
  try {
    ControlLoop::check(choice, graph);
  } catch (const ConfigError& error) {
    const bool is_setting = error.where().starts_with("settings");
    throw ConfigError(error.what(), is_setting ? "controller." + error.where() : "controller",
                      error.fix());
  }
}

// The change of controller, or null.
Value control_difference(const Value& running, const Value& wanted) {
  if (wanted.is_null() || saved_choice(choice_from(wanted)) == running) return {};
  const Value name = running.is_null() ? Value(kNoController) : running["name"];
  return Dict{{"from", name}, {"to", wanted["name"]}};
}

void append(std::vector<ConfigError>& to, std::vector<ConfigError> from) {
  for (ConfigError& error : from) to.push_back(std::move(error));
}

}  // namespace

// Builds everything, including tables, in a separate environment, and discards it.
Value check_pipeline(const PipelineSpec& spec, const PipelineSpec* running_spec,
                     const Environment* running_env, std::vector<ConfigError>& errors,
                     std::unique_ptr<Graph>* built, bool is_offline) {
  const PortsAre ports_are = is_offline ? PortsAre::kAbsent : PortsAre::kPlanned;
  auto env = build_environment(spec, ports_are, {running_spec, running_env}, errors);
  env->is_check = !is_offline;
  env->is_offline = is_offline;
  Mistakes mistakes{errors, spec.source_map};
  offload::add_devices(spec, *env, nullptr, mistakes);
  Value plan;
  append(errors, errors_of([&] {
           // Computed before the environment is given away.
           const uint32_t data_bytes = data_bytes_needed(spec, *env);
           auto graph = build_graph(spec, std::move(env));
           plan = plan_value(*graph, pool_pkts_for(*graph), data_bytes);
           check_controller(spec, *graph);
           placement::Loop::check(spec.placement, PlacedStages(*graph), declared_devices(*graph));
           if (built != nullptr) *built = std::move(graph);
         }));
  return plan;
}

Value Runtime::check(const PipelineSpec& next, std::vector<ConfigError>& errors) {
  PipelineSpec spec = next;
  CorePlan cores = parts_.cores;
  assign_workers(spec, cores);
  return check_pipeline(spec, nullptr, nullptr, errors);
}

// A graph that shares tables with the running one may edit them while it is built. Therefore everything is
// first built separately, so that errors occur where nothing is touched.
Value Runtime::apply(PipelineSpec next, bool is_dry_run, std::vector<ConfigError>& errors) {
  std::unique_lock<std::mutex> trace_lock;
  if (!is_dry_run) trace_lock = end_traces();
  const std::lock_guard tables_lock(locks_.tables);
  Engine& engine = *parts_.engine;
  PipelineSpec current;
  {
    const std::lock_guard lock(locks_.engine);
    current = engine.current_spec();
  }
  if (next.workers.empty()) next.workers = current.workers;
  for (WorkerSpec& worker : next.workers) {
    const auto known = std::ranges::find(current.workers, worker.name, &WorkerSpec::name);
    if (worker.core < 0 && known != current.workers.end()) worker.core = known->core;
  }
  Dict result{{"applied", false}};
  {
    std::unique_ptr<Graph> planned;
    check_pipeline(next, &current, engine.graph().env.get(), errors, &planned);
    if (!errors.empty()) return result;
    const std::lock_guard lock(locks_.engine);
    Dict difference = difference_value(engine.difference(*planned));
    difference["controller"] = control_difference(saved_choice(control_.choice()), next.controller);
    result["difference"] = std::move(difference);
  }
  if (is_dry_run) return result;
  append(errors, errors_of([&] {
           std::vector<ConfigError> mistakes;
           auto env = build_environment(next, PortsAre::kReal, {&current, engine.graph().env.get()},
                                        mistakes);
           if (!mistakes.empty()) throw ConfigErrors(std::move(mistakes));
           for (const auto& [name, port] : env->ports) {
             const auto& running = engine.graph().env->ports;
             const auto it = running.find(name);
             if (it == running.end() || it->second != port) port->start(*engine.pool());
           }
           env->quiescence = engine.quiescence().get();
           Mistakes of_devices{mistakes, next.source_map};
           offload::add_devices(next, *env, engine.graph().env.get(), of_devices);
           if (!mistakes.empty()) throw ConfigErrors(std::move(mistakes));
           offload::lend_packets(*env, *engine.pool());
           env->carry_over(*engine.graph().env);
           auto graph = build_graph(next, std::move(env));
           const std::lock_guard lock(locks_.engine);
           parts_.generators->keep_only(next.generators, *graph->env);
           engine.apply(std::move(graph));
           control_.graph_changed();
           place_by(next.placement);
           parts_.cache.forget();
           parts_.generators->add(next.generators, *engine.graph().env, *engine.pool());
           if (!result["difference"]["controller"].is_null()) choose(choice_from(next.controller));
           result["applied"] = true;
         }));
  return result;
}

// Not while a table is being edited or a packet is traced: there will be another period.
void Runtime::move_by_control(const std::vector<PartMove>& parts) {
  const std::unique_lock trace_lock(locks_.trace, std::try_to_lock);
  const std::unique_lock tables_lock(locks_.tables, std::try_to_lock);
  if (!trace_lock.owns_lock() || !tables_lock.owns_lock()) return;
  const std::lock_guard lock(locks_.engine);
  if (is_stopped_) return;
  const std::vector<ConfigError> errors = errors_of([&] { (void)move_parts(parts); });
  for (const ConfigError& error : errors) control_.note_event("not moved: " + error.line());
}

Value Runtime::move(const std::vector<PartMove>& parts) {
  const std::unique_lock<std::mutex> trace_lock = end_traces();
  const std::scoped_lock lock(locks_.tables, locks_.engine);
  return move_parts(parts);
}

Value Runtime::move_parts(const std::vector<PartMove>& parts) {
  const Engine::Moved moved = parts_.engine->move(parts);
  if (moved.is_changed) {
    control_.parts_moved();
    parts_.cache.forget();
  }
  return Dict{{"moved", moves_value(moved.modules)},
              {"workers", names_value(moved.involved)},
              {"stop_ns", moved.stop_ns}};
}

}  // namespace batchplane::app
