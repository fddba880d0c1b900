// SPDX-License-Identifier: BSD-3-Clause
// control_tap.h - where the numbers of a controller's period lie in a graph, and memory to copy
// them to: made once a graph, so that a worker only copies.
#pragma once

#include <memory>
#include <vector>

#include "core/engine/worker.h"
#include "core/graph/graph.h"
#include "exec/control.h"
#include "exec/loop_times.h"

namespace batchplane {

// Owner: the control thread; copy() runs on the worker that it names.
class ControlTap {
 public:
  ControlTap(const Graph& graph, const std::vector<std::unique_ptr<Worker>>& workers);

  [[nodiscard]] const exec::ControlModel& model() const { return model_; }
  // Null for pure inputs.
  [[nodiscard]] Task* task_of(uint32_t module) const { return task_of_[module]; }
  [[nodiscard]] uint32_t worker_of(uint32_t module) const;

  // Where demand begins to count. While the worker does not poll, and then on the control thread: devices
  // may take their time to tell.
  void begin_rings(uint32_t worker);
  void begin_arrivals();
  // On the worker, between two runs: counters as they are, since the start.
  void copy(Worker& worker);
  // After the copies of all workers: what lies between them and those before; flows are the
  // caller's to fill in.
  exec::PeriodSnapshot& close();
  // What schedulers promised the flows in the last period, by flow.
  [[nodiscard]] const std::vector<exec::EgressPromise>& promises() const { return promises_; }
  [[nodiscard]] const std::vector<uint64_t>& control_ns() const { return control_ns_; }
  // Unexplained holes in a worker's time in the last period: of the worker that lost most.
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
  std::vector<exec::EgressPromise> promises_;
  exec::PeriodSnapshot now_;
  exec::PeriodSnapshot last_;
  exec::PeriodSnapshot period_;
};

}  // namespace batchplane
