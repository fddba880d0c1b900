// SPDX-License-Identifier: BSD-3-Clause
// full.h - the paper's projected-gradient controller: each period it takes one step from the
// measured state towards the least load that the SLOs allow.
#pragma once

#include <memory>
#include <string>

#include "slo/model/controller.h"
#include "slo/papers/descend.h"

namespace batchplane::slo {

struct FullOptions {
  DescendOptions descend;
  bool has_age_limits = false;  // buffers get age limits from the slack of their flows
  bool keeps_margin = true;     // buffers grow up to SLO * (1 - tolerance), not up to the SLO
  bool grows_costs = false;     // aggregated costs are multiplied by k in the k-th period
  bool keeps_triggers = false;  // decides only age limits: triggers are set elsewhere

  // The behaviour of the published program, where it affects its figures.
  static FullOptions original() { return {{true, true, true}, false, false, true}; }
};

std::unique_ptr<Controller> make_full(std::string name, const Model& model,
                                      const Settings& settings, const FullOptions& options);

}  // namespace batchplane::slo
