// SPDX-License-Identifier: BSD-3-Clause
// runtime.h - a running pipeline, with all its queries and changes.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "app/control/control_loop.h"
#include "app/control/control_thread.h"
#include "app/plan/core_plan.h"
#include "app/runtime/generator_set.h"
#include "app/runtime/snapshot_cache.h"
#include "app/wire/lanes.h"
#include "core/engine/engine.h"
#include "placement/loop.h"

namespace batchplane::app {

inline constexpr const char* kDaemonVersion = "0.1.0";

// Locks of a request, taken in this order:
//   trace:  a trace is running, or the graph is being swapped
//   tables: module commands and building of graphs, which may take seconds
//   engine: snapshots, edits of buffers, swap of the graph: milliseconds
struct Locks {
  std::mutex trace;
  std::mutex tables;
  std::mutex engine;
};

class Runtime {
 public:
  struct Parts {
    std::string name;
    CorePlan cores;
    Dict facts;
    std::shared_ptr<Quiescence> quiescence;
    std::unique_ptr<Engine> engine;
    std::unique_ptr<GeneratorSet> generators;
    SnapshotCache cache = SnapshotCache();
    bool has_control_thread = false;  // otherwise the caller runs step_control()
  };
  explicit Runtime(Parts parts);
  ~Runtime();

  // Any thread; each call takes the locks that it needs.
  Value hello();
  Value show(const std::string& what, const Value& args);
  // Reasons for the triggers: of a flow or module, or (empty) of all.
  Value explain(const std::string& name);
  // Runs one period of the controller in force.
  void step_control();
  // Sets a function called after each step, without any lock; null: no further call, and none in progress on
  // return.
  void on_step(std::function<void()> told);
  // For a controller in another program; see ControlLoop.
  Value hand_period(uint64_t client, uint64_t after);
  Value decide(uint64_t client, const Value& args);
  void client_gone(uint64_t client);
  void set(const Value& args, uint64_t client = 0);
  // Starts the pipeline's controller; null: none given.
  void begin_control(const Value& controller);
  // Starts the pipeline's placement; null: none given. Throws ConfigError.
  void begin_placement(const Value& placement);
  // Runs placement's step, if one is due.
  void step_placement();
  // Throws ConfigError, with the nearest name, when there is no such module.
  void require_module(const std::string& module);
  Value command(const std::string& module, const std::string& verb, const Value& args);
  // A pipeline's mistakes or, if there are none, its needs.
  Value check(const PipelineSpec& next, std::vector<ConfigError>& errors);
  // In one step or, with the mistakes recorded, not at all.
  Value apply(PipelineSpec next, bool is_dry_run, std::vector<ConfigError>& errors);
  // Moves parts of the graph to other workers (Engine::move): which moved, which workers stopped and for how
  // long.
  Value move(const std::vector<PartMove>& parts);
  Value save();
  Value trace(const Value& args);

  // Ends traffic, drains and reports; only the first call has an effect.
  Value stop();
  // Environment of a control thread: its core, its priority, its registration with the packet backend.
  [[nodiscard]] Lane::Around on_control_core(bool wants_priority) const;
  [[nodiscard]] const std::string& name() const { return parts_.name; }
  [[nodiscard]] uint64_t uptime_ns() const;
  // Whether the last stop() accounted for every packet.
  [[nodiscard]] bool is_balanced() const { return is_balanced_; }

 private:
  // Cancels the current trace, and those waiting, for a change that cannot wait.
  [[nodiscard]] std::unique_lock<std::mutex> end_traces();
  void move_by_control(const std::vector<PartMove>& parts);
  // The caller holds all locks.
  Value move_parts(const std::vector<PartMove>& parts);
  void place_by(const Value& placement);
  // The caller holds locks_.engine.
  void choose(ControlChoice choice);
  std::shared_ptr<const Snapshot> snapshot(bool with_fine);
  Value show_snapshot(const std::string& what, const Snapshot& now);
  Value show_ports();
  Value show_tables();
  Value show_slo();
  Value show_all();
  Value list_table(const std::string& module, const Value& filter);
  Value final_report();

  Parts parts_;
  Locks locks_;
  std::mutex on_step_mutex_;
  std::function<void()> on_step_;  // guarded by on_step_mutex_
  ControlLoop control_;
  placement::Loop placement_;
  std::unique_ptr<ControlThread> control_thread_;    // takes locks_.engine
  std::unique_ptr<ControlThread> placement_thread_;  // likewise; none until placement is on
  uint64_t started_ns_;
  bool is_stopped_ = false;
  bool is_balanced_ = true;
};

// Checks a pipeline without running it: mistakes, and {"pool_pkts", "memory_mb", "workers", ..}. `running`
// may lend ports. Without mistakes, `built` gets the graph; `is_offline`: with whole tables.
Value check_pipeline(const PipelineSpec& spec, const PipelineSpec* running_spec,
                     const Environment* running_env, std::vector<ConfigError>& errors,
                     std::unique_ptr<Graph>* built = nullptr, bool is_offline = false);

}  // namespace batchplane::app
