// SPDX-License-Identifier: BSD-3-Clause
// simulation.h - a pipeline in virtual time: the engine's executor, loop and meters over packets
// without bytes; modules take exactly their specified costs.
//
// The same specification and seed give the same result, byte for byte.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "exec/capture.h"
#include "exec/flow_book.h"
#include "placement/loop.h"
#include "sim/graph.h"
#include "sim/loop_order.h"
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
  // Runs every worker until its clock reaches until_ns; its last loop may end later.
  void run_until(uint64_t until_ns);
  // Runs one loop of a worker from `from_ns` on while the others wait, for callers that control the
  // interleaving. Returns its end time.
  uint64_t loop_alone(uint32_t worker, uint64_t from_ns);
  // Lets packets inside leave after the generators were switched off. Only once, at the end.
  void drain();

  // For plans (simulation_rounds.cc), instead of run_until. Call it before the first round: from
  // then on inputs are never empty, and only work takes time. The busiest source of a task fills
  // every poll; the others bring what arrives meanwhile.
  void saturate();
  // For plans below full load, before the first run_until: sources bring their packets evenly, at
  // these rates. Only links are never busy.
  void feed_evenly(const std::vector<double>& pps_of_source);
  // Polls every source `rounds` times. Packets in rings are polled by the next tasks before any
  // others arrive. Workers' clocks are independent; elapsed time is that of the busiest worker.
  void run_rounds(uint32_t rounds);
  // See sim::merge_branch.
  void merge_branch(uint32_t module, uint32_t gate);

  // The same type and JSON as the daemon's snapshot. Closes the flows' epoch.
  exec::Snapshot snapshot(bool with_fine);
  // "runtime", "buffers", "flows", "drops", "graph", "generators", "tables". Throws ConfigError.
  Value show(const std::string& what);
  // Packets in rings, buffers and queues.
  [[nodiscard]] uint64_t held_pkts() const;

  // The controllers' view of the period: differences since the last call.
  exec::PeriodSnapshot period();
  [[nodiscard]] const exec::ControlModel& model() const { return graph_->model; }
  // Throws ConfigError, and changes nothing, if a change names no module or a trigger is out of
  // range.
  void apply(const exec::Decision& decision);

  // Moves parts of the graph to other workers, like Engine::move. Modules and tasks are renumbered,
  // but modules of the pipeline keep their numbers. Throws ConfigError.
  void move(const std::vector<PartMove>& moves);
  // Number of such moves.
  [[nodiscard]] uint64_t graph_number() const { return graph_number_; }

  // Live edits, as in the daemon. All throw ConfigError and change nothing if they are invalid.
  void set_slo(const std::string& flow, uint64_t slo_ns);
  void set_cost(const std::string& module, const CostLaw& cost);
  // As `batchplane set MODULE device` and `set placement` do.
  void set_stage(const std::string& module, const Value& args);
  void edit_placement(const Value& args) { placement_.edit(args); }
  void set_idle_hold(bool is_hold) { is_idle_hold_ = is_hold; }
  [[nodiscard]] bool is_idle_hold() const { return is_idle_hold_; }
  [[nodiscard]] const EngineCosts& loop_costs() const { return spec_.loop; }
  [[nodiscard]] Source& source(const std::string& name);
  // Packets of replayed traces that no worker has taken yet.
  [[nodiscard]] uint64_t unreplayed_pkts() const;
  // Stalls the worker for that long after its present loop.
  void stall(uint32_t worker, uint64_t length_ns);
  [[nodiscard]] uint32_t trigger_pkts(uint32_t module);
  void set_percentile(double percentile) { percentile_ = percentile; }

  // If off, every idle loop is simulated. Results must be the same either way.
  void set_idle_skipping(bool is_on) { skips_idle_ = is_on; }

  [[nodiscard]] Recorder& recorder() { return recorder_; }
  // To be called after the recorder's limits change: while anything is recorded, every run is
  // instrumented.
  void update_recording();
  [[nodiscard]] const Graph& graph() const { return *graph_; }
  [[nodiscard]] const PacketPool& pool() const { return pool_; }

 private:
  void make_workers();
  void attach_tasks();
  void set_wakers();
  void begin_demand();
  [[nodiscard]] Spec present_spec() const;
  void stand_still(const std::vector<bool>& is_involved);
  void find_closed_loops();
  uint32_t loop_once(Worker& worker);  // returns the packets polled
  static void note_loop(Worker& worker, uint64_t began_ns);
  static void note_idle_loop(Worker& worker);
  static void book_idle_loops(Worker& worker, uint64_t loops);
  void run_workers(uint64_t until_ns);
  void run_alone(Worker& worker, uint64_t until_ns);
  void run_in_turn(uint64_t until_ns);
  [[nodiscard]] static uint64_t loops_before(Worker& worker, uint64_t event_ns);
  [[nodiscard]] uint64_t idle_loops(Worker& worker, uint64_t until_ns) const;
  void wake(uint32_t woken, uint64_t at_ns, uint32_t waker, uint64_t waker_ticks,
            uint64_t until_ns);
  void set_turn(uint32_t worker);
  [[nodiscard]] uint64_t next_event_ns(const Worker& worker) const;
  [[nodiscard]] uint64_t next_input_ns(const Task& task, const Context& ctx) const;
  void take_stalls(Worker& worker);
  void free_links();
  bool poll_next(Task& task);
  bool poll_queues();
  void collect_flows();
  void wait_for_links();
  void tell_promises(exec::PeriodSnapshot& period);
  void capture_modules(exec::Snapshot& out) const;
  void capture_workers(exec::Snapshot& out);
  [[nodiscard]] Value stages_value() const;
  [[nodiscard]] double hop_per_pkt_ns(const Task& task, const Node& node) const;
  void estimate_work();
  [[nodiscard]] Task* task_polling(uint32_t module);
  void set_budgets();
  void note_full_polls();
  void check_credits(const std::vector<exec::CreditChange>& credits) const;
  [[nodiscard]] Executor& executor_of(uint32_t module, Node*& node);
  exec::PeriodSnapshot cumulative() const;
  [[nodiscard]] exec::InputCounts demand_of(const TaskInput& input) const;

  Spec spec_;
  PacketPool pool_;
  Recorder recorder_;
  std::unique_ptr<Graph> graph_;
  std::vector<std::unique_ptr<Worker>> workers_;
  LoopOrder loop_order_;
  Woken woken_;
  std::vector<Source*> closed_loops_;  // by traffic flow; empty if no source is a closed loop
  exec::FlowBook flows_;
  std::vector<uint64_t> slo_ns_;          // per declared flow
  exec::PeriodSnapshot last_;             // cumulative counters at the last period
  std::vector<exec::DemandBook> demand_;  // one per input, over all tasks
  uint64_t sent_before_pkts_ = 0;         // from meters of earlier graphs
  uint64_t graph_number_ = 0;
  uint64_t now_ns_ = 0;
  uint64_t previous_ns_ = 0;
  bool is_idle_hold_ = false;
  bool skips_idle_ = true;
  double percentile_ = 0.95;
  placement::Loop placement_;
};

}  // namespace batchplane::sim
