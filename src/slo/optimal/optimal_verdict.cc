// SPDX-License-Identifier: BSD-3-Clause
// optimal_verdict.cc - the optimal controller's verdict on each flow, and the load that it expects.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "exec/promise.h"
#include "slo/optimal/optimal.h"

namespace batchplane::slo {
namespace {

std::string microseconds(double ns) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f us", ns * 1e-3);
  return text;
}

}  // namespace

// At saturation a shorter time per packet also shortens fills, which frees more of every budget.
double Optimal::feedback() const {
  const Program& program = view_.program();
  double feedback = 0;
  for (uint32_t g = 0; g < flows_.size(); ++g) {
    const ProgramFlow& flow = program.flows[g];
    for (uint32_t i = flow.modules_begin; i < flow.modules_end; ++i) {
      const uint32_t v = program.flow_modules[i];
      const uint32_t t = program.modules[v].task;
      const double load = at_.task_pkt_ns[t] * program.tasks[t].rate_pkts_per_ns;
      if (program.tasks[t].is_saturated && load > 0) {
        feedback += found_.solution.prices[g] * at_.fill_ns[v] / load;
      }
    }
  }
  return feedback;
}

// Packets per second that one more microsecond of the flow's budget would buy, including the
// geometric series of the budget freed in turn. The price refers to the weighted load and to the
// model's budget, which is off by the flow's ratio.
double Optimal::pps_per_us(uint32_t f, double feedback, double busiest_ns) const {
  const double price = found_.solution.prices[f];
  if (price <= 0 || busiest_ns <= 0) return 0;
  const double load = std::max(1e-9, at_.load);
  const double gain = price / load / std::max(0.05, 1 - feedback);
  return gain / busiest_ns * 1e9 * 1e3 / flows_[f].delay.ratio();
}

// The module in a task on the flow's way that took most time in the period.
std::string Optimal::heaviest_on_way(const Snapshot& snapshot, uint32_t f) const {
  const Program& program = view_.program();
  const auto begin = program.flow_tasks.begin() + program.flows[f].tasks_begin;
  const auto end = program.flow_tasks.begin() + program.flows[f].tasks_end;
  double most_ns = 0;
  const std::string* name = nullptr;
  for (uint32_t m = 0; m < model_.modules.size(); ++m) {
    const exec::ModulePeriod& module = snapshot.modules[m];
    const double work_ns = cost_line(module).work_ns(static_cast<double>(module.batches),
                                                     static_cast<double>(module.pkts));
    if (work_ns <= most_ns || std::find(begin, end, model_.modules[m].task) == end) continue;
    most_ns = work_ns;
    name = &model_.modules[m].name;
  }
  return name != nullptr ? *name : "part of the task";
}

std::string Optimal::hint_of(const Snapshot& snapshot, uint32_t f) const {
  const exec::FlowVerdict& verdict = flows_[f].verdict;
  const double min_ns = view_.min_service_ns(f);
  const double all_ns = verdict.turnaround_ns + verdict.fill_ns + verdict.service_ns;
  if (verdict.state == exec::FlowState::kInherent) {
    return "its modules alone take " + microseconds(min_ns) +
           " for one packet: cheaper modules, another device, or an SLO above that";
  }
  if (stretch_ > 1) {
    return "no triggers that keep it carry all that comes: lower the load, divide it over more "
           "workers, or allow " +
           microseconds(all_ns);
  }
  if (verdict.turnaround_ns >= verdict.fill_ns + verdict.service_ns) {
    return "turnaround takes " + microseconds(verdict.turnaround_ns) + ": move " +
           heaviest_on_way(snapshot, f) + " to another core, or allow " + microseconds(all_ns);
  }
  return "service takes " + microseconds(verdict.service_ns) + " and filling " +
         microseconds(verdict.fill_ns) + ": another device, or allow " + microseconds(all_ns);
}

namespace {

// Reports egress problems that no trigger can fix.
void judge_egress(const exec::FlowPeriod& period, exec::FlowVerdict& verdict) {
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

}  // namespace

// Divides the delay among the tasks on the flow's path: turnaround, ring, fills and services of
// each.
void Optimal::divide(const Snapshot& snapshot, uint32_t f) {
  const Program& program = view_.program();
  const ProgramFlow& row = program.flows[f];
  exec::FlowVerdict& verdict = flows_[f].verdict;
  if (row.tasks_end - row.tasks_begin < 2 || f >= model_.legs.of_flow.size()) return;
  for (uint32_t i = row.tasks_begin; i < row.tasks_end; ++i) {
    const uint32_t task = program.flow_tasks[i];
    exec::LegBudget leg{.budget_ns = at_.turnaround_ns[task] + rings_.wait_ns(task),
                        .load_per_us = found_.solution.prices[f] * 1e3};
    for (uint32_t k = row.modules_begin; k < row.modules_end; ++k) {
      const uint32_t v = program.flow_modules[k];
      if (program.modules[v].task == task) leg.budget_ns += at_.fill_ns[v] + at_.service_ns[v];
    }
    verdict.legs.push_back(leg);
  }
  const std::vector<uint32_t>& legs = model_.legs.of_flow[f];
  for (size_t i = 0; i < std::min(verdict.legs.size(), legs.size()); ++i) {
    if (legs[i] >= snapshot.legs.size()) continue;
    verdict.legs[i].measured_ns = static_cast<double>(snapshot.legs[legs[i]].delay_ns);
  }
}

void Optimal::judge_flow(const Snapshot& snapshot, uint32_t f, double feedback, double busiest_ns) {
  const exec::FlowPeriod& period = snapshot.flows[f];
  const Program& program = view_.program();
  const ProgramFlow& row = program.flows[f];
  const FlowDelay& delay = flows_[f].delay;
  exec::FlowVerdict& verdict = flows_[f].verdict;
  verdict.turnaround_ns = waits_beside_ns(f) + turnaround_of(program, at_, row);
  for (uint32_t i = row.modules_begin; i < row.modules_end; ++i) {
    verdict.fill_ns += at_.fill_ns[program.flow_modules[i]];
    verdict.service_ns += at_.service_ns[program.flow_modules[i]];
  }
  verdict.fill_ns -= at_.mixing_ns[f];
  if (is_without_modules(f)) verdict.service_ns = view_.min_service_ns(f);
  // Scaled from modelled to measured delay.
  for (double* part_ns : {&verdict.turnaround_ns, &verdict.fill_ns, &verdict.service_ns}) {
    *part_ns *= delay.ratio();
  }
  if (delay.slo_ns() <= 0) return;
  verdict.slack_ns = delay.slo_ns() - verdict.turnaround_ns - verdict.fill_ns - verdict.service_ns -
                     view_.egress_beyond_mean_ns(f);
  verdict.multiplier_pps_per_us = pps_per_us(f, feedback, busiest_ns);
  verdict.state = exec::is_slo_broken(period, settings_.percentile) ? exec::FlowState::kViolating
                                                                    : exec::FlowState::kMet;
  if (found_.solution.is_infeasible[f] || stretch_ > 1) {
    verdict.state = exec::FlowState::kInfeasible;
  }
  if (view_.min_service_ns(f) > delay.slo_ns()) verdict.state = exec::FlowState::kInherent;
  const bool is_hopeless =
      verdict.state == exec::FlowState::kInfeasible || verdict.state == exec::FlowState::kInherent;
  if (is_hopeless) verdict.hint = hint_of(snapshot, f);
  judge_egress(period, verdict);
}

// Load, and the highest rate, by the model, with batches as age limits cut them.
void Optimal::predict(Decision& decision) {
  const Program& program = view_.program();
  Triggers cut = chosen_;
  for (uint32_t h = 0; h < chosen_.size(); ++h) {
    const ProgramModule& module = program.modules[h];
    if (chosen_[h] == 0 || limits_ns_[h] == exec::kStrandingAge) continue;
    const double rate = rate_of(program, module, at_.task_pkt_ns[module.task]);
    const double time_ns =
        std::max(0.0, static_cast<double>(limits_ns_[h]) - at_.turnaround_ns[module.task] / 2);
    const auto most_pkts = static_cast<uint32_t>(chosen_[h]);
    cut[h] = std::max(module.arriving_pkts, expected_batch_pkts(most_pkts, rate * time_ns));
  }
  evaluate(program, cut, trial_);
  const double pkt_ns = bottleneck_ns(joint_, trial_);
  if (pkt_ns <= 0) return;
  // Without the backlog that is drained.
  const double offered = joint_.offered_pkts_per_ns > 0 ? load_.offered_pkts_per_ns() : 0;
  decision.predicted_load = offered > 0 ? std::min(1.0, pkt_ns * offered) : 1;
  decision.predicted_pps = 1e9 / pkt_ns;
}

void Optimal::judge(const Snapshot& snapshot, Decision& decision) {
  decision.flows.reserve(flows_.size());
  const double of_all = feedback();
  const double busiest_ns = bottleneck_ns(joint_, at_);
  for (uint32_t f = 0; f < flows_.size(); ++f) {
    flows_[f].verdict = {};
    judge_flow(snapshot, f, of_all, busiest_ns);
    divide(snapshot, f);
    decision.flows.push_back(flows_[f].verdict);
  }
  predict(decision);
}

}  // namespace batchplane::slo
