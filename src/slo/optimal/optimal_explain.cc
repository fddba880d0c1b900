// SPDX-License-Identifier: BSD-3-Clause
// optimal_explain.cc - what the optimal controller has decided from.
#include "slo/optimal/optimal.h"

namespace batchplane::slo {

FlowExplanation Optimal::explain_flow(uint32_t f) const {
  const FlowMemory& memory = flows_[f];
  const exec::FlowVerdict& verdict = memory.verdict;
  const Program& program = view_.program();
  const ProgramFlow& flow = program.flows[f];
  FlowExplanation told{.state = verdict.state,
                       .slo_ns = memory.slo_ns,
                       .measured_ns = memory.measured_ns,
                       .margin_ns = memory.slo_ns * settings_.tolerance,
                       .turnaround_ns = static_cast<double>(settings_.turnaround_extra_ns),
                       .bias_ns = memory.bias.ns,
                       .service_ns = verdict.service_ns,
                       .care_ns = care_ns_[f],
                       .reserve_ns = memory.reserve_ns,
                       .slack_ns = verdict.slack_ns,
                       .multiplier_pps_per_us = verdict.multiplier_pps_per_us,
                       .hint = verdict.hint};
  // By the model; what was measured beyond it is a term of its own, which may be negative.
  for (uint32_t i = flow.tasks_begin; i < flow.tasks_end; ++i) {
    const uint32_t t = program.flow_tasks[i];
    if (t < model_chosen_.turnaround_ns.size())
      told.turnaround_ns += model_chosen_.turnaround_ns[t];
  }
  for (uint32_t i = flow.modules_begin; i < flow.modules_end; ++i) {
    const uint32_t h = program.flow_modules[i];
    if (model_chosen_.fill_ns.size() <= h) continue;
    told.fill_ns += model_chosen_.fill_ns[h];
    told.modules.push_back({view_.segments()[h].head, chosen_[h], model_chosen_.fill_ns[h],
                            model_chosen_.service_ns[h]});
  }
  return told;
}

ModuleExplanation Optimal::explain_module(uint32_t h) const {
  const HeadMemory& head = heads_[h];
  const ProgramModule& module = view_.program().modules[h];
  return {.module = view_.segments()[h].head,
          .trigger_pkts = chosen_[h],
          .age_limit_ns = head.age_limit_ns,
          .arriving_pkts = module.arriving_pkts,
          .cost_per_batch_ns = module.cost_per_batch_ns,
          .cost_per_pkt_ns = module.cost_per_pkt_ns,
          .hold_ns = view_.program().hold_ns,
          .why = head.why,
          .binding_flow = head.binding_flow,
          .multiplier_pps_per_us = head.price};
}

// What was measured, and which of it decides.
MeasuredExplanation Optimal::explain_guard() const {
  static constexpr const char* kChoices[] = {"as solved", "the fastest that was measured",
                                             "a little more than the fastest that was measured",
                                             "a little less than what was late"};
  const OperatingPoint* best = guard_.best();
  return {.in_force = kChoices[static_cast<uint32_t>(guard_.choice())],
          .best_pps = best != nullptr ? best->rate * 1e9 : 0.0,
          .bypassed_pps = guard_.bypassed_rate() * 1e9,
          .periods_to_next_try = guard_.periods_left()};
}

Explanation Optimal::explain() const {
  Explanation told;
  for (uint32_t f = 0; f < flows_.size(); ++f) told.flows.push_back(explain_flow(f));
  for (uint32_t h = 0; h < heads_.size(); ++h) told.modules.push_back(explain_module(h));
  told.measured = explain_guard();
  for (uint32_t t = 0; t < overloads_.size(); ++t) {
    const Overload& overload = overloads_[t];
    if (!overload.is_carrying && !overload.is_known) continue;
    told.overload.push_back({.task = t,
                             .is_carrying = overload.is_carrying,
                             .rate_pps = view_.program().tasks[t].rate_pkts_per_ns * 1e9,
                             .load_ratio = overload.load,
                             .max_load_ratio = overload.max_load});
  }
  return told;
}

}  // namespace batchplane::slo
