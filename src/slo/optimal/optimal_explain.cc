// SPDX-License-Identifier: BSD-3-Clause
// optimal_explain.cc - explains the optimal controller's decisions.
#include <algorithm>

#include "slo/optimal/optimal.h"

namespace batchplane::slo {

FlowExplanation Optimal::explain_flow(uint32_t f) const {
  const Flow& flow = flows_[f];
  const Program& program = view_.program();
  const ProgramFlow& row = program.flows[f];
  const double ratio = flow.delay.ratio();
  FlowExplanation told{.state = flow.verdict.state,
                       .slo_ns = flow.delay.slo_ns(),
                       .measured_ns = flow.delay.measured_ns(),
                       .margin_ns = std::max(0.0, flow.delay.slo_ns() - may_take_ns(f)),
                       .turnaround_ns = flow.verdict.turnaround_ns / ratio,
                       .fill_ns = flow.verdict.fill_ns / ratio,
                       .service_ns = flow.verdict.service_ns / ratio,
                       .multiplier_pps_per_us = flow.verdict.multiplier_pps_per_us,
                       .hint = flow.verdict.hint,
                       .legs = flow.verdict.legs};
  // Modelled terms; the measured excess is a term of its own, which may be negative.
  const double modelled_ns = told.turnaround_ns + told.fill_ns + told.service_ns;
  told.bias_ns = (ratio - 1) * modelled_ns;
  told.slack_ns = flow.verdict.slack_ns;
  for (uint32_t i = row.modules_begin; i < row.modules_end; ++i) {
    const uint32_t h = program.flow_modules[i];
    const auto [heaviest, share] = view_.heaviest(h);
    told.modules.push_back({.module = view_.module(h),
                            .trigger_pkts = commanded_pkts(h),
                            .fill_ns = at_.fill_ns[h],
                            .service_ns = at_.service_ns[h],
                            .heaviest = heaviest,
                            .heaviest_ns = share * at_.service_ns[h]});
  }
  return told;
}

uint32_t Optimal::commanded_pkts(uint32_t h) const {
  const bool is_stage = view_.is_stage(h) && view_.stages().is_decided(view_.stage_of(h));
  const auto trigger_pkts = static_cast<uint32_t>(chosen_[h]);
  return is_stage ? view_.stages().batch_pkts(view_.stage_of(h), trigger_pkts) : trigger_pkts;
}

const char* Optimal::why(uint32_t h, bool is_bound) const {
  const ProgramModule& module = view_.program().modules[h];
  if (module.share <= 0) return "no traffic";
  if (view_.is_stage(h) && !view_.stages().is_decided(view_.stage_of(h))) {
    return view_.stages().is_placed(view_.stage_of(h)) ? "placement decides" : "its worker runs it";
  }
  if (view_.is_stage(h) && module.max_pkts == 0) return "what comes while the device is busy";
  if (view_.is_stage(h) && chosen_[h] == 0) return "what the device needs to keep up";
  if (module.max_pkts == 0) return "a closed loop is held elsewhere";
  const uint32_t most_pkts = module.max_pkts;
  if (!holding_pays(view_.program(), module, most_pkts)) return "batches arrive large enough";
  if (chosen_[h] == most_pkts) return "the largest batch";
  if (is_bound) return "a flow's budget";
  const Solution& plan = found_.solution;
  const bool is_any_bound =
      std::ranges::any_of(plan.prices, [](double price) { return price > 0; });
  if (!is_any_bound && plan.n_left_out() == 0) return "larger batches gain nothing";
  return chosen_[h] > 0 ? "turnaround of other flows" : "nothing is left of a budget";
}

ModuleExplanation Optimal::explain_module(uint32_t h) const {
  const Program& program = view_.program();
  const ProgramModule& module = program.modules[h];
  ModuleExplanation told{.module = view_.module(h),
                         .trigger_pkts = commanded_pkts(h),
                         .age_limit_ns = limits_ns_[h],
                         .arriving_pkts = module.arriving_pkts,
                         .cost_per_batch_ns = module.cost_per_batch_ns,
                         .cost_per_pkt_ns = module.cost_per_pkt_ns,
                         .hold_ns = program.hold_ns};
  double highest = 0;
  for (uint32_t f = 0; f < flows_.size(); ++f) {
    const auto begin = program.flow_modules.begin() + program.flows[f].modules_begin;
    const auto end = program.flow_modules.begin() + program.flows[f].modules_end;
    const double price = found_.solution.prices[f];
    if (price <= 0 || std::find(begin, end, h) == end) continue;
    told.multiplier_pps_per_us += flows_[f].verdict.multiplier_pps_per_us;
    if (price <= highest) continue;
    highest = price;
    told.binding_flow = f;
  }
  told.why = why(h, told.binding_flow != ModuleExplanation::kNoFlow);
  return told;
}

Explanation Optimal::explain() const {
  Explanation told;
  if (!has_decided_) return told;
  for (uint32_t f = 0; f < flows_.size(); ++f) told.flows.push_back(explain_flow(f));
  for (uint32_t h = 0; h < chosen_.size(); ++h) told.modules.push_back(explain_module(h));
  return told;
}

}  // namespace batchplane::slo
