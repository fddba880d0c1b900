// SPDX-License-Identifier: BSD-3-Clause
// program_search.cc - triggers against each other, once they are integers: one of them moves, and the others
// make room for it or share the room that it leaves.
#include <algorithm>
#include <cmath>
#include <span>

#include "slo/solver/program.h"

namespace batchplane::slo {
namespace {
constexpr size_t kMaxSearched = 32;  // modules: the more there are, the less one packet is
constexpr size_t kMaxPairs = 4;      // modules, of which two may move at once
constexpr int kFarthest = 3;         // packets that the second one moves at most
// Of the load, that a move must save: for less, plans of tasks that depend on each other would change all the time.
constexpr double kMinGain = 1e-3;
// Packets. Among many modules most moves that help are small ones.
constexpr int kSteps[] = {1, 2, 3, 4, 6, 8, 12, 16};
constexpr int kStepsOfMany[] = {1, 2};
// Tries bound the time that a solution takes; among many modules this is their number times modules.
constexpr size_t kMaxTries = 2000;
// Where flows stay late, all tries are in vain, and would be in a program that has changed little. So the next
// searches, two a solve there, are left out, unless less is missing than when one was in vain.
constexpr uint32_t kRest = 15;
constexpr double kCloser = 0.95;
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

// Compares by the sum by which flows miss their budgets, those given up too, then by load.
bool Solver::improves(const Program& program, Score& best) {
  evaluate_triggers(program);
  const double excess_ns = excess_of(program, trial_);
  const double least = 1 - kMinGain;
  const bool is_better = excess_ns < best.excess_ns * least ||
                         (excess_ns <= best.excess_ns && trial_.load < best.load * least);
  if (is_better) best = {excess_ns, trial_.load};
  return is_better;
}

// Keeps the triggers if they help, or else goes back to those before.
bool Solver::keeps_if_better(const Program& program, Score& best) {
  if (tries_left_ > 0) --tries_left_;
  ++solution_.tries;
  const bool helps = improves(program, best);
  (helps ? before_move_ : point_.triggers) = helps ? point_.triggers : before_move_;
  return helps;
}

// All triggers that are not pinned make room, or fill it as if all raises together led back to the relaxed
// point's rates.
bool Solver::refills(const Program& program, Score& best) {
  size_t worst = 0;
  bool fits = lower_until_fits(program, worst);
  if (fits) {
    is_hopeful_ = true;
    raise_greedily(program);
    is_hopeful_ = false;
    fits = lower_until_fits(program, worst);
  }
  if (fits) return keeps_if_better(program, best);
  point_.triggers = before_move_;
  return false;
}

// One trigger has moved, which did not help alone: another one moves, too.
bool Solver::moves_with_partner(const Program& program, uint32_t v, double to, Score& best) {
  for (const uint32_t w : active_) {
    const ProgramModule& module = program.modules[w];
    if (w == v) continue;
    const double now = point_.triggers[w];
    const double batch = std::floor(batch_pkts(module, now));
    for (int step = 1; step <= kFarthest && tries_left_ > 0; ++step) {
      for (const double other :
           {worth_down(module, batch - step), next_up(module, batch + step - 1)}) {
        if (other == now) continue;
        point_.triggers[v] = to;
        point_.triggers[w] = other;
        if (keeps_if_better(program, best)) return true;
      }
    }
  }
  return false;
}

// Whether the others on the paths through a module could gain what it loses with the trigger `to`, to first
// order.
bool Solver::may_pay(const Program& program, uint32_t v, double to) const {
  const double now = point_.triggers[v];
  const double then = batch_pkts(program.modules[v], to);
  if (then >= now) return false;
  const ProgramModule& module = program.modules[v];
  const ProgramTask& task = program.tasks[module.task];
  double freed_ns = search_slopes_.delay_slope[v] * (now - then);
  double left = search_slopes_.load_weight[v] * (1 / then - 1 / now);
  if (to == 0) {
    const double fill_slope =
        search_slopes_.delay_slope[v] - module.cost_per_pkt_ns - module.away_pkt_ns;
    if (module.sure_pkts > 0) freed_ns += fill_slope * (module.arriving_pkts - module.sure_pkts);
    left -= task.weight * module.share * task.rate_pkts_per_ns *
            (program.hold_ns + program.release_ns / then);
  }
  for (uint32_t i = module_flows_begin_[v]; i < module_flows_begin_[v + 1] && left > 0; ++i) {
    const ProgramFlow& flow = program.flows[module_flows_[i]];
    for (uint32_t j = flow.modules_begin; j < flow.modules_end; ++j) {
      const uint32_t w = program.flow_modules[j];
      if (w == v || search_slopes_.delay_slope[w] <= 0) continue;
      const double batch = batch_pkts(program.modules[w], point_.triggers[w]);
      const double more = batch + 1 + freed_ns / search_slopes_.delay_slope[w];
      left -= search_slopes_.load_weight[w] * (1 / batch - 1 / more);
    }
  }
  return left <= 0;
}

// Among few modules all moves are worth a try, and where a flow is late, as they may help it alone.
bool Solver::is_thorough(const Score& best) const {
  return point_.triggers.size() <= kMaxPairs || best.excess_ns > 0;
}

bool Solver::moves(const Program& program, uint32_t v, double to, Score& best) {
  if (to == point_.triggers[v] || tries_left_ == 0) return false;
  const bool is_few = point_.triggers.size() <= kMaxPairs;
  const bool pays = is_few || point_.triggers[v] == 0 || may_pay(program, v, to);
  if (is_thorough(best)) {
    point_.triggers[v] = to;
    if (keeps_if_better(program, best)) return true;
    if (is_few && moves_with_partner(program, v, to, best)) return true;
  }
  if (!pays) return false;
  point_.triggers[v] = to;
  is_pinned_[v] = 1;
  const bool helps = refills(program, best);
  is_pinned_[v] = 0;
  return helps;
}

// A module that may move, one step down or up, and still holds. Upwards only what holds nothing has to be
// moved: all else fills the room that moves downwards leave.
bool Solver::steps(const Program& program, uint32_t v, int step, Score& best) {
  const ProgramModule& module = program.modules[v];
  const double batch = std::floor(batch_pkts(module, point_.triggers[v]));
  const double down = worth_down(module, batch - step);
  if (down > 0 && moves(program, v, down, best)) return true;
  const bool may_rise = is_thorough(best) || point_.triggers[v] == 0;
  const double up = may_rise ? next_up(module, batch + step - 1) : 0;
  return up > 0 && moves(program, v, up, best);
}

// Makes one move that helps; false when there is none.
bool Solver::moves_one(const Program& program, Score& best) {
  evaluate_triggers(program);
  slopes_at(program, trial_, search_slopes_);
  for (const uint32_t v : active_) {
    if (moves(program, v, 0, best)) return true;
  }
  for (const int step : is_thorough(best) ? std::span<const int>(kSteps) : kStepsOfMany) {
    for (const uint32_t v : active_) {
      if (steps(program, v, step, best)) return true;
    }
  }
  return false;
}

// Prices are those of the modules that hold, and of all flows.
void Solver::price_again(const Program& program) {
  bool is_same = std::ranges::find(point_.is_out, uint8_t{1}) == point_.is_out.end();
  std::ranges::fill(point_.is_out, uint8_t{0});
  for (size_t v = 0; v < point_.triggers.size(); ++v) {
    is_same &= (point_.triggers[v] > 0) == (backup_[v] > 0);
  }
  if (is_same) return;
  for (size_t v = 0; v < point_.triggers.size(); ++v) is_free_[v] = point_.triggers[v] > 0 ? 1 : 0;
  relax(program);
}

void Solver::search(const Program& program) {
  evaluate(program, point_.size, at_);
  relaxed_turnaround_ns_ = at_.turnaround_ns;
  relaxed_pkt_ns_ = at_.task_pkt_ns;
  backup_ = before_move_ = point_.triggers;
  Score best{kNoBudgetNs, kNoBudgetNs};
  improves(program, best);
  refills(program, best);
  if (best.excess_ns > kCloser * vain_excess_ns_ && rest_ > 0) {
    --rest_;
    point_.triggers = backup_;
    return;
  }
  const double first_excess_ns = best.excess_ns;
  active_.clear();
  for (uint32_t v = 0; v < point_.triggers.size(); ++v) {
    const ProgramModule& module = program.modules[v];
    if (is_pinned_[v] == 0 && module.share > 0 && next_up(module, 0) > 0) active_.push_back(v);
  }
  const size_t n = point_.triggers.size();
  tries_left_ = n > kMaxSearched ? 0 : n <= kMaxPairs ? kMaxTries : kMaxTries / n;
  while (tries_left_ > 0 && moves_one(program, best)) {
  }
  // Only a point that keeps every budget, also of flows given up, is better than the rounds before.
  if (best.excess_ns > 0) {
    vain_excess_ns_ = first_excess_ns;
    rest_ = kRest;
    point_.triggers = backup_;
    return;
  }
  rest_ = 0;
  price_again(program);
}

}  // namespace batchplane::slo
