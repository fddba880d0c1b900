// SPDX-License-Identifier: BSD-3-Clause
// program_trade.cc - triggers against each other, once they are integers: raises that only fit together, and
// less at a module that several flows share for more at the others on their paths.
#include <algorithm>

#include "slo/solver/program.h"

namespace batchplane::slo {
namespace {
constexpr uint32_t kMaxTrades = 16;  // as many are rarely made
constexpr int kStepsDown = 2;        // at once, at most
// Modules in all: each try evaluates all of them, and the more there are, the less one packet is.
constexpr size_t kMaxTraded = 32;
}  // namespace

// How much less turnaround and fills would take of a flow's budget at the relaxed point's rates.
double Solver::hope_ns(const Program& program, const ProgramFlow& flow) const {
  double less_ns = 0;
  for (uint32_t i = flow.tasks_begin; i < flow.tasks_end; ++i) {
    const uint32_t t = program.flow_tasks[i];
    less_ns += at_.turnaround_ns[t] - relaxed_turnaround_ns_[t];
  }
  for (uint32_t i = flow.modules_begin; i < flow.modules_end; ++i) {
    const uint32_t v = program.flow_modules[i];
    const uint32_t t = program.modules[v].task;
    if (!program.tasks[t].is_saturated) continue;
    less_ns += at_.fill_ns[v] * (1 - relaxed_pkt_ns_[t] / at_.task_pkt_ns[t]);
  }
  return std::max(0.0, less_ns);
}

// Raises as if all raises together led back to the relaxed point's rates, and lowers where that was too much.
// False, with the triggers as they were, where this does not help.
bool Solver::fills_up(const Program& program, double& load) {
  is_hopeful_ = true;
  raise_greedily(program);
  is_hopeful_ = false;
  size_t worst = 0;
  if (!lower_until_fits(program, worst) || trial_.load >= load * (1 - kMinGain)) {
    point_.triggers = before_move_;
    return false;
  }
  before_move_ = point_.triggers;
  load = trial_.load;
  return true;
}

// Whether the others on the paths through a module could gain what it loses with the trigger `to`, to first
// order.
bool Solver::may_pay(const Program& program, uint32_t v, double to) const {
  const double now = point_.triggers[v];
  const double then = batch_pkts(program.modules[v], to);
  const double freed_ns = trade_slopes_.delay_slope[v] * (now - then);
  double left = trade_slopes_.load_weight[v] * (1 / then - 1 / now);
  for (uint32_t i = module_flows_begin_[v]; i < module_flows_begin_[v + 1] && left > 0; ++i) {
    const ProgramFlow& flow = program.flows[module_flows_[i]];
    for (uint32_t j = flow.modules_begin; j < flow.modules_end; ++j) {
      const uint32_t w = program.flow_modules[j];
      if (w == v || trade_slopes_.delay_slope[w] <= 0) continue;
      const double batch = batch_pkts(program.modules[w], point_.triggers[w]);
      const double more = batch + 1 + freed_ns / trade_slopes_.delay_slope[w];
      left -= trade_slopes_.load_weight[w] * (1 / batch - 1 / more);
    }
  }
  return left <= 0;
}

// Lowers one module that several flows share, so that more fits behind it. False where that does not help.
bool Solver::trades_one(const Program& program, double& load) {
  evaluate_triggers(program);
  slopes_at(program, trial_, trade_slopes_);
  for (uint32_t v = 0; v < point_.triggers.size(); ++v) {
    const bool is_shared = module_flows_begin_[v + 1] - module_flows_begin_[v] > 1;
    if (is_pinned_[v] != 0 || !is_shared) continue;
    double to = point_.triggers[v];
    for (int i = 0; to > 0 && i < kStepsDown; ++i) {
      to = next_down(program.modules[v], to);
      if (!may_pay(program, v, to)) continue;
      point_.triggers[v] = to;
      is_pinned_[v] = 1;
      const bool helps = fills_up(program, load);
      is_pinned_[v] = 0;
      if (helps) return true;
    }
  }
  return false;
}

void Solver::trade(const Program& program) {
  if (std::ranges::find(point_.is_out, uint8_t{1}) != point_.is_out.end()) return;
  evaluate(program, point_.size, at_);
  relaxed_turnaround_ns_ = at_.turnaround_ns;
  relaxed_pkt_ns_ = at_.task_pkt_ns;
  evaluate_triggers(program);
  double load = trial_.load;
  before_move_ = point_.triggers;
  fills_up(program, load);
  if (point_.triggers.size() > kMaxTraded) return;
  for (uint32_t round = 0; round < kMaxTrades && trades_one(program, load); ++round) {
  }
}

}  // namespace batchplane::slo
