// SPDX-License-Identifier: BSD-3-Clause
// program_integer.cc - from relaxed sizes to triggers: down, bypassed where holding does not pay,
// up again where the rest of the budgets buys most, and never beyond a budget.
#include <algorithm>
#include <cmath>

#include "slo/program.h"

namespace batchplane::slo {
namespace {
constexpr double kRounding = 1e-6;        // sizes this close below an integer are that integer
constexpr double kBudgetSlack = 1e-9;     // relative: what arithmetic may lose
constexpr double kLeastGain = 1e-7;       // relative, of a move worth making
constexpr uint32_t kMostPolished = 8;     // modules: pairs are tried below
constexpr uint32_t kMostPolishRounds = 32;
}  // namespace

// Smallest larger trigger that holds; 0 = there is none.
double Solver::next_up(const ProgramModule& module, double trigger_pkts) const {
  const double next = std::max(trigger_pkts, std::floor(module.arriving_pkts)) + 1;
  return next <= module.most_pkts ? next : 0;
}

double Solver::next_down(const ProgramModule& module, double trigger_pkts) const {
  return is_holding(module, trigger_pkts - 1) ? trigger_pkts - 1 : 0;
}

void Solver::round_down(const Program& program) {
  for (size_t v = 0; v < size_.size(); ++v) {
    const double floor_pkts = std::floor(size_[v] + kRounding);
    const bool holds = is_free_[v] != 0 && is_holding(program.modules[v], floor_pkts);
    triggers_[v] = holds ? floor_pkts : 0;
  }
}

// Takes buffers away whose batches gain less than holding costs. True when one went.
bool Solver::bypass_unpaid(const Program& program) {
  bool any = false;
  for (size_t v = 0; v < size_.size(); ++v) {
    const ProgramModule& module = program.modules[v];
    if (is_free_[v] == 0) continue;
    const double batch = triggers_[v] > 0 ? triggers_[v] : module.arriving_pkts;
    const double gain_ns = module.cost_per_batch_ns * (1 / module.arriving_pkts - 1 / batch);
    if (gain_ns > program.hold_ns) continue;
    any |= size_[v] > module.arriving_pkts;
    is_free_[v] = 0;
    triggers_[v] = 0;
    size_[v] = module.arriving_pkts;
  }
  return any;
}

bool Solver::fits(const Program& program) {
  evaluate(program, triggers_, trial_);
  for (size_t f = 0; f < program.flows.size(); ++f) {
    const double budget_ns = program.flows[f].budget_ns;
    if (is_out_[f] == 0 && trial_.delay_ns[f] > budget_ns * (1 + kBudgetSlack)) return false;
  }
  return true;
}

// One packet more, or from bypassed to what the budgets allow, wherever a ns of budget buys most;
// again until nothing fits.
void Solver::raise_greedily(const Program& program) {
  const auto most_raises = static_cast<uint32_t>(4 * triggers_.size());
  evaluate(program, triggers_, at_);
  slopes_at(program, at_, slopes_);
  for (size_t f = 0; f < program.flows.size(); ++f) {
    const bool is_bound = is_out_[f] == 0 && program.flows[f].budget_ns != kNoBudgetNs;
    room_ns_[f] = is_bound ? program.flows[f].budget_ns - at_.delay_ns[f] : kNoBudgetNs;
  }
  for (uint32_t raise = 0; raise < most_raises; ++raise) {
    double best_gain = 0;
    size_t best = 0;
    double best_trigger = 0;
    for (size_t v = 0; v < triggers_.size(); ++v) {
      const ProgramModule& module = program.modules[v];
      const double next = next_up(module, triggers_[v]);
      if (next == 0 || is_pinned_[v] != 0 || module.share <= 0) continue;
      double room_ns = kNoBudgetNs;
      for (uint32_t i = module_flows_begin_[v]; i < module_flows_begin_[v + 1]; ++i) {
        room_ns = std::min(room_ns, room_ns_[module_flows_[i]]);
      }
      const double batch = batch_pkts(module, triggers_[v]);
      const double most = std::min(batch + room_ns / slopes_.delay_slope[v] * (1 - kRounding),
                                   static_cast<double>(module.most_pkts));
      if (most < next) continue;
      const double to = triggers_[v] > 0 ? next : std::floor(most);
      double gain = slopes_.load_weight[v] * (1 / batch - 1 / to);
      if (triggers_[v] == 0) {
        const ProgramTask& task = program.tasks[module.task];
        gain -= module.share * task.rate_pkts_per_ns * program.hold_ns;
      }
      gain /= slopes_.delay_slope[v] * (to - batch);
      if (gain <= best_gain) continue;
      best_gain = gain;
      best = v;
      best_trigger = to;
    }
    if (best_gain <= 0) return;
    const double old = triggers_[best];
    const double delay_ns = slopes_.delay_slope[best] *
                            (best_trigger - batch_pkts(program.modules[best], old));
    triggers_[best] = best_trigger;
    for (uint32_t i = module_flows_begin_[best]; i < module_flows_begin_[best + 1]; ++i) {
      room_ns_[module_flows_[i]] -= delay_ns;
    }
  }
}

// Rounding and bypassing raise load and with it turnaround: what no longer fits is lowered where it
// costs least. A flow that has nothing left to lower is infeasible.
void Solver::repair(const Program& program) {
  for (;;) {
    if (fits(program)) return;
    double worst_ns = 0;
    size_t worst = 0;
    for (size_t f = 0; f < program.flows.size(); ++f) {
      const double excess_ns = trial_.delay_ns[f] - program.flows[f].budget_ns;
      if (is_out_[f] != 0 || excess_ns <= worst_ns) continue;
      worst_ns = excess_ns;
      worst = f;
    }
    slopes_at(program, trial_, slopes_);
    double least_cost = kNoBudgetNs;
    size_t chosen = triggers_.size();
    for (uint32_t i = program.flows[worst].modules_begin; i < program.flows[worst].modules_end;
         ++i) {
      const uint32_t v = program.flow_modules[i];
      if (triggers_[v] == 0) continue;
      const double q = triggers_[v];
      const double cost = slopes_.load_weight[v] / (q * q * slopes_.delay_slope[v]);
      if (cost >= least_cost) continue;
      least_cost = cost;
      chosen = v;
    }
    if (chosen == triggers_.size()) {
      is_out_[worst] = 1;
      continue;
    }
    triggers_[chosen] = next_down(program.modules[chosen], triggers_[chosen]);
  }
}

bool Solver::improves(const Program& program, double& best_load) {
  if (!fits(program) || trial_.load >= best_load * (1 - kLeastGain)) return false;
  best_load = trial_.load;
  return true;
}

// Small programs: single and paired moves, until none helps. Where many modules share budgets, one
// packet at one of them is below what this could gain.
void Solver::polish(const Program& program) {
  active_.clear();
  for (uint32_t v = 0; v < triggers_.size(); ++v) {
    if (is_pinned_[v] == 0 && program.modules[v].share > 0 && next_up(program.modules[v], 0) > 0 &&
        program.modules[v].cost_per_batch_ns > 0) {
      active_.push_back(v);
    }
  }
  if (active_.empty() || active_.size() > kMostPolished || !fits(program)) return;
  double best_load = trial_.load;
  for (uint32_t round = 0; round < kMostPolishRounds; ++round) {
    bool any = false;
    for (const uint32_t v : active_) {
      const ProgramModule& module = program.modules[v];
      const double old = triggers_[v];
      // What v may become: down, up, bypassed, largest; each alone and with one packet more or less
      // at another.
      const double moves[] = {old > 0 ? next_down(module, old) : old, next_up(module, old), 0.0,
                              static_cast<double>(module.most_pkts)};
      for (const double move : moves) {
        if (any || move == triggers_[v] || (move == 0 && old == 0)) continue;
        triggers_[v] = move;
        any = improves(program, best_load);
        for (const uint32_t w : active_) {
          if (any) break;
          if (w == v) continue;
          const ProgramModule& other = program.modules[w];
          const double other_old = triggers_[w];
          for (const double other_move :
               {next_up(other, other_old), next_down(other, other_old), 0.0}) {
            if (any || other_move == other_old || (other_move == 0 && other_old == 0)) continue;
            triggers_[w] = other_move;
            any = improves(program, best_load);
            if (!any) triggers_[w] = other_old;
          }
        }
        if (!any) triggers_[v] = old;
      }
      if (any) break;
    }
    if (!any) return;
  }
}

}  // namespace batchplane::slo
