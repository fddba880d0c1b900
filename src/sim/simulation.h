// SPDX-License-Identifier: BSD-3-Clause
// simulation.h - a pipeline in virtual time: the engine's executor, loop and meters over packets
// without bytes, whose modules take exactly what they are said to cost.
//
// Same specification, same seed: same result, to the byte.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "exec/capture.h"
#include "exec/flow_book.h"
#include "exec/loop_times.h"
#include "exec/task_loop.h"
#include "sim/graph.h"
#include "slo/controller.h"

namespace batchplane::sim {

// One simulated core. Its clock runs ahead of those of others by one loop at most.
// How many whole steps a time takes. A step keeps its length for long: its reciprocal is kept,
// since a division takes as long as the rest of a jump.
class StepCount {
 public:
  [[nodiscard]] uint64_t in(uint64_t ticks, uint64_t step_ticks) {
    if (step_ticks != step_ticks_) [[unlikely]] {
      step_ticks_ = step_ticks;
      per_tick_ = 1.0 / static_cast<double>(step_ticks);
    }
    // Beyond this rounding could miss by more than one.
    if (ticks >= 1ULL << 50) [[unlikely]]
      return (ticks - 1) / step_ticks + 1;
    auto steps = static_cast<uint64_t>(static_cast<double>(ticks) * per_tick_);
    steps -= static_cast<uint64_t>(steps * step_ticks > ticks);
    return steps + static_cast<uint64_t>(steps * step_ticks < ticks);
  }

 private:
  uint64_t step_ticks_ = 0;
  double per_tick_ = 0;
};

struct Worker {
  Context ctx;
  std::vector<Task*> tasks;
  exec::SampleTurn sample;
  exec::WorkerStats stats;
  std::unique_ptr<exec::FlowMeter> meter;
  exec::LoopTimes loop_times;
  exec::LoopTimes period_loop_times;  // as of the last period
  uint64_t period_gaps = 0;           // so, too
  uint64_t period_gap_ns = 0;
  uint64_t idle_polls = 0;
  uint64_t last_loop_ns = 0;
  bool was_busy = false;
  StepCount idle_steps;
  Stalls stalls;
};

// Not thread-safe. Times are virtual nanoseconds since the start.
class Simulation {
 public:
  // Throws ConfigError.
  explicit Simulation(const Spec& spec);
  ~Simulation();

  [[nodiscard]] uint64_t now_ns() const { return now_ns_; }
  // Runs every worker until its clock has reached until_ns; the last loop may end later.
  void run_until(uint64_t until_ns);
  // Lets what is inside leave, after the generators were switched off: at the end, once.
  void drain();

  // What the daemon tells: the same type, the same JSON. Closes the flows' epoch.
  exec::Snapshot snapshot(bool with_fine);
  // "runtime", "buffers", "flows", "drops", "graph", "generators". Throws ConfigError.
  Value show(const std::string& what);
  // Packets in rings, buffers and queues.
  [[nodiscard]] uint64_t held_pkts() const;

  // What controllers are told; differences since the last call.
  exec::PeriodSnapshot period();
  [[nodiscard]] const exec::ControlModel& model() const { return graph_->model; }
  // Throws ConfigError when a change names no module, or a trigger is out of range: then none is
  // made.
  void apply(const exec::Decision& decision);

  // Live edits, as the daemon takes them. All throw ConfigError and change nothing when they cannot
  // be made.
  void set_slo(const std::string& flow, uint64_t slo_ns);
  void set_cost(const std::string& module, const ModuleCosts& costs);
  void set_idle_hold(bool is_hold) { is_idle_hold_ = is_hold; }
  [[nodiscard]] bool is_idle_hold() const { return is_idle_hold_; }
  [[nodiscard]] Source& source(const std::string& name);
  // Of all traces that are replayed: what no worker has taken yet.
  [[nodiscard]] uint64_t unreplayed_pkts() const;
  // The worker does nothing for that long, from its present loop on.
  void stall(uint32_t worker, uint64_t length_ns);
  [[nodiscard]] uint32_t trigger_pkts(uint32_t module);
  void set_percentile(double percentile) { percentile_ = percentile; }

  // Off: every idle loop is run by itself. Nothing but the time that it takes may change.
  void set_idle_skipping(bool is_on) { skips_idle_ = is_on; }

  [[nodiscard]] Recorder& recorder() { return recorder_; }
  // After the recorder's limits changed: every run is instrumented while anything is recorded.
  void update_recording();
  [[nodiscard]] const Graph& graph() const { return *graph_; }
  [[nodiscard]] const PacketPool& pool() const { return pool_; }

 private:
  void make_workers();
  uint32_t loop_once(Worker& worker);  // returns the packets polled
  static void note_loop(Worker& worker, uint64_t began_ns);
  static void note_idle_loop(Worker& worker);
  void skip_idle(Worker& worker, uint64_t until_ns);
  [[nodiscard]] uint64_t next_event_ns(const Worker& worker) const;
  void take_stalls(Worker& worker);
  void collect_flows();
  void capture_modules(exec::Snapshot& out) const;
  void capture_workers(exec::Snapshot& out);
  void estimate_work();
  [[nodiscard]] Task* task_polling(uint32_t module);
  void set_budgets();
  [[nodiscard]] Executor& executor_of(uint32_t module, Node*& node);
  exec::PeriodSnapshot cumulative() const;

  Spec spec_;
  PacketPool pool_;
  Recorder recorder_;
  std::unique_ptr<Graph> graph_;
  std::vector<std::unique_ptr<Worker>> workers_;
  exec::FlowBook flows_;
  std::vector<uint64_t> slo_ns_;  // per declared flow
  exec::PeriodSnapshot last_;     // cumulative counters at the last period
  uint64_t now_ns_ = 0;
  uint64_t previous_ns_ = 0;
  bool is_idle_hold_ = false;
  bool skips_idle_ = true;
  double percentile_ = 0.95;
};

}  // namespace batchplane::sim
