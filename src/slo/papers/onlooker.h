// SPDX-License-Identifier: BSD-3-Clause
// onlooker.h - explains periods for controllers that do not look at the snapshot themselves.
#pragma once

#include "slo/papers/verdict.h"

namespace batchplane::slo {

class Onlooker {
 public:
  Onlooker(const Model& model, const Settings& settings) : settings_(settings), topology_(model) {}

  void see(const Snapshot& snapshot) { snapshot_ = snapshot; }
  // why: the reason given for every trigger.
  [[nodiscard]] Explanation explain(const char* why) const {
    if (snapshot_.modules.empty()) return {};
    const PeriodState state = measure(topology_, settings_, snapshot_, {});
    return explain_period(topology_, settings_, snapshot_, state,
                          judge(topology_, settings_, snapshot_, state), why);
  }

 private:
  Settings settings_;
  Topology topology_;
  Snapshot snapshot_;
};

}  // namespace batchplane::slo
