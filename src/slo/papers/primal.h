// SPDX-License-Identifier: BSD-3-Clause
// primal.h - the multicore paper's controller: `full` in each task, on budgets that a master
// divides among the tasks.
#pragma once

#include <memory>
#include <string>

#include "slo/model/controller.h"
#include "slo/papers/budgets.h"

namespace batchplane::slo {

// "primal(static)", "primal(fixstep)", "primal(diminishing)".
std::unique_ptr<Controller> make_primal(std::string name, const Model& model,
                                        const Settings& settings, BudgetStep step);

}  // namespace batchplane::slo
