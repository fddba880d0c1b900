// SPDX-License-Identifier: BSD-3-Clause
// controller.h - the interface of everything that chooses triggers and age limits.
//
// A step is a function of the snapshot and of what earlier snapshots left in the controller: it
// reads no clock, no file and no global, so that the same snapshots give the same decisions in the
// daemon, in the simulator and in a test.
#pragma once

#include <string>

#include "exec/control.h"
#include "slo/model/explanation.h"

namespace batchplane::slo {

using Model = exec::ControlModel;
using Snapshot = exec::PeriodSnapshot;
using exec::Decision;

// Who takes parts of a pipeline to other workers, beside the controller of buffers (slo/cores/decompose.h).
enum class Decompose : uint8_t { kOff, kGreedy, kNormGreedy, kBalance };
inline constexpr const char* kDecomposeNames[] = {"off", "greedy", "normgreedy", "balance"};

// Thresholds of all controllers; each uses those that concern it. Names and defaults are the
// paper's where it has them.
struct Settings {
  double percentile = 0.95;         // of the delay that SLOs are about; 1 = max, 0 = mean
  double tolerance = 0.05;          // delta: a flow is tight from (1 - delta) * SLO on
  double push_ratio = 0.7;          // of B: batches arriving this large need no buffer
  uint32_t pull_pkts = 4;           // q_min = floor(a) + this
  double controllable_bound = 0.5;  // of batchiness: above, a buffer does not pay
  uint32_t max_iterations = 3;      // of constraint dropping in one step
  uint64_t stranding_limit_ns = 1'000'000'000;
  // The engine fires the oldest buffer when its input is empty (`idle: release`): below saturation
  // a buffer then collects next to nothing.
  bool releases_when_idle = false;
  uint64_t ring_pkts = 64;           // capacity of the input ring
  uint64_t turnaround_extra_ns = 0;  // measured elsewhere: what a poll adds
  // Of `primal`: every so many periods the master divides the flows' budgets anew.
  uint32_t master_periods = 10;
  double budget_step = 0.5;   // delta: of a flow's SLO, where the price of its budget is its load
  double budget_shift = 0.1;  // of a flow's SLO: what a task past its budget gets at a time
  Decompose decompose = Decompose::kOff;  // every master_periods
  double hold_ns_per_pkt = 1.5;           // what holding costs a packet: it leaves the cache
  double hold_ns_per_batch = 6.5;         // and each batch that a buffer lets go
};

// Controllers reckon with two numbers a module. This is the one place where the shape of a law that
// is a table is left behind.
inline const CostLaw::Line& cost_line(const exec::ModulePeriod& module) {
  return module.cost.line();
}

class Controller {
 public:
  virtual ~Controller() = default;
  [[nodiscard]] virtual const std::string& name() const = 0;
  // One period: what to change. Called on the control thread or in virtual time.
  virtual Decision step(const Snapshot& snapshot) = 0;
  // Why the last decision is what it is.
  [[nodiscard]] virtual Explanation explain() const = 0;
};

}  // namespace batchplane::slo
