// SPDX-License-Identifier: BSD-3-Clause
// central_explain.cc - whether each flow's SLO is kept, and where its budget goes: by term, and task
// by task.
#include <algorithm>

#include "exec/promise.h"
#include "slo/cores/central.h"

namespace batchplane::slo {

// Packets a second that one more microsecond of the flow's budget would buy.
double Central::pps_per_us(uint32_t f) const {
  if (!found_.is_saturated || found_.rate_pkts_per_ns <= 0) return 0;
  // Prices are of the weighted load at a rate R: load per ns times R is the share of the rate.
  return found_.solution.prices[f] * found_.rate_pkts_per_ns * 1e9 * 1e3;
}

// Turnaround, ring, fills and services of each task that the flow crosses.
void Central::divide(uint32_t f) {
  const Program& program = view_.program();
  const Evaluation& at = found_.solution.model;
  const ProgramFlow& row = program.flows[f];
  Flow& flow = flows_[f];
  if (row.tasks_end - row.tasks_begin < 2) return;
  for (uint32_t i = row.tasks_begin; i < row.tasks_end; ++i) {
    const uint32_t task = program.flow_tasks[i];
    exec::LegBudget leg{.budget_ns = at.turnaround_ns[task] + ring_ns_[task],
                        .load_per_us = found_.solution.prices[f] * 1e3};
    for (uint32_t k = row.modules_begin; k < row.modules_end; ++k) {
      const uint32_t v = program.flow_modules[k];
      if (program.modules[v].task == task) leg.budget_ns += at.fill_ns[v] + at.service_ns[v];
    }
    flow.verdict.legs.push_back(leg);
  }
}

void Central::judge_flow(const exec::FlowPeriod& period, uint32_t f) {
  const Program& program = view_.program();
  const Evaluation& at = found_.solution.model;
  const ProgramFlow& row = program.flows[f];
  Flow& flow = flows_[f];
  exec::FlowVerdict& verdict = flow.verdict;
  verdict = {};
  verdict.turnaround_ns = flow.ring_ns;
  for (uint32_t i = row.tasks_begin; i < row.tasks_end; ++i) {
    verdict.turnaround_ns += at.turnaround_ns[program.flow_tasks[i]];
  }
  for (uint32_t i = row.modules_begin; i < row.modules_end; ++i) {
    verdict.fill_ns += at.fill_ns[program.flow_modules[i]];
    verdict.service_ns += at.service_ns[program.flow_modules[i]];
  }
  if (row.modules_begin == row.modules_end) verdict.service_ns = view_.min_service_ns(f);
  divide(f);
  if (flow.slo_ns <= 0) return;
  verdict.slack_ns = flow.slo_ns - flow.measured_ns;
  verdict.multiplier_pps_per_us = pps_per_us(f);
  const bool is_broken = exec::is_slo_broken(period, settings_.percentile);
  verdict.state = is_broken ? exec::FlowState::kViolating : exec::FlowState::kMet;
  if (found_.solution.is_infeasible[f]) {
    verdict.state = exec::FlowState::kInfeasible;
    verdict.hint =
        "no triggers and ring credits are known that keep it: loosen the SLO, lower the load, or "
        "divide the work over more workers";
  }
  if (view_.min_service_ns(f) > flow.slo_ns) {
    verdict.state = exec::FlowState::kInherent;
    verdict.hint = "its modules alone take longer: loosen the SLO or shorten the path";
  }
}

void Central::judge(const Snapshot& snapshot, Decision& decision) {
  decision.predicted_pps = found_.is_saturated ? found_.rate_pkts_per_ns * 1e9 : 0;
  decision.predicted_load =
      std::min(1.0, bottleneck_ns(joint_, found_.solution.model) * found_.rate_pkts_per_ns);
  for (uint32_t f = 0; f < flows_.size(); ++f) {
    judge_flow(snapshot.flows[f], f);
    for (size_t i = 0; i < flows_[f].verdict.legs.size(); ++i) {
      const exec::Legs& legs = model_.legs;
      if (f >= legs.of_flow.size() || i >= legs.of_flow[f].size()) continue;
      flows_[f].verdict.legs[i].measured_ns =
          static_cast<double>(snapshot.legs[legs.of_flow[f][i]].delay_ns);
    }
    decision.flows.push_back(flows_[f].verdict);
  }
}

FlowExplanation Central::explain_flow(uint32_t f) const {
  const Program& program = view_.program();
  const Evaluation& at = found_.solution.model;
  const Flow& flow = flows_[f];
  FlowExplanation told{.state = flow.verdict.state,
                       .slo_ns = flow.slo_ns,
                       .measured_ns = flow.measured_ns,
                       .margin_ns = flow.slo_ns * settings_.tolerance,
                       .turnaround_ns = flow.verdict.turnaround_ns,
                       .fill_ns = flow.verdict.fill_ns,
                       .service_ns = flow.verdict.service_ns,
                       .multiplier_pps_per_us = flow.verdict.multiplier_pps_per_us,
                       .hint = flow.verdict.hint,
                       .legs = flow.verdict.legs};
  const double modelled_ns = told.turnaround_ns + told.fill_ns + told.service_ns;
  told.bias_ns = (flow.ratio - 1) * modelled_ns;
  told.slack_ns = flow.slo_ns - modelled_ns - told.bias_ns;
  for (uint32_t i = program.flows[f].modules_begin; i < program.flows[f].modules_end; ++i) {
    const uint32_t v = program.flow_modules[i];
    told.modules.push_back(
        {view_.segments()[v].head, triggers_[v], at.fill_ns[v], at.service_ns[v]});
  }
  return told;
}

ModuleExplanation Central::explain_module(uint32_t h) const {
  const ProgramModule& module = view_.program().modules[h];
  ModuleExplanation told{.module = view_.segments()[h].head,
                         .trigger_pkts = triggers_[h],
                         .age_limit_ns = triggers_[h] > 0 ? age_ns_[h] : 0,
                         .arriving_pkts = module.arriving_pkts,
                         .cost_per_batch_ns = module.cost_per_batch_ns,
                         .cost_per_pkt_ns = module.cost_per_pkt_ns,
                         .hold_ns = view_.program().hold_ns};
  if (module.share <= 0) {
    told.why = "no traffic";
  } else if (triggers_[h] == 0) {
    told.why =
        "bypassed: holding saves nothing on the workers that set the pace, or no flow has room";
  } else {
    told.why =
        triggers_[h] >= model_.batch_limit_pkts ? "full batches" : "as large as budgets allow";
  }
  double highest = 0;
  for (uint32_t f = 0; f < flows_.size(); ++f) {
    const ProgramFlow& row = view_.program().flows[f];
    const auto begin = view_.program().flow_modules.begin() + row.modules_begin;
    const auto end = view_.program().flow_modules.begin() + row.modules_end;
    if (found_.solution.prices[f] <= highest || std::find(begin, end, h) == end) continue;
    highest = found_.solution.prices[f];
    told.binding_flow = f;
    told.multiplier_pps_per_us = pps_per_us(f);
  }
  return told;
}

Explanation Central::explain() const {
  Explanation told;
  if (found_.solution.prices.size() != flows_.size()) return told;  // before the first step
  for (uint32_t f = 0; f < flows_.size(); ++f) told.flows.push_back(explain_flow(f));
  for (uint32_t h = 0; h < view_.segments().size(); ++h) told.modules.push_back(explain_module(h));
  return told;
}

}  // namespace batchplane::slo
