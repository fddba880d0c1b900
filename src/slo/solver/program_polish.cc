// SPDX-License-Identifier: BSD-3-Clause
// program_polish.cc - for small programs, in which one packet at one module matters: single and
// paired moves of triggers. Among many modules, one packet at one of them hardly changes the load.
#include <algorithm>
#include <cmath>

#include "slo/solver/program.h"

namespace batchplane::slo {
namespace {
constexpr size_t kMaxPolished = 4;   // modules that move, with partners
constexpr size_t kMaxRescued = 8;    // modules that move alone, so that all flows fit
constexpr size_t kMaxBeside = 12;    // modules in all: each move evaluates all of them
constexpr uint32_t kMaxRounds = 64;  // with one move each
// Of the load, that all modules together could still save: for less, controllers hardly move triggers.
constexpr double kMinToGain = 0.01;
constexpr int kFarthest = 3;  // packets that a partner moves at most
constexpr double kSteps[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 256};
}  // namespace

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

// v has moved, which did not help alone: tries moving another module as well.
bool Solver::moves_with_partner(const Program& program, uint32_t v, Score& best) {
  for (const uint32_t w : active_) {
    if (w == v) continue;
    const ProgramModule& module = program.modules[w];
    const double old = point_.triggers[w];
    double up = old;
    double down = old;
    for (int i = 0; i < kFarthest; ++i) {
      if (up == old || up > 0) up = next_up(module, up);
      if (up > 0 && up != old) {
        point_.triggers[w] = up;
        if (improves(program, best)) return true;
      }
      if (down == 0) continue;
      down = next_down(module, down);
      point_.triggers[w] = down;
      if (improves(program, best)) return true;
    }
    point_.triggers[w] = old;
  }
  return false;
}

// v has moved: the others make room for it, or share the room that it left.
bool Solver::moves_and_refills(const Program& program, uint32_t v, Score& best) {
  size_t worst = 0;
  is_pinned_[v] = 1;
  const bool has_room = lower_until_fits(program, worst);
  if (has_room) raise_greedily(program);
  is_pinned_[v] = 0;
  return has_room && improves(program, best);
}

// Makes one move that helps; false when there is none. Steps of all sizes: a heavy firing that
// delays other flows may have to shrink a lot before anything else can grow.
bool Solver::moves_one(const Program& program, Score& best) {
  before_move_ = point_.triggers;
  for (const uint32_t v : active_) {
    const ProgramModule& module = program.modules[v];
    const double old = point_.triggers[v];
    const double size = batch_pkts(module, old);
    for (const double step : kSteps) {
      const double up = std::min<double>(std::floor(size) + step, module.max_pkts);
      const double down = is_holding(module, size - step) ? size - step : 0;
      for (const double move : {up, down}) {
        if (move == old || !(move == 0 || is_holding(module, move))) continue;
        point_.triggers[v] = move;
        if (improves(program, best)) return true;
        if (active_.size() > kMaxPolished) {
          point_.triggers = before_move_;
          continue;
        }
        if (moves_with_partner(program, v, best)) return true;
        if (moves_and_refills(program, v, best)) return true;
        point_.triggers = before_move_;
      }
    }
  }
  return false;
}

void Solver::descend(const Program& program, Score& best) {
  for (uint32_t round = 0; round < kMaxRounds && moves_one(program, best); ++round) {
  }
}

// Whether no other triggers, whatever the budgets, would make the load much less.
bool Solver::is_near_best(const Program& program) {
  if (std::ranges::find(point_.is_out, uint8_t{1}) != point_.is_out.end()) return false;
  evaluate_triggers(program);
  slopes_at(program, trial_, trade_slopes_);
  double to_gain = 0;
  for (const uint32_t v : active_) {
    const ProgramModule& module = program.modules[v];
    const double batch = batch_pkts(module, point_.triggers[v]);
    double most = 0;
    for (double to = next_up(module, 0); to > 0; to = next_up(module, to)) {
      most = std::max(most, load_saved(program, trade_slopes_, v, batch, to));
    }
    to_gain += most;
  }
  return to_gain < kMinToGain * trial_.load;
}

// Whether no triggers at all keep every flow within its budget.
bool Solver::is_hopeless(const Program& program) {
  const std::vector<double>& least_ns = least_delays_.find(program, is_pinned_);
  for (size_t f = 0; f < program.flows.size(); ++f) {
    if (least_ns[f] > program.flows[f].budget_ns * (1 + kBudgetSlack)) return true;
  }
  return false;
}

// With more modules than move in pairs, single moves may still rescue flows that were given up. False where nothing
// was polished or some still miss their budgets; nothing has changed then.
bool Solver::polish(const Program& program) {
  if (program.modules.size() > kMaxBeside) return false;
  active_.clear();
  for (uint32_t v = 0; v < point_.triggers.size(); ++v) {
    if (is_pinned_[v] == 0 && program.modules[v].share > 0 && next_up(program.modules[v], 0) > 0 &&
        program.modules[v].cost_per_batch_ns > 0) {
      active_.push_back(v);
    }
  }
  if (active_.empty() || active_.size() > kMaxRescued) return false;
  if (is_near_best(program) || is_hopeless(program)) return false;
  const Score none{kNoBudgetNs, kNoBudgetNs};
  backup_ = point_.triggers;
  Score best = none;
  improves(program, best);
  descend(program, best);
  // Tries again from the other end: all bypassed, then raised greedily. Single moves may not undo
  // the choice of modules that hold.
  descended_ = point_.triggers;
  for (const uint32_t v : active_) point_.triggers[v] = 0;
  raise_greedily(program);
  Score other = none;
  improves(program, other);
  descend(program, other);
  const bool is_other_better = other.excess_ns < best.excess_ns ||
                               (other.excess_ns == best.excess_ns && other.load < best.load);
  if (!is_other_better) point_.triggers = descended_;
  if (std::min(best.excess_ns, other.excess_ns) == 0) return true;
  point_.triggers = backup_;
  return false;
}

}  // namespace batchplane::slo
