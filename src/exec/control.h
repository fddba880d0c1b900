// SPDX-License-Identifier: BSD-3-Clause
// control.h - a controller's input for one period, and its decision: plain data, shared by daemon, simulator,
// tests and Python.
//
// Modules, flows and tasks are indices into ControlModel, which is valid as long as the graph.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "base/cost_law.h"
#include "exec/delay_histogram.h"
#include "exec/demand.h"
#include "exec/legs.h"
#include "exec/node.h"
#include "exec/scheduling.h"

namespace batchplane::exec {

// A module's properties that do not change from period to period.
struct ControlModule {
  std::string name;
  uint32_t task = 0;
  bool has_buffer = false;     // nodes do, pure inputs do not
  bool is_controlled = false;  // a buffer here may pay off: see mark_controlled
  bool is_egress = false;
  bool is_unit = false;  // explicit scheduling: it has a queue and turns of its own
};

struct ControlEdge {
  uint32_t from = 0;
  uint32_t gate = 0;
  uint32_t to = 0;
};

struct ControlFlow {
  std::string name;
  std::vector<uint32_t> path;  // every module from input to egress, in order, across tasks
};

struct ControlTask {
  uint32_t worker = 0;
  std::vector<uint32_t> inputs;   // modules polled
  std::vector<uint32_t> modules;  // in run order, inputs not among them
  Scheduling scheduling = {};
};

// A polled module, with the task that polls it.
struct ControlInput {
  uint32_t module = 0;
  uint32_t task = 0;
  bool is_queue = false;      // filled by other tasks
  uint32_t size_pkts = 0;     // of a queue: capacity of each of its rings
  bool holds_back = false;    // of a queue: tasks that fill it do not poll while it is full
  uint32_t window_pkts = 0;   // of a closed loop: packets in flight; 0: not a closed loop
  bool is_scheduler = false;  // packets wait there for their turn on a link, whatever the triggers
  bool is_stage = false;      // of a queue: packets go through a device
  uint32_t max_job_pkts = 0;  // of a stage: largest batch; 0: placement decides about its batches
};

struct ControlModel {
  uint32_t batch_limit_pkts = kDefaultBatchPkts;  // B
  std::vector<ControlModule> modules;             // in the order of the pipeline file
  std::vector<ControlEdge> edges;                 // a queue's edges lead into another task
  std::vector<ControlFlow> flows;                 // declared ones, in order
  std::vector<ControlTask> tasks;
  std::vector<std::string> workers;  // their names
  std::vector<ControlInput> inputs;  // of all tasks, in their order
  Legs legs;                         // of flows that cross several tasks
};

// A module's counts of one period.
struct ModulePeriod {
  uint64_t batches = 0;  // executed
  uint64_t pkts = 0;
  uint64_t arrived_batches = 0;  // at its buffer, before merging; `batches` while bypassed
  uint64_t arrived_pkts = 0;
  uint64_t dropped_pkts = 0;
  uint64_t late_releases = 0;
  CauseCount causes[kCauses];
  CostSamples samples;  // sampled executions; `cycles` are nanoseconds here
  CostLaw cost;         // the current estimate
  uint32_t trigger_pkts = 0;
  uint32_t held_pkts = 0;  // at the end of the period
  uint64_t age_limit_ns = 0;
  // Explicit scheduling; 0 where the module is not a unit.
  uint32_t weight = 0;
  uint64_t pace_ns = 0;
  uint64_t turns = 0;
  uint64_t charged = 0;  // ns or turns, depending on how the task is scheduled
};

// What the packet schedulers on a flow's path guarantee. A flow may use several flows of a scheduler in a
// period: the longest bound counts. Bounds of several schedulers add up.
struct EgressPromise {
  static constexpr uint64_t kNone = ~0ULL;
  bool is_on_way = false;
  bool is_beyond_share = false;  // sends more than its share, and its queue does not empty
  uint32_t flow = 0;             // index in the scheduler
  uint64_t bound_ns = kNone;     // from enqueue to release
  uint64_t share_bps = 0;        // counting packet bytes; 0: no guarantee

  // 0: none.
  [[nodiscard]] uint64_t bound_or_0_ns() const { return bound_ns == kNone ? 0 : bound_ns; }
  // Merges another flow of the scheduler: the longer bound counts, and being beyond any of the shares.
  void add(const EgressPromise& other) {
    const bool is_beyond = is_beyond_share || other.is_beyond_share;
    if (!is_on_way || other.bound_ns > bound_ns) *this = other;
    is_beyond_share = is_beyond;
  }
  // Adds another scheduler on the path; the smaller share counts.
  void join(const EgressPromise& other) {
    if (!other.is_on_way) return;
    if (!is_on_way) {
      *this = other;
      return;
    }
    const bool has_bound = bound_ns != kNone && other.bound_ns != kNone;
    const uint64_t both_ns = has_bound ? bound_ns + other.bound_ns : kNone;
    const bool is_beyond = is_beyond_share || other.is_beyond_share;
    if (other.share_bps < share_bps) *this = other;
    bound_ns = both_ns;
    is_beyond_share = is_beyond;
  }
};

struct FlowPeriod {
  uint64_t slo_ns = 0;  // 0 = none
  uint64_t pkts = 0;    // packets that left
  uint64_t late_pkts = 0;
  uint64_t delay_sum_ns = 0;
  uint64_t delay_max_ns = 0;
  uint64_t delay_ns = 0;  // the percentile asked for, from 3 % wide buckets; 0: no packets
  uint64_t p50_ns = 0;    // same bucket width; means little for few packets
  uint64_t p99_ns = 0;
  uint64_t slo_buckets[SloBuckets::kCount] = {};
  EgressPromise egress;
};

struct TaskPeriod {
  uint64_t in_pkts = 0;
  uint64_t runs = 0;        // polls that found packets
  uint64_t idle_polls = 0;  // polls that found none
  uint64_t busy_ns = 0;     // loops that ran something
  uint64_t idle_ns = 0;
  uint64_t run_p99_ns = 0;  // p99 of the time from one poll to the next, busy loops only
  uint64_t run_max_ns = 0;
  uint64_t gaps = 0;         // gaps in the worker's time that its own work does not explain
  uint64_t gap_ns = 0;       // included in the times above
  uint64_t busy_gap_ns = 0;  // of these, in busy_ns
  uint64_t firings = 0;
  uint32_t worst_firings_per_run = 0;
  uint32_t poll_pkts = 0;  // most packets of a poll, at the end of the period; 0: not told

  // Busy time less gaps, which triggers cannot change.
  [[nodiscard]] double work_ns() const {
    return static_cast<double>(busy_ns - std::min(busy_ns, busy_gap_ns));
  }
};

struct PeriodSnapshot {
  uint64_t now_ns = 0;
  uint64_t period_ns = 0;
  std::vector<ModulePeriod> modules;
  std::vector<FlowPeriod> flows;
  std::vector<TaskPeriod> tasks;
  std::vector<InputPeriod> inputs;  // as ControlModel has them
  std::vector<FlowPeriod> legs;     // as ControlModel has them; their SLO is 0
};

// Number of the input where the module is polled; that of all inputs where it is not.
inline size_t input_of(const ControlModel& model, uint32_t module) {
  const auto at = std::ranges::find(model.inputs, module, &ControlInput::module);
  return static_cast<size_t>(at - model.inputs.begin());
}

// The limit of a task's polls. Programs that give periods need not know of it.
inline uint32_t poll_limit_pkts(const ControlModel& model, const TaskPeriod& task) {
  return task.poll_pkts == 0 ? model.batch_limit_pkts : task.poll_pkts;
}

// Whether polls took this share of what they may, on average: then the inputs are hardly ever empty.
inline bool are_polls_full(const ControlModel& model, const TaskPeriod& task, double share) {
  return task.runs != 0 && static_cast<double>(task.in_pkts) >= share *
                                                                    poll_limit_pkts(model, task) *
                                                                    static_cast<double>(task.runs);
}

// Packets that inputs brought into the pipeline. Packets that a task takes from a queue were in it before.
inline uint64_t entered_pkts(const ControlModel& model, const PeriodSnapshot& period) {
  uint64_t pkts = 0;
  for (size_t m = 0; m < model.modules.size(); ++m) {
    if (!model.modules[m].has_buffer) pkts += period.modules[m].pkts;
  }
  return pkts;
}

// A new setting of one buffer. `reason` is static text: "push", "recover", "pull", "descend", ...
struct BufferChange {
  uint32_t module = 0;
  uint32_t trigger_pkts = 0;
  uint64_t age_limit_ns = 0;  // kKeepAge: unchanged
  const char* reason = "";
  // Explicit scheduling. On an input: the weight of polling.
  uint32_t weight = 0;           // 1..kMaxWeight; 0 = unchanged
  uint64_t pace_ns = kKeepPace;  // a turn this often whatever is held; 0 = no such rule
  static constexpr uint64_t kKeepPace = ~0ULL;
};
inline constexpr uint64_t kKeepAge = ~0ULL;
inline constexpr uint32_t kKeepTrigger = ~0U;  // the engine's own edits only
// Restores the engine's own stranding limit.
inline constexpr uint64_t kStrandingAge = 0;

// Credit of a queue: how many packets each feeder may have waiting there.
struct CreditChange {
  uint32_t module = 0;  // the queue
  uint32_t credit_pkts = 0;
};

// Batches of a stage, wherever they run.
struct StageChange {
  uint32_t module = 0;  // the stage
  uint32_t batch_pkts = 0;
  uint64_t age_limit_ns = 0;
};

// How many packets a poll of the task may take: 1 to the batch size.
struct PollChange {
  uint32_t task = 0;
  uint32_t poll_pkts = 0;
};

// A module that is to move to another worker, together with everything that it alone feeds.
struct MoveChange {
  uint32_t module = 0;
  uint32_t worker = 0;
  const char* reason = "";
};

enum class FlowState : uint8_t {
  kNoSlo,
  kMet,
  kViolating,   // at present
  kInfeasible,  // no known triggers meet the SLO at this load
  kInherent,    // the SLO is shorter than the flow's modules take by themselves
};
inline constexpr const char* kFlowStateNames[] = {"no_slo", "met", "violating", "infeasible",
                                                  "inherent"};

// One task's share of a flow's delay budget, where a controller divides it.
struct LegBudget {
  double budget_ns = 0;
  double measured_ns = 0;
  double load_per_us = 0;  // reduction of the busy share per additional microsecond of budget
};

// A controller's verdict on a flow; the terms of its delay budget are in ns.
struct FlowVerdict {
  FlowState state = FlowState::kNoSlo;
  double turnaround_ns = 0;          // from arrival in the ring to the end of the run's other work
  double fill_ns = 0;                // sum over the path
  double service_ns = 0;             // sum over the path
  double slack_ns = 0;               // negative: by how much the SLO is missed
  double multiplier_pps_per_us = 0;  // packets per second gained by one more microsecond of SLO
  std::string hint;                  // what would help when the SLO cannot be met
  std::vector<LegBudget> legs;       // as Legs::of_flow; empty where the budget is not divided
};

struct Decision {
  std::vector<BufferChange> changes;  // each module at most once; modules not listed stay unchanged
  std::vector<CreditChange> credits;  // each queue at most once
  std::vector<PollChange> polls;      // each task at most once
  std::vector<StageChange> stages;    // each stage at most once
  // Carried out after everything else is in force. The next decision is for another model.
  std::vector<MoveChange> moves;
  std::vector<FlowVerdict> flows;  // empty, or one for each flow
  double predicted_load = 0;       // busy share of the busiest task, 0 = not predicted
  double predicted_pps = 0;        // highest rate by the model, 0 = not predicted
};

}  // namespace batchplane::exec
