// SPDX-License-Identifier: BSD-3-Clause
#include "slo/solver/program.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace batchplane::slo {
namespace {
constexpr uint32_t kManyIterates = 1000;  // when solving time does not matter
constexpr uint32_t kMaxExclusions = 4;    // times that flows without room are left out
constexpr uint32_t kUndamped = 6;         // iterates that may take whole steps
constexpr double kSteadyEmphasis = 10;    // times the change at which triggers count as settled
constexpr double kMinPart = 0.02;         // of a step, where iterates alternate
constexpr double kPenaltyGrowth = 10;     // per iterate
constexpr double kMaxPenalty = 1e6;       // times the mean worth of a budget
constexpr double kMaxFeedback = 0.95;     // above, the series of freed budgets hardly converges
}  // namespace

void Solver::prepare(const Program& program) {
  const size_t n = program.modules.size();
  const size_t n_flows = program.flows.size();
  module_flows_begin_.assign(n + 1, 0);
  for (const uint32_t v : program.flow_modules) ++module_flows_begin_[v + 1];
  std::partial_sum(module_flows_begin_.begin(), module_flows_begin_.end(),
                   module_flows_begin_.begin());
  module_flows_.resize(program.flow_modules.size());
  std::vector<uint32_t> next(module_flows_begin_.begin(), module_flows_begin_.end() - 1);
  std::vector<uint32_t> root(n_flows);  // union-find; the smallest flow is the root
  std::iota(root.begin(), root.end(), 0U);
  const auto find = [&](uint32_t f) {
    while (root[f] != f) f = root[f];
    return f;
  };
  for (uint32_t f = 0; f < n_flows; ++f) {
    for (uint32_t i = program.flows[f].modules_begin; i < program.flows[f].modules_end; ++i) {
      const uint32_t v = program.flow_modules[i];
      module_flows_[next[v]++] = f;
      const uint32_t mine = find(f);
      const uint32_t other = find(module_flows_[module_flows_begin_[v]]);
      root[std::max(mine, other)] = std::min(mine, other);
    }
  }
  first_modules_.clear();
  first_modules_begin_.assign(1, 0);
  for (uint32_t f = 0; f < n_flows; ++f) {
    for (uint32_t i = program.flows[f].modules_begin; i < program.flows[f].modules_end; ++i) {
      const uint32_t v = program.flow_modules[i];
      if (module_flows_[module_flows_begin_[v]] == f) first_modules_.push_back(v);
    }
    first_modules_begin_.push_back(static_cast<uint32_t>(first_modules_.size()));
  }
  groups_.clear();
  group_flows_.clear();
  for (uint32_t f = 0; f < n_flows; ++f) {
    if (root[f] != f) continue;
    const auto begin = static_cast<uint32_t>(group_flows_.size());
    for (uint32_t g = f; g < n_flows; ++g) {
      if (find(g) == f) group_flows_.push_back(g);
    }
    groups_.push_back({begin, static_cast<uint32_t>(group_flows_.size())});
  }
  for (auto* by_module : {&point_.size, &last_size_, &point_.triggers, &module_price_, &weight_,
                          &own_price_, &backup_, &before_move_, &tried_}) {
    by_module->assign(n, 0);
  }
  for (auto* by_flow : {&point_.price, &penalty_, &room_ns_, &first_hold_ns_, &step_}) {
    by_flow->assign(n_flows, 0);
  }
  for (auto* flags : {&is_free_, &is_pinned_}) flags->assign(n, 0);
  for (auto* flags : {&is_short_, &point_.is_out}) flags->assign(n_flows, 0);
  for (auto* by_task : {&point_.emphasis, &feedback_, &penalty_feedback_}) {
    by_task->assign(program.tasks.size(), 0);
  }
  held_.assign(n, {});
  free_modules_.reserve(program.flow_modules.size());
  free_paths_begin_.assign(n_flows + 1, 0);
  was_free_.clear();
  next_alike_.assign(n, kNoModule);
  task_room_ns_.assign(program.tasks.size(), 0);
  turnaround_prices_.assign(program.tasks.size(), {});
  raises_.assign(n, {});
  needs_.assign(n, {});
  fills_.assign(n_flows, {});
  active_.reserve(std::max(n, n_flows));
  prepare_sets(program);
  forget();
}

// A module may hold when its largest batch would pay for the holding.
void Solver::choose_free(const Program& program) {
  for (size_t v = 0; v < program.modules.size(); ++v) {
    const ProgramModule& module = program.modules[v];
    is_free_[v] = is_pinned_[v] == 0 && rate_of(program, module, 1) > 0 &&
                  holding_pays(program, module, worth_down(module, module.max_pkts));
  }
}

// By task, the worth of a budget's price in shorter fills: at saturation fills follow the time per
// packet. Prices are those of the problem with fills fixed, the true price times `price_unit_`, so that the
// busiest task's load keeps the weight 1 (docs/model.md, "Solving").
void Solver::set_feedback(const Program& program) {
  std::ranges::fill(feedback_, 0.0);
  std::ranges::fill(penalty_feedback_, 0.0);
  price_unit_ = 1;
  if (std::ranges::none_of(program.tasks, &ProgramTask::is_saturated)) return;
  for (size_t f = 0; f < program.flows.size(); ++f) {
    const ProgramFlow& flow = program.flows[f];
    const bool is_short = is_short_[f] != 0;
    const double price = is_short ? penalty_[f] : point_.price[f];
    if (price <= 0) continue;
    std::vector<double>& sums = is_short ? penalty_feedback_ : feedback_;
    for (uint32_t i = flow.modules_begin; i < flow.modules_end; ++i) {
      const uint32_t v = program.flow_modules[i];
      const uint32_t t = program.modules[v].task;
      const ProgramTask& task = program.tasks[t];
      const double load = at_.task_pkt_ns[t] * task.rate_pkts_per_ns;
      if (task.is_saturated && load > 0) sums[t] += price * at_.fill_ns[v] / load;
    }
  }
  for (size_t t = 0; t < program.tasks.size(); ++t) {
    feedback_[t] = std::min(feedback_[t], kMaxFeedback);
    price_unit_ = std::min(price_unit_, (1 - feedback_[t]) / (1 + penalty_feedback_[t]));
  }
}

// Sets the weights of the objective and of the tasks' turnaround in the relaxed problem.
void Solver::set_weights(const Program& program) {
  set_feedback(program);
  for (size_t v = 0; v < program.modules.size(); ++v) {
    const uint32_t t = program.modules[v].task;
    const double load = (1 + penalty_feedback_[t]) * price_unit_ + feedback_[t];
    weight_[v] = load * slopes_.load_weight[v] + point_.emphasis[t] * slopes_.turnaround_weight[v];
    own_price_[v] = point_.emphasis[t] * slopes_.turnaround_slope[v];
  }
}

// The part of a flow's budget left for delay_slope * q of its modules that may hold; min_ns is the
// least that these need.
double Solver::room_of(const Program& program, uint32_t f, double& min_ns) const {
  const ProgramFlow& flow = program.flows[f];
  const double turnaround_ns = turnaround_of(program, at_, flow);
  double room_ns = flow.budget_ns + at_.mixing_ns[f];
  bool may_hold = false;
  min_ns = 0;
  for (uint32_t i = flow.modules_begin; i < flow.modules_end; ++i) {
    const uint32_t v = program.flow_modules[i];
    room_ns -= needs_[v].bypassed_ns;
    if (is_free_[v] == 0) continue;
    may_hold = true;
    room_ns += needs_[v].slope_ns - needs_[v].first_ns;
    min_ns += needs_[v].slope_ns;
  }
  return room_ns - (may_hold ? std::max(turnaround_ns, flow.least_turnaround_ns) : turnaround_ns);
}

// For a flow that could be served, but not held everywhere that holding pays: bypasses the buffer
// that delays it most. False when there is none.
bool Solver::bypass_dearest(const Program& program, uint32_t f) {
  const ProgramFlow& flow = program.flows[f];
  double max_ns = -1;
  uint32_t dearest = 0;
  for (uint32_t i = flow.modules_begin; i < flow.modules_end; ++i) {
    const uint32_t v = program.flow_modules[i];
    if (is_free_[v] == 0 || needs_[v].first_ns <= max_ns) continue;
    max_ns = needs_[v].first_ns;
    dearest = v;
  }
  if (max_ns < 0 || (max_ns == 0 && flow.least_turnaround_ns == 0)) return false;
  is_free_[dearest] = 0;
  return true;
}

// What each module takes of the budgets of its flows at the least.
void Solver::set_needs(const Program& program) {
  for (size_t v = 0; v < program.modules.size(); ++v) {
    const ProgramModule& module = program.modules[v];
    const double rate = rate_of(program, module, at_.task_pkt_ns[module.task]);
    needs_[v] = {
        .bypassed_ns = module.cost_per_batch_ns + module.cost_per_pkt_ns * module.arriving_pkts +
                       module.away_ns(module.arriving_pkts) + least_fill_ns(program, module, rate),
        .slope_ns = slopes_.delay_slope[v] * module.arriving_pkts,
        .first_ns = min_fill_ns(program, module, rate)};
  }
}

void Solver::set_relaxed_rooms(const Program& program) {
  set_needs(program);
  any_short_ = false;
  for (uint32_t f = 0; f < program.flows.size(); ++f) {
    is_short_[f] = 0;
    room_ns_[f] = kNoBudgetNs;
    if (point_.is_out[f] != 0 || program.flows[f].budget_ns == kNoBudgetNs) continue;
    double min_ns = 0;
    room_ns_[f] = room_of(program, f, min_ns);
    while (room_ns_[f] < min_ns && bypass_dearest(program, f)) {
      room_ns_[f] = room_of(program, f, min_ns);
    }
    // Once a flow pays a penalty, only a point within its budget ends the penalty.
    const bool is_late = penalty_[f] > 0 && at_.delay_ns[f] > program.flows[f].budget_ns;
    is_short_[f] = room_ns_[f] < min_ns || is_late;
    any_short_ |= is_short_[f] != 0;
  }
}

// A flow without room pays a penalty price, which grows until its shortage counts more than the
// load: the point moves to the flow's least delay, or to where it has room.
void Solver::set_penalties(const Program& program) {
  for (size_t f = 0; f < program.flows.size(); ++f) {
    if (is_short_[f] == 0) continue;
    const double least = at_.load / std::max(1.0, program.flows[f].budget_ns);
    penalty_[f] = std::min(kPenaltyGrowth * std::max(penalty_[f], least), kMaxPenalty * least);
  }
}

// Whether no penalty is paid, or only penalties whose growth would change nothing.
bool Solver::penalties_are_final(const Program& program) const {
  for (size_t f = 0; f < penalty_.size(); ++f) {
    if (penalty_[f] == 0) continue;
    const double least = at_.load / std::max(1.0, program.flows[f].budget_ns);
    if (penalty_[f] < kMaxPenalty * least * 0.5) return false;
  }
  return true;
}

// The price of a task's turnaround is the sum of its flows' budget prices. True when it changes by
// no more than counts beside the load.
bool Solver::update_emphasis(const Program& program) {
  std::ranges::fill(turnaround_prices_, TurnaroundPrice{});
  for (size_t f = 0; f < program.flows.size(); ++f) {
    const ProgramFlow& flow = program.flows[f];
    if (point_.price[f] == 0 && penalty_[f] == 0) continue;
    for (uint32_t i = flow.tasks_begin; i < flow.tasks_end; ++i) {
      TurnaroundPrice& of_task = turnaround_prices_[program.flow_tasks[i]];
      of_task.sum += point_.price[f];
      of_task.is_penalised |= penalty_[f] > 0;
    }
  }
  bool is_steady = true;
  for (size_t t = 0; t < program.tasks.size(); ++t) {
    const auto [sum, is_penalised] = turnaround_prices_[t];
    // Turnaround over load, both per batch: the same for all modules except for their spread.
    const ProgramTask& task = program.tasks[t];
    const double waited = task.runs_waited * task.run_pkts / task.rate_pkts_per_ns;
    is_steady &= !(std::abs(sum - point_.emphasis[t]) * waited > kSteadyEmphasis * settled_);
    point_.emphasis[t] =
        is_penalised ? sum : point_.emphasis[t] + part_ * (sum - point_.emphasis[t]);
  }
  for (size_t f = 0; f < penalty_.size(); ++f) {
    if (is_short_[f] == 0) penalty_[f] = 0;
  }
  return is_steady;
}

// Solves one convex problem; true when the point no longer moves, or this was the last iterate.
bool Solver::iterate(const Program& program, bool is_last) {
  evaluate(program, point_.size, at_);
  slopes_at(program, at_, slopes_);
  set_relaxed_rooms(program);
  set_penalties(program);
  set_weights(program);
  last_size_ = point_.size;
  solve_dual(program);
  ++solution_.relaxations;
  double change = 0;
  for (size_t v = 0; v < point_.size.size(); ++v) {
    change = std::max(change, std::abs(point_.size[v] - last_size_[v]) / last_size_[v]);
  }
  if (is_last) return true;
  const bool is_final = penalties_are_final(program);
  return update_emphasis(program) && is_final && change < settled_;
}

void Solver::relax(const Program& program) {
  part_ = 0.5;
  double last_change = kNoBudgetNs;
  for (uint32_t i = 0; i < max_iterates_; ++i) {
    if (iterate(program, i + 1 == max_iterates_)) return;
    double change = 0;
    for (size_t v = 0; v < point_.size.size(); ++v) {
      change += std::abs(point_.size[v] - last_size_[v]) / last_size_[v];
    }
    if (any_short_) {
      part_ = 0.5;
    } else if (i >= kUndamped) {
      if (change > 0.9 * last_change) part_ = std::max(kMinPart, 0.7 * part_);
      for (size_t v = 0; v < point_.size.size(); ++v) {
        point_.size[v] = last_size_[v] + part_ * (point_.size[v] - last_size_[v]);
      }
    }
    last_change = change;
  }
}

// Starts from the last point when that leads to a solution, else from the largest triggers. False
// when some flow stays short.
bool Solver::relax_all(const Program& program, bool is_warm) {
  const auto clamp_to_bounds = [&] {
    for (size_t v = 0; v < point_.size.size(); ++v) {
      const ProgramModule& module = program.modules[v];
      const double a = module.arriving_pkts;
      point_.size[v] =
          is_free_[v] != 0 ? std::clamp<double>(point_.size[v], a, module.max_pkts) : a;
    }
  };
  if (is_warm) {
    choose_free(program);
    clamp_to_bounds();
    relax(program);
    if (!any_short_) return true;
  }
  for (size_t v = 0; v < point_.size.size(); ++v) point_.size[v] = program.modules[v].max_pkts;
  choose_free(program);
  clamp_to_bounds();
  std::ranges::fill(point_.emphasis, 0.0);
  std::ranges::fill(penalty_, 0.0);
  relax(program);
  return !any_short_;
}

void Solver::exclude_short(const Program& program) {
  for (size_t f = 0; f < program.flows.size(); ++f) {
    if (is_short_[f] != 0) point_.is_out[f] = 1;
  }
}

// The sum by which flows miss their budgets.
double Solver::excess_of(const Program& program, const Evaluation& at) {
  double excess_ns = 0;
  for (size_t f = 0; f < program.flows.size(); ++f) {
    const double budget_ns = program.flows[f].budget_ns;
    if (at.delay_ns[f] > budget_ns * (1 + kBudgetSlack)) excess_ns += at.delay_ns[f] - budget_ns;
  }
  return excess_ns;
}

// Relaxed problem, then integers, twice: a buffer that does not pay as an integer gives its budget
// back.
void Solver::solve_round(const Program& program) {
  for (uint32_t round = 0; round <= kMaxExclusions; ++round) {
    if (!relax_all(program, has_point_ && round == 0) && round < kMaxExclusions) {
      exclude_short(program);
      continue;
    }
    round_down(program);
    if (bypass_unpaid(program)) {
      relax(program);
      round_down(program);
    }
    break;
  }
  raise_greedily(program);
  repair(program);
  search(program);
  equalise_alike(program);
  finish(program);
}

void Solver::finish(const Program& program) {
  evaluate_triggers(program);
  solution_.model = trial_;
  solution_.triggers_pkts = point_.triggers;
}

// No triggers keep some flows within their budgets: either the buffers on their paths are bypassed,
// or these flows are served as if without a budget, whichever misses by less.
void Solver::settle_infeasible(const Program& program) {
  const double free_excess_ns = excess_of(program, solution_.model);
  const Point as_if_free = point_;
  for (size_t f = 0; f < program.flows.size(); ++f) {
    if (point_.is_out[f] == 0) continue;
    for (uint32_t i = program.flows[f].modules_begin; i < program.flows[f].modules_end; ++i) {
      is_pinned_[program.flow_modules[i]] = 1;
    }
  }
  has_point_ = false;
  solve_round(program);
  const bool is_better = excess_of(program, solution_.model) < free_excess_ns;
  std::ranges::fill(is_pinned_, uint8_t{0});
  if (!is_better) {
    point_ = as_if_free;
    finish(program);
  }
  hold_nothing_if_in_time(program);
}

// Runs that hold nothing may vary less than any others, which the way there does not show.
void Solver::hold_nothing_if_in_time(const Program& program) {
  const std::vector<double> triggers = point_.triggers;
  std::ranges::fill(point_.triggers, 0.0);
  finish(program);
  if (excess_of(program, solution_.model) == 0) {
    std::ranges::fill(point_.is_out, uint8_t{0});
    std::ranges::fill(point_.price, 0.0);
    return;
  }
  point_.triggers = triggers;
  finish(program);
}

void Solver::start(const Program& program) {
  solution_.triggers_pkts.assign(program.modules.size(), 0);
  solution_.relaxations = solution_.tries = 0;
  is_tried_ = false;
  std::ranges::fill(point_.is_out, uint8_t{0});
  std::ranges::fill(is_pinned_, uint8_t{0});
  std::ranges::fill(penalty_, 0.0);
  if (!has_point_) std::ranges::fill(point_.price, 0.0);
}

Relaxation Solver::relaxed(const Program& program, double settled) {
  forget();
  start(program);
  settled_ = settled;
  max_iterates_ = kManyIterates;
  relax_all(program, false);
  settled_ = kSettled;
  max_iterates_ = kMaxIterates;
  Relaxation result{.batches_pkts = point_.size, .prices = point_.price};
  result.is_short.assign(is_short_.begin(), is_short_.end());
  evaluate(program, point_.size, result.model);
  result.relaxations = solution_.relaxations;
  return result;
}

const Solution& Solver::solve(const Program& program) {
  start(program);
  solve_round(program);
  const bool is_feasible = std::ranges::find(point_.is_out, 1) == point_.is_out.end();
  if (!is_feasible) settle_infeasible(program);
  solution_.prices = point_.price;
  solution_.is_infeasible.assign(point_.is_out.begin(), point_.is_out.end());
  has_point_ = is_feasible;
  return solution_;
}

}  // namespace batchplane::slo
