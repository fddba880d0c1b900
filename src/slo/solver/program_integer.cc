// SPDX-License-Identifier: BSD-3-Clause
// program_integer.cc - from relaxed sizes to triggers: rounds down, bypasses buffers that do not
// pay, then raises triggers where the rest of the budgets buys most, never beyond a budget.
#include <algorithm>
#include <cmath>

#include "slo/solver/program.h"

namespace batchplane::slo {
namespace {
constexpr double kRounding = 1e-6;  // sizes this close below an integer count as it
}  // namespace

void Solver::round_down(const Program& program) {
  for (size_t v = 0; v < point_.size.size(); ++v) {
    const double floor_pkts =
        worth_down(program.modules[v], std::floor(point_.size[v] + kRounding));
    const bool holds = is_free_[v] != 0 && is_holding(program.modules[v], floor_pkts);
    point_.triggers[v] = holds ? floor_pkts : 0;
  }
}

// Bypasses buffers whose batches gain less than holding costs. True when one of them used any
// budget: where arriving batches are cut, the first packet held does, however small the batch.
bool Solver::bypass_unpaid(const Program& program) {
  bool any = false;
  for (size_t v = 0; v < point_.size.size(); ++v) {
    const ProgramModule& module = program.modules[v];
    if (is_free_[v] == 0) continue;
    if (holding_pays(program, module, point_.triggers[v])) continue;
    any |= point_.size[v] > module.arriving_pkts ||
           (module.sure_pkts > 0 && module.arriving_pkts > module.sure_pkts);
    is_free_[v] = 0;
    point_.triggers[v] = 0;
    point_.size[v] = module.arriving_pkts;
  }
  return any;
}

// Sets trial_ to the model at the triggers; often it is already, as few move after rounding.
void Solver::evaluate_triggers(const Program& program) {
  if (is_tried_ && tried_ == point_.triggers) return;
  evaluate(program, point_.triggers, trial_);
  tried_ = point_.triggers;
  is_tried_ = true;
}

bool Solver::fits(const Program& program) {
  evaluate_triggers(program);
  for (size_t f = 0; f < program.flows.size(); ++f) {
    const double budget_ns = program.flows[f].budget_ns;
    if (point_.is_out[f] == 0 && trial_.delay_ns[f] > budget_ns * (1 + kBudgetSlack)) return false;
  }
  return true;
}

// Room left in the budgets at point_.triggers, by flow and, for turnaround, by task.
void Solver::set_rooms(const Program& program) {
  evaluate_triggers(program);
  at_ = trial_;
  slopes_at(program, at_, slopes_);
  fills_ = at_.fills;
  std::ranges::fill(task_room_ns_, kNoBudgetNs);
  for (size_t f = 0; f < program.flows.size(); ++f) {
    const ProgramFlow& flow = program.flows[f];
    room_ns_[f] = point_.is_out[f] == 0 ? flow.budget_ns - at_.delay_ns[f] : kNoBudgetNs;
    if (is_hopeful_) room_ns_[f] += hope_ns(program, flow);
    const bool is_held = fills_[f].sum_ns > 0;
    first_hold_ns_[f] =
        is_held ? 0 : std::max(0.0, flow.least_turnaround_ns - turnaround_of(program, at_, flow));
    for (uint32_t i = flow.tasks_begin; i < flow.tasks_end; ++i) {
      double& room_ns = task_room_ns_[program.flow_tasks[i]];
      room_ns = std::min(room_ns, room_ns_[f]);
    }
  }
}

// How much longer flow f waits for fills when module v's trigger goes up: where fills mix, only
// part of the increase of the module's own fill.
double Solver::fill_increase_ns(const Program& program, uint32_t f, uint32_t v, double to) const {
  const ProgramModule& module = program.modules[v];
  const double rate = rate_of(program, module, at_.task_pkt_ns[module.task]);
  const Fill now = fill_of(program, module, point_.triggers[v], rate);
  const Fill then = fill_of(program, module, to, rate);
  if (!fills_[f].mixes) return then.ns - now.ns;
  FillSum fills = fills_[f];
  fills.add(now, -1);
  fills.add(then);
  return fills.delay_ns() - fills_[f].delay_ns();
}

// The best raise of module v within the room left: one more packet, or from bypassed to the largest
// batch that fits. `to` stays 0 when nothing fits.
Solver::Raise Solver::raise_of(const Program& program, uint32_t v) const {
  const ProgramModule& module = program.modules[v];
  const double old = point_.triggers[v];
  const double next = next_up(module, old);
  Raise raise;
  if (next == 0 || is_pinned_[v] != 0 || module.share <= 0) return raise;
  double room_ns = kNoBudgetNs;
  for (uint32_t i = module_flows_begin_[v]; i < module_flows_begin_[v + 1]; ++i) {
    room_ns = std::min(room_ns, room_ns_[module_flows_[i]] - first_hold_ns_[module_flows_[i]]);
  }
  const double batch = batch_pkts(module, old);
  const double slope = slopes_.delay_slope[v];
  const double min_ns =
      old > 0
          ? 0
          : min_fill_ns(program, module, rate_of(program, module, at_.task_pkt_ns[module.task]));
  double to = next;
  if (old == 0) {
    const double most = std::min<double>(batch + (room_ns - min_ns) / slope, module.max_pkts);
    to = std::max(next, worth_down(module, std::floor(most * (1 - kRounding))));
  }
  // Effect of fewer, heavier firings on every packet of the task.
  raise.turnaround_ns = slopes_.turnaround_weight[v] * (1 / to - 1 / batch) +
                        slopes_.turnaround_slope[v] * (to - batch);
  const double service_ns =
      (module.cost_per_pkt_ns + module.away_pkt_ns) * (to - batch) + raise.turnaround_ns;
  for (uint32_t i = module_flows_begin_[v]; i < module_flows_begin_[v + 1]; ++i) {
    const uint32_t f = module_flows_[i];
    const double delay_ns = service_ns + fill_increase_ns(program, f, v, to);
    if (delay_ns > (room_ns_[f] - first_hold_ns_[f]) * (1 - kRounding)) return raise;
  }
  if (raise.turnaround_ns > std::max(0.0, task_room_ns_[module.task])) return raise;
  raise.gain = load_saved(program, slopes_, v, batch, to) -
               point_.emphasis[module.task] * raise.turnaround_ns;
  if (old == 0) {
    const ProgramTask& task = program.tasks[module.task];
    raise.gain -= task.weight * module.share * task.rate_pkts_per_ns *
                  (program.hold_ns + program.release_ns / batch);
  }
  raise.gain /= min_ns + slope * (to - batch);
  raise.to = to;
  return raise;
}

// Raises a trigger and takes its cost from the budgets, to first order; the best raise changes for
// few other triggers.
void Solver::take_room(const Program& program, uint32_t v, const Raise& raise) {
  const ProgramModule& module = program.modules[v];
  const double rate = rate_of(program, module, at_.task_pkt_ns[module.task]);
  const double old = point_.triggers[v];
  const double service_ns =
      (module.cost_per_pkt_ns + module.away_pkt_ns) * (raise.to - batch_pkts(module, old));
  for (uint32_t i = module_flows_begin_[v]; i < module_flows_begin_[v + 1]; ++i) {
    const uint32_t f = module_flows_[i];
    room_ns_[f] -= service_ns + fill_increase_ns(program, f, v, raise.to) + first_hold_ns_[f];
    first_hold_ns_[f] = 0;
    fills_[f].add(fill_of(program, module, old, rate), -1);
    fills_[f].add(fill_of(program, module, raise.to, rate));
  }
  point_.triggers[v] = raise.to;
  const uint32_t task = module.task;
  if (raise.turnaround_ns > 0) {
    task_room_ns_[task] -= raise.turnaround_ns;
    for (size_t f = 0; f < program.flows.size(); ++f) {
      const ProgramFlow& flow = program.flows[f];
      const auto begin = program.flow_tasks.begin();
      const bool passes = std::find(begin + flow.tasks_begin, begin + flow.tasks_end, task) !=
                          begin + flow.tasks_end;
      if (passes) room_ns_[f] -= raise.turnaround_ns;
    }
    for (uint32_t w = 0; w < point_.triggers.size(); ++w) raises_[w] = raise_of(program, w);
    return;
  }
  for (uint32_t i = module_flows_begin_[v]; i < module_flows_begin_[v + 1]; ++i) {
    const ProgramFlow& flow = program.flows[module_flows_[i]];
    for (uint32_t j = flow.modules_begin; j < flow.modules_end; ++j) {
      const uint32_t w = program.flow_modules[j];
      raises_[w] = raise_of(program, w);
    }
  }
  raises_[v] = raise_of(program, v);
}

// Makes the raises that gain most per ns of budget, until nothing fits.
void Solver::raise_greedily(const Program& program) {
  const auto max_raises = static_cast<uint32_t>(4 * point_.triggers.size());
  set_rooms(program);
  for (uint32_t v = 0; v < point_.triggers.size(); ++v) raises_[v] = raise_of(program, v);
  for (uint32_t i = 0; i < max_raises; ++i) {
    uint32_t chosen = 0;
    for (uint32_t v = 1; v < point_.triggers.size(); ++v) {
      if (raises_[v].gain > raises_[chosen].gain) chosen = v;
    }
    if (point_.triggers.empty() || raises_[chosen].gain <= 0) return;
    const Raise raise = raises_[chosen];
    take_room(program, chosen, raise);
  }
}

// The module whose trigger costs least to lower per ns that flow f gains: one on its path, or one
// whose heavy firings delay its turnaround. The number of modules when there is none.
size_t Solver::cheapest_to_lower(const Program& program, uint32_t f) const {
  const ProgramFlow& flow = program.flows[f];
  size_t chosen = point_.triggers.size();
  double min_cost = kNoBudgetNs;
  const auto consider = [&](uint32_t v, double path_ns) {
    if (point_.triggers[v] == 0 || is_pinned_[v] != 0) return;
    const double q2 = point_.triggers[v] * point_.triggers[v];
    const double gain_ns =
        path_ns + std::max(0.0, slopes_.turnaround_slope[v] - slopes_.turnaround_weight[v] / q2);
    if (gain_ns <= 0 || slopes_.load_weight[v] / (q2 * gain_ns) >= min_cost) return;
    min_cost = slopes_.load_weight[v] / (q2 * gain_ns);
    chosen = v;
  };
  for (uint32_t i = flow.modules_begin; i < flow.modules_end; ++i) {
    const uint32_t v = program.flow_modules[i];
    consider(v, slopes_.delay_slope[v]);
  }
  for (uint32_t i = flow.tasks_begin; i < flow.tasks_end; ++i) {
    for (uint32_t v = 0; v < point_.triggers.size(); ++v) {
      if (program.modules[v].task == program.flow_tasks[i]) consider(v, 0);
    }
  }
  return chosen;
}

// Lowers triggers where that costs least, until all flows fit. False, with the flow in `worst`,
// when it misses its budget and no trigger is left to lower for it.
bool Solver::lower_until_fits(const Program& program, size_t& worst) {
  while (!fits(program)) {
    double worst_ns = 0;
    for (size_t f = 0; f < program.flows.size(); ++f) {
      const double excess_ns = trial_.delay_ns[f] - program.flows[f].budget_ns;
      if (point_.is_out[f] != 0 || excess_ns <= worst_ns) continue;
      worst_ns = excess_ns;
      worst = f;
    }
    slopes_at(program, trial_, slopes_);
    const size_t chosen = cheapest_to_lower(program, static_cast<uint32_t>(worst));
    if (chosen == point_.triggers.size()) return false;
    point_.triggers[chosen] = worth_down(program.modules[chosen], point_.triggers[chosen] - 1);
  }
  return true;
}

// Rounding and bypassing raise the load, and with it turnaround. A flow without a trigger left to
// lower is infeasible.
void Solver::repair(const Program& program) {
  size_t worst = 0;
  while (!lower_until_fits(program, worst)) point_.is_out[worst] = 1;
}

}  // namespace batchplane::slo
