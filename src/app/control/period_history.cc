// SPDX-License-Identifier: BSD-3-Clause
#include "app/control/period_history.h"

#include <algorithm>

namespace batchplane::app {

void PeriodHistory::note(const exec::ControlModel& model, const exec::PeriodSnapshot& period,
                         const ControlTap::Gaps& gaps, const ControlTap::Gaps& generators) {
  Period kept{
      .now_ns = period.now_ns,
      .period_ns = period.period_ns,
      .gap_ns = gaps.ns,
      .gaps = gaps.count,
      // Less than before: a generator has been removed, and its part of the sum with it.
      .generator_gap_ns = generators.ns - std::min(generators.ns, last_generators_.ns),
      .generator_gaps = generators.count - std::min(generators.count, last_generators_.count),
      .in_pkts = exec::entered_pkts(model, period),
      .modules = {},
      .flows = {}};
  last_generators_ = generators;
  kept.modules.reserve(period.modules.size());
  for (const exec::ModulePeriod& module : period.modules) {
    kept.modules.push_back({module.batches, module.pkts});
  }
  kept.flows.reserve(period.flows.size());
  for (const exec::FlowPeriod& flow : period.flows) {
    kept.flows.push_back({flow.pkts, flow.late_pkts, flow.delay_ns});
  }
  if (periods_.size() == kKept) periods_.pop_front();
  periods_.push_back(std::move(kept));
}

Value PeriodHistory::value(const exec::ControlModel& model, double percentile) const {
  List modules;
  for (const exec::ControlModule& module : model.modules) modules.emplace_back(module.name);
  List flows;
  for (const exec::ControlFlow& flow : model.flows) flows.emplace_back(flow.name);
  List periods;
  for (const Period& period : periods_) {
    List ran;
    for (const Module& m : period.modules) ran.emplace_back(List{m.batches, m.pkts});
    List left;
    for (const Flow& f : period.flows) left.emplace_back(List{f.pkts, f.late_pkts, f.delay_ns});
    periods.emplace_back(Dict{{"now_ns", period.now_ns},
                              {"period_ns", period.period_ns},
                              {"gap_ns", period.gap_ns},
                              {"gaps", period.gaps},
                              {"generator_gap_ns", period.generator_gap_ns},
                              {"generator_gaps", period.generator_gaps},
                              {"in_pkts", period.in_pkts},
                              {"modules", std::move(ran)},
                              {"flows", std::move(left)}});
  }
  return Dict{{"modules", std::move(modules)},
              {"flows", std::move(flows)},
              {"percentile", percentile},
              {"periods", std::move(periods)}};
}

}  // namespace batchplane::app
