// SPDX-License-Identifier: BSD-3-Clause
// full.h - the paper's projected-gradient controller: one step towards the least load that the SLOs
// allow each period, from the state that was measured.
#pragma once

#include <memory>
#include <string>

#include "slo/model/controller.h"
#include "slo/papers/descend.h"

namespace batchplane::slo {

struct FullOptions {
  DescendOptions descend;
  bool has_age_limits = false;  // buffers also have an age limit from the slack of their flows
  bool keeps_margin = true;     // buffers grow up to SLO * (1 - tolerance), not up to the SLO
  bool grows_costs = false;     // aggregated costs are k times too high in the k-th period
  bool keeps_triggers = false;  // decides nothing but age limits: somebody else sets triggers

  // The published program's behaviour, where it shows in its figures.
  static FullOptions original() { return {{true, true, true}, false, false, true}; }
};

std::unique_ptr<Controller> make_full(std::string name, const Model& model,
                                      const Settings& settings, const FullOptions& options);

}  // namespace batchplane::slo
