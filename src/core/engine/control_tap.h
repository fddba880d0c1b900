// SPDX-License-Identifier: BSD-3-Clause
// control_tap.h - locates the counters of a controller's period in a graph, and allocates the memory for
// their copies once per graph, so that a worker only copies.
#pragma once

#include <memory>
#include <vector>

#include "core/engine/worker.h"
#include "core/graph/graph.h"
#include "exec/control.h"
#include "exec/loop_times.h"

namespace batchplane {

// Owner: the control thread; copy() runs on the given worker.
class ControlTap {
 public:
  ControlTap(const Graph& graph, const std::vector<std::unique_ptr<Worker>>& workers);

  [[nodiscard]] const exec::ControlModel& model() const { return model_; }
  // The module's task; null for pure inputs.
  [[nodiscard]] Task* task_of(uint32_t module) const { return task_of_[module]; }
  [[nodiscard]] uint32_t worker_of(uint32_t module) const;
  // By its number in the model.
  [[nodiscard]] Task& task(uint32_t number) const { return *tasks_[number].task; }

  // Starts counting the offered load: rings while the worker does not poll, then arrivals on the control
  // thread, since devices may be slow to report.
  void begin_rings(uint32_t worker);
  void begin_arrivals();
  // On the worker, between two runs: copies its counters, cumulative since the start.
  void copy(Worker& worker);
  // After the copies of all workers: the differences since the previous copies. The caller fills in flows.
  exec::PeriodSnapshot& close();
  // The packet schedulers' guarantees for the flows in the last period, by flow.
  [[nodiscard]] const std::vector<exec::EgressPromise>& promises() const { return promises_; }
  [[nodiscard]] const std::vector<uint64_t>& control_ns() const { return control_ns_; }
  // Unexplained gaps in a worker's time in the last period, for the worker that lost the most.
  struct Gaps {
    uint64_t ns = 0;
    uint64_t count = 0;
  };
  [[nodiscard]] const Gaps& period_gaps() const { return period_gaps_; }

 private:
  struct TaskTap {
    Task* task;
    uint32_t worker;
    std::vector<uint32_t> modules;  // by rank
    std::vector<uint32_t> inputs;
    size_t first_input;  // in inputs_
  };
  struct InputTap {
    const Module* module;
    exec::InputCounts now;
    exec::DemandBook book;
  };
  struct WorkerTap {
    exec::LoopTimes now;
    exec::LoopTimes last;
    Gaps now_gaps;
    Gaps last_gaps;
  };
  void copy_task(const TaskTap& tap, const Worker& worker, exec::TaskPeriod& out);

  void tell_promises();

  const PathAutomaton& paths_;
  exec::ControlModel model_;
  std::vector<TaskTap> tasks_;
  std::vector<InputTap> inputs_;  // of all tasks, in their order
  std::vector<Task*> task_of_;
  std::vector<WorkerTap> workers_;
  std::vector<uint64_t> control_ns_;
  Gaps period_gaps_;
  std::vector<exec::EgressPromise> promises_;       // by flow
  std::vector<exec::EgressPromise> promised_here_;  // by one of the schedulers
  exec::PeriodSnapshot now_;
  exec::PeriodSnapshot last_;
  exec::PeriodSnapshot period_;
};

}  // namespace batchplane
