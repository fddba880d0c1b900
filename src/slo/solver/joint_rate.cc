// SPDX-License-Identifier: BSD-3-Clause
#include "slo/solver/joint_rate.h"

#include <algorithm>
#include <cmath>

namespace batchplane::slo {
namespace {

constexpr uint32_t kMaxRates = 4;   // rounds of rate and weights
constexpr double kSameRate = 1e-3;  // relative change of the rate
// The weight of a worker's load is a power of its ratio to the busiest worker's load: so steep that
// only the workers that set the pace count, smooth enough that two workers do not take turns.
constexpr double kSteepness = 16;

std::vector<double> worker_ns(const Joint& joint, const Evaluation& at) {
  std::vector<double> sums;
  for (size_t t = 0; t < joint.worker_of_task.size(); ++t) {
    const uint32_t w = joint.worker_of_task[t];
    if (sums.size() <= w) sums.resize(w + 1, 0);
    sums[w] += joint.visits[t] * std::max(0.0, at.task_pkt_ns[t] - joint.spared_ns[t]);
  }
  return sums;
}

// The only task that takes any time; kNotOne when several do, or none.
constexpr size_t kNotOne = ~size_t{0};
size_t only_task(const Program& program) {
  size_t only = kNotOne;
  for (size_t t = 0; t < program.tasks.size(); ++t) {
    const bool takes_time =
        program.tasks[t].other_run_ns > 0 ||
        std::ranges::any_of(program.modules, [&](const auto& m) { return m.task == t; });
    if (takes_time && only != kNotOne) return kNotOne;
    if (takes_time) only = t;
  }
  return only;
}

void weigh(const Joint& joint, const Evaluation& at, bool is_saturated, Program& program) {
  const std::vector<double> loads = worker_ns(joint, at);
  const double most = *std::ranges::max_element(loads);
  for (size_t t = 0; t < program.tasks.size(); ++t) {
    const double near = most > 0 ? loads[joint.worker_of_task[t]] / most : 1;
    const double wanted = is_saturated ? std::max(1e-3, std::pow(near, kSteepness)) : 1;
    // Only halfway, or two workers with similar loads would change places for ever.
    program.tasks[t].weight = std::sqrt(program.tasks[t].weight * wanted);
  }
}

std::vector<double> weights_of(const Program& program) {
  std::vector<double> weights;
  for (const ProgramTask& task : program.tasks) weights.push_back(task.weight);
  return weights;
}

}  // namespace

double bottleneck_ns(const Joint& joint, const Evaluation& at) {
  return std::ranges::max(worker_ns(joint, at));
}

void set_weights(const std::vector<double>& weights, Program& program) {
  for (size_t t = 0; t < weights.size(); ++t) program.tasks[t].weight = weights[t];
}

void set_rate(const Joint& joint, double rate_pkts_per_ns, Program& program) {
  for (size_t t = 0; t < program.tasks.size(); ++t) {
    program.tasks[t].is_saturated = false;
    program.tasks[t].rate_pkts_per_ns = joint.visits[t] * rate_pkts_per_ns;
  }
  if (joint.offered_pkts_per_ns > 0) return;
  // The rate of a single task follows from its triggers: the solver finds this fixed point.
  const size_t only = only_task(program);
  if (only != kNotOne) program.tasks[only].is_saturated = true;
}

JointSolution solve_joint(const Joint& joint, double first_rate_pkts_per_ns, Program& program,
                          Solver& solver) {
  JointSolution best;
  double rate = first_rate_pkts_per_ns;
  bool has_best = false;
  size_t best_short = 0;
  for (ProgramTask& task : program.tasks) task.weight = 1;
  if (joint.offered_pkts_per_ns <= 0 && only_task(program) != kNotOne) {
    set_rate(joint, rate, program);
    best.solution = solver.solve(program);
    best.rate_pkts_per_ns = 1 / std::max(1e-9, bottleneck_ns(joint, best.solution.model));
    // Loads, and prices with them, were those of the first rate.
    for (double& price : best.solution.prices) price *= best.rate_pkts_per_ns / rate;
    best.solution.model.load *= best.rate_pkts_per_ns / rate;
    set_rate(joint, best.rate_pkts_per_ns, program);
    best.weights.assign(program.tasks.size(), 1);
    return best;
  }
  for (uint32_t round = 0; round < kMaxRates; ++round) {
    set_rate(joint, rate, program);
    const Solution& found = solver.solve(program);
    const double carried = 1 / std::max(1e-9, bottleneck_ns(joint, found.model));
    const bool is_saturated =
        joint.offered_pkts_per_ns <= 0 || joint.offered_pkts_per_ns >= carried;
    const double next = is_saturated ? carried : joint.offered_pkts_per_ns;
    const size_t n_short = found.n_left_out();
    const bool is_better =
        !has_best || n_short < best_short ||
        (n_short == best_short && is_saturated && next > best.rate_pkts_per_ns * (1 + kSameRate));
    if (is_better || !is_saturated) {
      // All but the model, which is evaluated again at the rate found.
      best.solution.triggers_pkts = found.triggers_pkts;
      best.solution.prices = found.prices;
      for (double& price : best.solution.prices) price *= next / rate;
      best.solution.is_infeasible = found.is_infeasible;
      best.weights = weights_of(program);
      best.rate_pkts_per_ns = next;
      best_short = n_short;
      has_best = true;
    }
    // Below saturation all workers weigh the same: the first round is the last.
    if (std::abs(next - rate) <= kSameRate * rate && (round > 0 || !is_saturated)) break;
    rate = next;
    weigh(joint, found.model, is_saturated, program);
  }
  if (joint.offered_pkts_per_ns > 0) best.weights.assign(program.tasks.size(), 1);
  set_rate(joint, best.rate_pkts_per_ns, program);
  set_weights(best.weights, program);
  evaluate(program, best.solution.triggers_pkts, best.solution.model);
  return best;
}

}  // namespace batchplane::slo
