// SPDX-License-Identifier: BSD-3-Clause
// snapshot.h - the state of an engine at one moment: plain data, cumulative since the start.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "exec/demand.h"
#include "exec/flow_meter.h"
#include "exec/node.h"

namespace batchplane::exec {

// A gap in the worker's time that its own work does not explain.
struct LoopGap {
  uint64_t at_ns = 0;
  uint64_t length_ns = 0;
};

// Single writer: the worker. Times by regime add up to the time between first and last loop.
struct WorkerStats {
  uint64_t loops = 0;
  uint64_t busy_ns = 0;      // loops that ran a batch
  uint64_t idle_ns = 0;      // loops in which nothing ran
  uint64_t control_ns = 0;   // commands
  uint64_t gap_ns = 0;       // unexplained part of the above
  uint64_t busy_gap_ns = 0;  // of busy_ns
  uint64_t gaps = 0;
  uint64_t gap_max_ns = 0;
  std::array<LoopGap, 64> recent_gaps = {};
};

// A drop reason; its index is that of the drop counters.
struct DropReasonInfo {
  std::string name;
  std::string meaning;
  std::string remedy;
};

// Explicit scheduling: a module that is a unit, or an input in its role as the polling unit.
struct UnitSnapshot {
  bool is_unit = false;
  uint32_t weight = 0;
  uint32_t queue_pkts = 0;     // 0: the input
  uint32_t max_held_pkts = 0;  // since the start
  uint64_t pace_ns = 0;
  uint64_t turns = 0;
  uint64_t charged = 0;    // nanoseconds, or turns
  double share = 0;        // of what all units of the task were charged
  uint64_t congested = 0;  // times that its queue rose above the high watermark
};

struct ModuleSnapshot {
  std::string name;
  std::string kind;
  std::string worker;
  bool has_buffer = false;  // nodes do, pure inputs do not
  uint64_t batches = 0;
  uint64_t pkts = 0;
  uint64_t held_pkts = 0;  // in its buffer
  uint64_t kept_pkts = 0;  // inside the module
  uint32_t trigger_pkts = 0;
  uint64_t age_limit_ns = 0;
  uint64_t arrived_batches = 0;
  uint64_t arrived_pkts = 0;
  uint64_t late_releases = 0;
  CauseCount causes[kCauses];
  CostSamples cost;
  UnitSnapshot unit;                // explicit scheduling
  std::vector<uint64_t> drops;      // by reason index: ended here
  std::vector<uint64_t> handed_on;  // by reason index: taken on by the drop gate
};

struct WorkerSnapshot {
  std::string name;
  int core = -1;
  WorkerStats stats;
  uint64_t runs = 0;
  uint64_t clock_reads = 0;
  uint64_t originated_pkts = 0;
  uint32_t worst_firings_per_run = 0;
};

struct FlowSnapshot {
  std::string name;
  uint64_t delay_slo_ns = 0;
  FlowEpoch total;                     // since start
  FlowEpoch epoch;                     // since the snapshot before
  std::vector<uint64_t> fine_buckets;  // since start; empty unless asked for
};

struct Balance {
  uint64_t in_pkts = 0;          // polled from ports and sources
  uint64_t originated_pkts = 0;  // made by modules
  uint64_t sent_pkts = 0;        // left by an egress module
  uint64_t dropped_pkts = 0;     // with a reason
  uint64_t held_pkts = 0;        // in buffers, modules and queues
  // Workers are read one after the other, each between two of its runs; workers that take packets are read
  // before those that hand them over. Where workers hand packets around in a circle, this many were counted
  // by the taker but not yet by the giver; otherwise 0.
  uint64_t ahead_pkts = 0;
  // Holds at all times, for any number of workers.
  [[nodiscard]] bool is_exact() const {
    return in_pkts + originated_pkts + ahead_pkts == sent_pkts + dropped_pkts + held_pkts;
  }
};

// A polled module.
struct InputSnapshot {
  std::string module;
  InputCounts counts;
  uint32_t poll_pkts = 0;  // most that a poll of it takes
};

struct Snapshot {
  uint64_t now_ns = 0;
  uint64_t previous_ns = 0;
  std::vector<ModuleSnapshot> modules;  // in the order of the pipeline file
  std::vector<WorkerSnapshot> workers;
  std::vector<FlowSnapshot> flows;  // declared, then "other"
  std::vector<InputSnapshot> inputs;
  Balance balance;
  // By reason index: packets dropped at unconnected gates, and by modules that an apply has removed. Together
  // with the drops of `modules` they add up to balance.dropped_pkts.
  std::vector<uint64_t> other_drops;
};

}  // namespace batchplane::exec
