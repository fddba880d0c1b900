// SPDX-License-Identifier: BSD-3-Clause
// controller.h - the interface of everything that chooses triggers and age limits.
//
// A step depends only on the snapshot and on the controller's state from earlier snapshots. It
// reads no clock, file or global, so the same snapshots give the same decisions in the daemon, the
// simulator and tests.
#pragma once

#include <string>

#include "exec/control.h"
#include "slo/model/explanation.h"

namespace batchplane::slo {

using Model = exec::ControlModel;
using Snapshot = exec::PeriodSnapshot;
using exec::Decision;

// Rules for moving parts of a pipeline to other workers, besides the controller of buffers
// (slo/cores/decompose.h).
enum class Decompose : uint8_t { kOff, kGreedy, kNormGreedy, kBalance };
inline constexpr const char* kDecomposeNames[] = {"off", "greedy", "normgreedy", "balance"};

// Thresholds of all controllers; each uses the ones that apply to it. Names and defaults follow the
// paper where it has them.
struct Settings {
  double percentile = 0.95;         // of delay that SLOs bound; 1 = max, 0 = mean
  double tolerance = 0.05;          // delta: a flow is tight from (1 - delta) * SLO on
  double violated_ratio = 0.004;    // share of periods whose SLOs `optimal` may break
  double push_ratio = 0.7;          // of B: batches arriving this large need no buffer
  uint32_t pull_pkts = 4;           // q_min = floor(a) + this
  double controllable_bound = 0.5;  // of batchiness: above, a buffer does not pay
  uint32_t max_iterations = 3;      // of constraint dropping in one step
  uint64_t stranding_limit_ns = 1'000'000'000;
  // The engine fires the oldest buffer when its input is empty (`idle: release`), so below
  // saturation buffers collect very little.
  bool releases_when_idle = false;
  uint64_t turnaround_extra_ns = 0;  // time that polling adds, measured separately
  // For `primal`: the master redistributes the flows' budgets once every this many periods.
  uint32_t master_periods = 10;
  double budget_step = 0.5;   // delta: share of a flow's SLO moved when budget price equals load
  double budget_shift = 0.1;  // share of a flow's SLO that a task over its budget gets per step
  Decompose decompose = Decompose::kOff;  // every master_periods
  double hold_ns_per_pkt = 1.5;           // cost of holding a packet: it leaves the cache
  double hold_ns_per_batch = 6.5;         // and of each batch that a buffer releases
};

// Controllers use a cost per batch and a cost per packet for each module. Only here is a cost table
// reduced to that line.
inline const CostLaw::Line& cost_line(const exec::ModulePeriod& module) {
  return module.cost.line();
}

class Controller {
 public:
  virtual ~Controller() = default;
  [[nodiscard]] virtual const std::string& name() const = 0;
  // Returns the changes to make after one period, whose rows are those of the model; inputs may be
  // left out. Called on the control thread or in virtual time.
  virtual Decision step(const Snapshot& snapshot) = 0;
  // The reasons for the last decision.
  [[nodiscard]] virtual Explanation explain() const = 0;
};

}  // namespace batchplane::slo
