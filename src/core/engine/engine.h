// SPDX-License-Identifier: BSD-3-Clause
// engine.h - workers, graph and packet pool of one pipeline, and all changes to them while it runs.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/engine/control_tap.h"
#include "core/engine/thread.h"
#include "core/engine/worker.h"
#include "core/graph/graph.h"
#include "core/graph/trace.h"
#include "exec/flow_book.h"
#include "exec/snapshot.h"
#include "spec/parts.h"

namespace batchplane {

using exec::Balance;
using exec::FlowSnapshot;
using exec::ModuleSnapshot;
using exec::Snapshot;
using exec::WorkerSnapshot;

struct TraceResult {
  struct Event {
    std::string module;
    TraceEvent event;
  };
  struct Traced {
    Tracer::Captured packet;
    std::vector<Event> events;
  };
  std::vector<Traced> packets;
};

// What an apply would do, by module name: the difference between the running pipeline, including live edits
// of buffers, and another one.
struct Difference {
  struct Move {
    std::string module;
    std::string from;  // worker
    std::string to;
  };
  std::vector<std::string> added;
  std::vector<std::string> removed;
  std::vector<std::string> changed;  // same name and kind, other parameters: state is carried over
  std::vector<Move> moved;  // to another worker, with their state; may have changed as well
  std::vector<std::string> kept;
};

// All members run on the control thread, one at a time; workers execute commands between two runs.
class Engine {
 public:
  // Takes the graph; the pool must be at least min_pool_pkts(). Nothing runs yet.
  // `quiescence` is the domain that the graph's live tables were made with.
  Engine(std::unique_ptr<Graph> graph, std::unique_ptr<PacketPool> pool,
         std::shared_ptr<Quiescence> quiescence);
  ~Engine();

  // Packets that buffers, modules, rings and bursts of this graph can hold at once.
  [[nodiscard]] static uint64_t min_pool_pkts(const Graph& graph);

  void start();
  // Stops the workers. With `is_draining`, first polls inputs until they are empty and releases held packets,
  // so that only packets that modules cannot send remain.
  void stop(bool is_draining);
  [[nodiscard]] bool is_running() const { return is_running_; }

  // Counts of all workers, each read at one moment; closes the flows' epoch. Costs a worker one copy of its
  // counters between two runs.
  Snapshot snapshot(bool with_fine_histograms);

  // The graph as controllers see it; they mark themselves where buffers pay off. Valid until the next apply.
  [[nodiscard]] const exec::ControlModel& control_model() const { return tap_->model(); }
  // Counts since the last call; the `percentile` of each flow's delay (0 = mean, 1 = largest).
  // Costs a worker one copy of numbers between two runs. Costs of modules are left at zero.
  const exec::PeriodSnapshot& period(double percentile);
  // Time that commands took on each worker, as of the last period().
  [[nodiscard]] const std::vector<uint64_t>& control_ns() const { return tap_->control_ns(); }

  // Gaps in the time of the worker that had most of them, in the last period().
  [[nodiscard]] const ControlTap::Gaps& period_gaps() const { return tap_->period_gaps(); }

  struct TriggerEdit {
    std::string module;
    uint32_t trigger_pkts = 0;
  };
  struct AgeEdit {
    std::string module;
    uint64_t age_limit_ns = 0;
  };
  struct WeightEdit {
    std::string module;  // a unit, or the input of a task that is scheduled explicitly
    uint32_t weight = 0;
  };
  // Weight of a unit; 0 where the module is not a unit.
  [[nodiscard]] uint32_t weight_of(const Instance& instance) const;
  // All or none. Throws ConfigError for the same mistakes as check_weights(), which changes nothing.
  void check_weights(const std::vector<WeightEdit>& edits) const;
  void set_weights(const std::vector<WeightEdit>& edits);
  // Sets all in one step; if any is wrong, none (ConfigError).
  void set_buffers(const std::vector<TriggerEdit>& triggers, const std::vector<AgeEdit>& ages);
  // The same for a controller's decisions, by position in control_model().
  void change_buffers(const std::vector<exec::BufferChange>& changes);
  // Sets how many packets may wait in queues between tasks: all or none (ConfigError).
  void change_credits(const std::vector<exec::CreditChange>& changes);
  // Takes effect with each stage's next batch. Only stages may be named.
  void change_stages(const std::vector<exec::StageChange>& changes);
  [[nodiscard]] uint32_t credit_pkts(uint32_t module) const;  // 0: no queue
  // Sets how many packets polls of tasks may take: all or none (ConfigError).
  void change_polls(const std::vector<exec::PollChange>& changes);
  [[nodiscard]] uint32_t poll_pkts(uint32_t task) const { return tap_->task(task).poll_pkts; }
  struct PollEdit {
    std::string module;  // that a task polls
    uint32_t poll_pkts = 0;
  };
  // As changes, checked (ConfigError).
  [[nodiscard]] std::vector<exec::PollChange> poll_changes(
      const std::vector<PollEdit>& edits) const;
  void set_idle_hold(bool is_hold);
  void set_slo(const std::string& flow, uint64_t delay_slo_ns);

  // Traces up to n packets that `accepts` selects (empty: any); returns when all of them have left, or after
  // timeout_ns of wall-clock time.
  TraceResult trace(uint32_t n_pkts, std::function<bool(const uint8_t*, uint32_t)> accepts,
                    uint64_t timeout_ns);
  // Ends the current trace at once; later traces are not affected. Any thread.
  void cancel_trace() { is_trace_cancelled_.store(true, std::memory_order_relaxed); }

  // Swaps in a graph between two runs of all workers: modules of the same name and kind keep their state and
  // held packets; packets in other buffers are dropped with a reason. Throws ConfigError, with nothing
  // changed, when the new graph needs other workers or a larger pool.
  void apply(std::unique_ptr<Graph> next);
  [[nodiscard]] Difference difference(const Graph& next) const;

  struct Moved {
    std::vector<Difference::Move> modules;
    bool is_changed = false;            // the graph has been replaced
    std::vector<std::string> involved;  // workers that were stopped meanwhile
    uint64_t stop_ns = 0;               // the longest stop of any of them
  };
  // Moves parts of the graph to other workers (spec/parts.h): all or, with a ConfigError, none. No packet is
  // lost or reordered within its flow. Only workers that give or take parts are stopped.
  Moved move(const std::vector<PartMove>& parts);

  // The running pipeline, including live edits of triggers, limits, SLOs and tables.
  [[nodiscard]] PipelineSpec current_spec() const;

  [[nodiscard]] Graph& graph() { return *graph_; }
  [[nodiscard]] PacketPool* pool() { return pool_.get(); }
  [[nodiscard]] const std::vector<std::unique_ptr<Worker>>& workers() const { return workers_; }
  [[nodiscard]] const std::shared_ptr<Quiescence>& quiescence() { return quiescence_; }

 private:
  void make_workers();
  void deal_tasks(Graph& graph, const std::vector<exec::FlowMeter*>& meters);
  std::vector<std::unique_ptr<exec::FlowMeter>> make_meters(const Graph& graph) const;
  [[nodiscard]] static exec::FlowBook make_book(const Graph& graph);
  void capture(Worker& worker, Snapshot& out);
  void close_queues(Snapshot& out) const;
  void capture_node(const Task& task, uint32_t rank, ModuleSnapshot& out) const;
  void collect_flows();
  void check_apply(const Graph& next) const;
  void check_weight(uint32_t module, uint32_t weight) const;
  [[nodiscard]] Task* unit_task_of(uint32_t module) const;
  void run_together(const std::vector<bool>& is_involved, const std::function<void()>& fn);
  void swap_in(std::unique_ptr<Graph> next);
  // The running pipeline with live edits of buffers, but with parameters as given.
  [[nodiscard]] PipelineSpec buffered_spec() const;
  void retire(Graph& old_graph, Graph& next);
  void collect_old_flows(std::vector<std::unique_ptr<exec::FlowMeter>>& old_meters,
                         const Graph& next);

  std::shared_ptr<Quiescence> quiescence_;
  std::unique_ptr<PacketPool> pool_;
  std::unique_ptr<Graph> graph_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::unique_ptr<exec::FlowMeter>> meters_;  // per worker
  exec::FlowBook flow_book_{0};                           // of the graph's flows
  std::unique_ptr<ControlTap> tap_;                       // into the graph's tasks
  std::vector<uint32_t> capture_order_;                   // of workers
  // By instance of each queue: packets put in, as its feeders count, and taken out, as its poller counts.
  struct HandOver {
    uint64_t put_pkts = 0;
    uint64_t taken_pkts = 0;
  };
  std::vector<HandOver> hand_overs_;
  std::vector<uint64_t> stop_ns_;  // by worker: how long it was stopped in the last swap
  uint64_t previous_ns_ = 0;
  bool is_running_ = false;
  uint8_t trace_session_ = 0;
  std::atomic<bool> is_trace_cancelled_{false};
  // Counts of replaced graphs that no module of the present graph continues.
  uint64_t retired_in_pkts_ = 0;
  uint64_t retired_sent_pkts_ = 0;
  struct RetiredInput {
    exec::NodeTotals totals;
    CostSamples cost;
  };
  std::map<std::string, RetiredInput> retired_inputs_;
  uint64_t retired_dropped_pkts_ = 0;
  std::map<std::pair<std::string, uint32_t>, uint64_t> retired_drops_;  // (module, reason)
};

}  // namespace batchplane
