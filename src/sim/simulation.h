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
#include "sim/graph.h"
#include "sim/worker.h"
#include "slo/model/controller.h"
#include "spec/parts.h"

namespace batchplane::sim {

// Not thread-safe. Times are virtual nanoseconds since the start.
class Simulation {
 public:
  // Throws ConfigError.
  explicit Simulation(const Spec& spec);
  ~Simulation();

  [[nodiscard]] uint64_t now_ns() const { return now_ns_; }
  // Runs every worker until its clock has reached until_ns; the last loop may end later.
  void run_until(uint64_t until_ns);
  // One loop of a worker, while the others wait, from `from_ns` on: for who gives the interleaving. Returns
  // when it ended.
  uint64_t loop_alone(uint32_t worker, uint64_t from_ns);
  // Lets what is inside leave, after the generators were switched off: at the end, once.
  void drain();

  // For plans (simulation_rounds.cc), instead of run_until. Before the first round: inputs are
  // never empty from now on, and nothing but work takes time. The busiest source of a task fills
  // every poll, the others bring what comes meanwhile.
  void saturate();
  // So many polls of every source; what went into rings is polled by the tasks behind before
  // anything else comes. Each worker's clock is its own; the time that has passed is that of the
  // one that had most to do.
  void run_rounds(uint32_t rounds);
  // See sim::merge_branch.
  void merge_branch(uint32_t module, uint32_t gate);

  // What the daemon tells: the same type, the same JSON. Closes the flows' epoch.
  exec::Snapshot snapshot(bool with_fine);
  // "runtime", "buffers", "flows", "drops", "graph", "generators", "tables". Throws ConfigError.
  Value show(const std::string& what);
  // Packets in rings, buffers and queues.
  [[nodiscard]] uint64_t held_pkts() const;

  // What controllers are told; differences since the last call.
  exec::PeriodSnapshot period();
  [[nodiscard]] const exec::ControlModel& model() const { return graph_->model; }
  // Throws ConfigError when a change names no module, or a trigger is out of range: then none is
  // made.
  void apply(const exec::Decision& decision);

  // Parts of the graph go on on other workers, as Engine::move has it. What is numbered by modules and
  // tasks is numbered anew: modules as the pipeline has them keep their numbers. Throws ConfigError.
  void move(const std::vector<PartMove>& moves);
  // How often that was done.
  [[nodiscard]] uint64_t graph_number() const { return graph_number_; }

  // Live edits, as the daemon takes them. All throw ConfigError and change nothing when they cannot
  // be made.
  void set_slo(const std::string& flow, uint64_t slo_ns);
  void set_cost(const std::string& module, const CostLaw& cost);
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
  void attach_tasks();
  void begin_demand();
  [[nodiscard]] Spec present_spec() const;
  void stand_still(const std::vector<bool>& is_involved);
  void find_closed_loops();
  uint32_t loop_once(Worker& worker);  // returns the packets polled
  static void note_loop(Worker& worker, uint64_t began_ns);
  static void note_idle_loop(Worker& worker);
  void skip_idle(Worker& worker, uint64_t until_ns);
  [[nodiscard]] uint64_t next_event_ns(const Worker& worker) const;
  void take_stalls(Worker& worker);
  bool poll_next(Task& task);
  bool poll_queues();
  void collect_flows();
  void wait_for_links();
  void tell_promises(exec::PeriodSnapshot& period);
  void capture_modules(exec::Snapshot& out) const;
  void capture_workers(exec::Snapshot& out);
  [[nodiscard]] Value stages_value() const;
  void estimate_work();
  [[nodiscard]] Task* task_polling(uint32_t module);
  void set_budgets();
  void check_credits(const std::vector<exec::CreditChange>& credits) const;
  [[nodiscard]] Executor& executor_of(uint32_t module, Node*& node);
  exec::PeriodSnapshot cumulative() const;
  [[nodiscard]] exec::InputCounts demand_of(const TaskInput& input) const;

  Spec spec_;
  PacketPool pool_;
  Recorder recorder_;
  std::unique_ptr<Graph> graph_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<Source*> closed_loops_;  // by traffic flow; empty where no source is one
  exec::FlowBook flows_;
  std::vector<uint64_t> slo_ns_;          // per declared flow
  exec::PeriodSnapshot last_;             // cumulative counters at the last period
  std::vector<exec::DemandBook> demand_;  // of all tasks' inputs
  uint64_t sent_before_pkts_ = 0;         // by meters of older graphs
  uint64_t graph_number_ = 0;
  uint64_t now_ns_ = 0;
  uint64_t previous_ns_ = 0;
  bool is_idle_hold_ = false;
  bool skips_idle_ = true;
  double percentile_ = 0.95;
};

}  // namespace batchplane::sim
