// SPDX-License-Identifier: BSD-3-Clause
// runtime.h - a pipeline that runs, and everything that can be asked of it or changed in it.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "app/control/control_loop.h"
#include "app/control/control_thread.h"
#include "app/control/placement_loop.h"
#include "app/plan/core_plan.h"
#include "app/runtime/generator_set.h"
#include "app/runtime/snapshot_cache.h"
#include "app/wire/lanes.h"
#include "core/engine/engine.h"

namespace batchplane::app {

inline constexpr const char* kDaemonVersion = "0.1.0";

// What a request holds while it runs. Taken in this order.
//   trace:  a trace is under way, or the graph is being swapped
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
    bool has_control_thread = false;  // else somebody calls step_control()
  };
  explicit Runtime(Parts parts);
  ~Runtime();

  // Everything below may be called from any thread; each call takes the locks that it needs.
  Value hello();
  Value show(const std::string& what, const Value& args);
  // Why triggers are what they are: of a flow or module, or (empty) of all.
  Value explain(const std::string& name);
  // One period of the controller in force.
  void step_control();
  // Called after each of them, without any lock; null: no more, and none is under way.
  void on_step(std::function<void()> told);
  // Of a controller that is another program; see ControlLoop.
  Value hand_period(uint64_t client, uint64_t after);
  Value decide(uint64_t client, const Value& args);
  void client_gone(uint64_t client);
  void set(const Value& args, uint64_t client = 0);
  // What the pipeline says of a controller; null: nothing.
  void begin_control(const Value& controller);
  // What it says of placement; null: nothing. Throws ConfigError.
  void begin_placement(const Value& placement);
  // Looks whether there is something to decide for placement.
  void step_placement();
  // Throws ConfigError with the nearest name when there is none of this name.
  void require_module(const std::string& module);
  Value command(const std::string& module, const std::string& verb, const Value& args);
  // Mistakes of a pipeline and, when there are none, what it would need.
  Value check(const PipelineSpec& next, std::vector<ConfigError>& errors);
  // In one step or, with the mistakes noted, not at all.
  Value apply(PipelineSpec next, bool is_dry_run, std::vector<ConfigError>& errors);
  // Parts of the graph to other workers (Engine::move): who moved, who stood still for it and how long.
  Value move(const std::vector<PartMove>& parts);
  Value save();
  Value trace(const Value& args);

  // Ends traffic, drains and tells how it went; only the first call does something.
  Value stop();
  // What a control thread runs in: its core, its priority, a place in the packet pool's books.
  [[nodiscard]] Lane::Around on_control_core(bool wants_priority) const;
  [[nodiscard]] const std::string& name() const { return parts_.name; }
  [[nodiscard]] uint64_t uptime_ns() const;
  // Whether the last stop() found every packet.
  [[nodiscard]] bool is_balanced() const { return is_balanced_; }

 private:
  // Gives up the trace under way, and those that clients have waiting, for a change that cannot
  // wait.
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
  PlacementLoop placement_;
  std::unique_ptr<ControlThread> control_thread_;    // takes locks_.engine
  std::unique_ptr<ControlThread> placement_thread_;  // likewise; none until placement is on
  uint64_t started_ns_;
  bool is_stopped_ = false;
  bool is_balanced_ = true;
};

// A pipeline checked without running it: mistakes, and {"pool_pkts", "memory_mb", "workers", ..}.
// `running` may lend ports.
// Where there are none, `built` gets the graph.
Value check_pipeline(const PipelineSpec& spec, const PipelineSpec* running_spec,
                     const Environment* running_env, std::vector<ConfigError>& errors,
                     std::unique_ptr<Graph>* built = nullptr);

}  // namespace batchplane::app
