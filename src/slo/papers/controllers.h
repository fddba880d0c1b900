// SPDX-License-Identifier: BSD-3-Clause
// controllers.h - makes the controllers from the papers.
#pragma once

#include <memory>
#include <string>

#include "slo/model/controller.h"
#include "slo/papers/budgets.h"

namespace batchplane::slo {

// The same constant trigger, in 0..B, at every controlled module.
std::unique_ptr<Controller> make_fixed(std::string name, const Model& model,
                                       const Settings& settings, uint32_t trigger_pkts);

// Each buffer is either bypassed or full.
std::unique_ptr<Controller> make_onoff(const Model& model, const Settings& settings);

// The method of feasible directions: each period moves one module along its own gradient, as far as
// the flows allow.
std::unique_ptr<Controller> make_feasdir(const Model& model, const Settings& settings);

struct FullOptions {
  bool has_age_limits = false;  // buffers get age limits from the slack of their flows
  bool keeps_triggers = false;  // decides only age limits: triggers are set elsewhere
  // As the published program, where it affects its figures: beside what descend() says, buffers grow
  // up to the SLO, not to SLO * (1 - tolerance), and the k-th period multiplies aggregated costs by k.
  bool is_original = false;
};
// Projected gradient: each period takes one step from the measured state towards the least load
// that the SLOs allow.
std::unique_ptr<Controller> make_full(std::string name, const Model& model,
                                      const Settings& settings, const FullOptions& options);

// For several tasks: `full` in each, on budgets that a master divides among the tasks.
std::unique_ptr<Controller> make_primal(std::string name, const Model& model,
                                        const Settings& settings, BudgetStep step);

// Rate-cost proportional shares: a unit's weight is its arrival rate times its cost per packet,
// measured over the last periods. The task itself does backpressure and early drop.
std::unique_ptr<Controller> make_nfvnice(const Model& model, const Settings& settings);

}  // namespace batchplane::slo
