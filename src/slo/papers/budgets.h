// SPDX-License-Identifier: BSD-3-Clause
// budgets.h - the master of the multicore paper: divides each flow's SLO over the tasks on its
// path, by how much load one more nanosecond would save in each.
//
// Primal decomposition, equations (11) to (13) and algorithm 2: budgets are the public variables,
// each task's triggers its private ones. docs/controllers.md says what is done where the paper and
// its program leave units and signs open.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace batchplane::slo {

// One task on a flow's path, over the periods since the master's last step.
struct LegState {
  double budget_ns = 0;
  double delay_ns = 0;     // measured, in the last period
  double load_per_ns = 0;  // load that one more nanosecond of budget would save
};

enum class BudgetStep : uint8_t {
  kStatic,       // budgets do not change
  kFixed,        // steps of constant size
  kDiminishing,  // step k is k times smaller than the first
};

struct BudgetRule {
  BudgetStep step = BudgetStep::kFixed;
  double step_size = 0.5;  // delta
  double shift = 0.1;      // share of the SLO given to a leg over its budget
};

// Divides an SLO into equal parts.
std::vector<LegState> equal_budgets(double slo_ns, size_t n_legs);

// One master step for one flow. Legs over their budgets get a share of the SLO from legs with
// slack; if there are none, budget moves to where its price is higher. The sum stays equal to the
// SLO, and no budget becomes negative. `leader` balances the changes of the other legs; `load` is
// that of all tasks; `number` counts the master's steps from 1.
void divide_budget(double slo_ns, size_t leader, double load, uint64_t number,
                   const BudgetRule& rule, std::vector<LegState>& legs);

}  // namespace batchplane::slo
