// SPDX-License-Identifier: BSD-3-Clause
// budgets.h - the master of the multicore paper: divides each flow's SLO over the tasks on its way,
// by what one nanosecond more would save in each.
//
// Primal decomposition, equations (11) to (13) and algorithm 2: budgets are the public variables,
// each task's triggers its private ones. Where the paper and its program leave units and signs
// open, docs/controllers.md says what is done here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace batchplane::slo {

// One task on a flow's way, over the periods since the master's last step.
struct LegState {
  double budget_ns = 0;
  double delay_ns = 0;     // measured, in the last period
  double load_per_ns = 0;  // what one more nanosecond of budget would save
};

enum class BudgetStep : uint8_t {
  kStatic,       // budgets stay as they are
  kFixed,        // a step of constant size
  kDiminishing,  // the k-th step is k times smaller
};

struct BudgetRule {
  BudgetStep step = BudgetStep::kFixed;
  double step_size = 0.5;  // delta
  double shift = 0.1;      // of the SLO: what a leg past its budget gets
};

// An SLO in equal parts.
std::vector<LegState> equal_budgets(double slo_ns, size_t n_legs);

// One step of the master for one flow: legs past their budgets get a share of the SLO from those
// that have some to spare; where none is, budget moves to where its price is higher. The sum stays
// the SLO, and no budget is negative. `leader` gets and gives what the others do not; `load` is of
// all tasks; `number` counts the master's steps from 1.
void divide_budget(double slo_ns, size_t leader, double load, uint64_t number,
                   const BudgetRule& rule, std::vector<LegState>& legs);

}  // namespace batchplane::slo
