// SPDX-License-Identifier: BSD-3-Clause
// optimal_verdict.cc - what the optimal controller thinks of each flow and each trigger.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "exec/promise.h"
#include "slo/optimal/optimal.h"

namespace batchplane::slo {
namespace {

constexpr double kPpsPerUs = 1e12;  // from packets per ns and ns of budget

std::string microseconds(double ns) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f us", ns * 1e-3);
  return text;
}

}  // namespace

// At saturation a shorter time of a packet makes fills shorter, which frees more of the budgets: by
// so much of what was saved, at the prices of all flows.
void Optimal::set_feedback() {
  const Program& program = view_.program();
  feedback_.assign(program.tasks.size(), 0);
  for (uint32_t f = 0; f < solution_.prices.size(); ++f) {
    if (solution_.prices[f] <= 0) continue;
    for (uint32_t i = program.flows[f].modules_begin; i < program.flows[f].modules_end; ++i) {
      const uint32_t v = program.flow_modules[i];
      const uint32_t t = program.modules[v].task;
      const double load = model_chosen_.task_pkt_ns[t] * program.tasks[t].rate_pkts_per_ns;
      if (!program.tasks[t].is_saturated || load <= 0) continue;
      feedback_[t] += solution_.prices[f] * model_chosen_.fill_ns[v] / load;
    }
  }
}

// The highest rate of the flow's busiest task is 1 / C; a ns of budget lowers C by price / rate,
// and by what follows from that: a geometric series.
double Optimal::pps_per_us(uint32_t f) const {
  const Program& program = view_.program();
  const ProgramFlow& flow = program.flows[f];
  double best = 0;
  for (uint32_t i = flow.tasks_begin; i < flow.tasks_end; ++i) {
    const uint32_t t = program.flow_tasks[i];
    const ProgramTask& task = program.tasks[t];
    const double pkt_ns = model_chosen_.task_pkt_ns[t];
    if (task.rate_pkts_per_ns <= 0 || pkt_ns <= 0) continue;
    const double price = solution_.prices[f] / task.rate_pkts_per_ns;
    const double gain = price / std::max(0.05, 1 - feedback_[t]);
    best = std::max(best, gain / (pkt_ns * pkt_ns) * kPpsPerUs);
  }
  return best;
}

std::string Optimal::hint_of(uint32_t f) const {
  const exec::FlowVerdict& verdict = flows_[f].verdict;
  const double min_ns = view_.min_service_ns(f);
  if (verdict.state == exec::FlowState::kInherent) {
    return "its modules alone take " + microseconds(min_ns) +
           " for one packet: cheaper modules, another device, or an SLO above that";
  }
  if (verdict.turnaround_ns >= verdict.fill_ns + verdict.service_ns) {
    // Whose work does it wait for?
    const Program& program = view_.program();
    double most = 0;
    uint32_t heaviest = OptimalView::kNoHead;
    for (uint32_t v = 0; v < program.modules.size(); ++v) {
      const double batch = std::max(1.0, batch_pkts(program.modules[v], chosen_[v]));
      const double work = program.modules[v].share / batch * model_chosen_.service_ns[v];
      if (work <= most) continue;
      most = work;
      heaviest = v;
    }
    const std::string name = heaviest == OptimalView::kNoHead
                                 ? "part of the task"
                                 : model_.modules[view_.segments()[heaviest].head].name;
    return "turnaround takes " + microseconds(verdict.turnaround_ns) + ": move " + name +
           " to another core, or allow " +
           microseconds(verdict.turnaround_ns + verdict.fill_ns + verdict.service_ns);
  }
  return "service takes " + microseconds(verdict.service_ns) + " and filling " +
         microseconds(verdict.fill_ns) + ": another device, or allow " +
         microseconds(verdict.turnaround_ns + verdict.fill_ns + verdict.service_ns);
}

// What no trigger can mend.
void Optimal::judge_egress(const exec::FlowPeriod& period, exec::FlowVerdict& verdict) {
  const exec::EgressPromise& egress = period.egress;
  if (!egress.is_on_way) return;
  const bool is_too_long =
      egress.bound_ns != exec::EgressPromise::kNone && egress.bound_ns >= period.slo_ns;
  if (egress.is_beyond_share) {
    verdict.hint =
        "it sends more than its share of the link, so its queue grows: raise its weight there";
  } else if (is_too_long) {
    verdict.hint = "its share of the link alone may take " +
                   microseconds(static_cast<double>(egress.bound_ns)) +
                   ": raise its weight there, or allow more than that";
  }
  if (egress.is_beyond_share && verdict.state == exec::FlowState::kViolating) {
    verdict.state = exec::FlowState::kInfeasible;
  }
}

void Optimal::judge_flow(const exec::FlowPeriod& period, uint32_t f) {
  const Program& program = view_.program();
  const ProgramFlow& flow = program.flows[f];
  exec::FlowVerdict& verdict = flows_[f].verdict;
  verdict = {};
  verdict.turnaround_ns = static_cast<double>(settings_.turnaround_extra_ns) + flows_[f].bias.ns;
  for (uint32_t i = flow.tasks_begin; i < flow.tasks_end; ++i) {
    verdict.turnaround_ns += model_chosen_.turnaround_ns[program.flow_tasks[i]];
  }
  for (uint32_t i = flow.modules_begin; i < flow.modules_end; ++i) {
    verdict.fill_ns += model_chosen_.fill_ns[program.flow_modules[i]];
    verdict.service_ns += model_chosen_.service_ns[program.flow_modules[i]];
  }
  verdict.fill_ns -= model_chosen_.mixing_ns[f];
  if (slo_ns_[f] > 0) {
    verdict.slack_ns = slo_ns_[f] - verdict.turnaround_ns - verdict.fill_ns - verdict.service_ns -
                       view_.egress_ns(f);
  }
  // What was measured below the model is turnaround's at first, but no part is less than nothing.
  const double missing_ns = std::min(0.0, verdict.turnaround_ns);
  verdict.turnaround_ns -= missing_ns;
  verdict.fill_ns = std::max(0.0, verdict.fill_ns + missing_ns);
  if (slo_ns_[f] <= 0) return;
  verdict.multiplier_pps_per_us = pps_per_us(f);
  verdict.state = exec::is_slo_broken(period, settings_.percentile) ? exec::FlowState::kViolating
                                                                    : exec::FlowState::kMet;
  if (is_left_out_[f] || is_freed_[f]) verdict.state = exec::FlowState::kInfeasible;
  if (view_.min_service_ns(f) > slo_ns_[f]) verdict.state = exec::FlowState::kInherent;
  if (verdict.state == exec::FlowState::kInfeasible ||
      verdict.state == exec::FlowState::kInherent) {
    verdict.hint = hint_of(f);
  }
  judge_egress(period, verdict);
}

// Why each trigger is what it is.
void Optimal::explain_heads() {
  const Program& program = view_.program();
  for (HeadMemory& head : heads_) {
    head.binding_flow = ~0U;
    head.price = 0;
  }
  for (uint32_t f = 0; f < program.flows.size(); ++f) {
    const ProgramFlow& flow = program.flows[f];
    for (uint32_t i = flow.modules_begin; i < flow.modules_end; ++i) {
      HeadMemory& head = heads_[program.flow_modules[i]];
      const double price = flows_[f].verdict.multiplier_pps_per_us;
      const bool is_first = head.binding_flow == ~0U;
      if (price > 0 &&
          (is_first || price > flows_[head.binding_flow].verdict.multiplier_pps_per_us)) {
        head.binding_flow = f;
      }
      head.price += price;
    }
  }
  for (uint32_t h = 0; h < heads_.size(); ++h) {
    const ProgramModule& module = program.modules[h];
    const double gain_ns = gain_of_holding_ns(program, module, model_.batch_limit_pkts);
    HeadMemory& head = heads_[h];
    if (module.share <= 0) {
      head.why = "no traffic";
    } else if (gain_ns <= 0) {
      head.why = "batches arrive large enough";
    } else if (chosen_[h] == model_.batch_limit_pkts) {
      head.why = "the largest batch";
    } else if (head.cap_pkts < model_.batch_limit_pkts && chosen_[h] >= head.cap_pkts) {
      head.why = "age limits release earlier";
    } else if (head.binding_flow != ~0U) {
      head.why = "a flow's budget";
    } else {
      head.why = chosen_[h] > 0 ? "turnaround of other flows" : "nothing is left of a budget";
    }
  }
}

// Highest load and rate by the model, with the batches that age limits leave.
void Optimal::predict(Decision& decision) {
  const Program& program = view_.program();
  as_real_.assign(chosen_.begin(), chosen_.end());
  for (uint32_t h = 0; h < chosen_.size(); ++h) {
    const ProgramModule& module = program.modules[h];
    if (chosen_[h] == 0 || limits_ns_[h] == exec::kStrandingAge) continue;
    const double rate = rate_of(program, module, model_chosen_.task_pkt_ns[module.task]);
    const double time_ns = std::max(
        0.0, static_cast<double>(limits_ns_[h]) - model_chosen_.turnaround_ns[module.task] / 2);
    as_real_[h] = std::max(module.arriving_pkts, expected_batch_pkts(chosen_[h], rate * time_ns));
  }
  evaluate(program, as_real_, model_now_);
  for (size_t t = 0; t < program.tasks.size(); ++t) {
    const double pkt_ns = model_now_.task_pkt_ns[t];
    if (pkt_ns <= 0 || program.tasks[t].rate_pkts_per_ns <= 0) continue;
    const double load = program.tasks[t].is_saturated
                            ? 1
                            : std::min(1.0, pkt_ns * program.tasks[t].rate_pkts_per_ns);
    if (load < decision.predicted_load) continue;
    decision.predicted_load = load;
    decision.predicted_pps = 1e9 / pkt_ns;
  }
}

void Optimal::judge(const Snapshot& snapshot, Decision& decision) {
  set_feedback();
  decision.flows.reserve(flows_.size());
  for (uint32_t f = 0; f < flows_.size(); ++f) {
    judge_flow(snapshot.flows[f], f);
    decision.flows.push_back(flows_[f].verdict);
  }
  explain_heads();
  predict(decision);
}

}  // namespace batchplane::slo
