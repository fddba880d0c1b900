// SPDX-License-Identifier: BSD-3-Clause
// program_alike.cc - gives modules that are alike the same trigger. Equal triggers take turns; unequal ones
// drift against each other, so that now and then several fire in one run, which the model does not see.
#include <algorithm>
#include <cmath>

#include "slo/solver/program.h"

namespace batchplane::slo {
namespace {
constexpr double kAlike = 0.05;    // relative difference of costs and shares
constexpr double kMayCost = 0.01;  // of the load: as much may equal triggers cost

bool are_near(double a, double b) { return a == b || std::abs(a - b) <= kAlike * std::max(a, b); }

bool are_alike(const ProgramModule& a, const ProgramModule& b) {
  return a.task == b.task && a.max_pkts == b.max_pkts && are_near(a.share, b.share) &&
         are_near(a.arriving_pkts, b.arriving_pkts) &&
         are_near(a.service_ns(a.max_pkts), b.service_ns(b.max_pkts)) &&
         are_near(a.service_ns(a.arriving_pkts), b.service_ns(b.arriving_pkts));
}
}  // namespace

// The largest trigger for all modules in active_, from `most` down, that fits at about the same load; if there
// is none, leaves the triggers as they are.
void Solver::equalise(const Program& program, double most) {
  backup_ = triggers_;
  evaluate_triggers(program);
  const double most_load = trial_.load * (1 + kMayCost);
  const auto holds = [&](double to) {
    return std::ranges::all_of(active_,
                               [&](uint32_t v) { return is_holding(program.modules[v], to); });
  };
  for (double to = most; holds(to); --to) {
    for (const uint32_t v : active_) triggers_[v] = to;
    const bool all_fit = fits(program);
    if (trial_.load > most_load) break;
    if (all_fit) return;
  }
  triggers_ = backup_;
}

// Whether the module is in parallel to those whose flows are marked, and its flows may take as long. Marks its
// flows, too.
bool Solver::joins(const Program& program, uint32_t v, double budget_ns) {
  const auto begin = module_flows_.begin() + module_flows_begin_[v];
  const auto end = module_flows_.begin() + module_flows_begin_[v + 1];
  const bool is_parallel =
      std::none_of(begin, end, [&](uint32_t f) { return is_crossed_[f] != 0; });
  if (!is_parallel || !are_near(tightest_ns(program, v), budget_ns)) return false;
  std::for_each(begin, end, [&](uint32_t f) { is_crossed_[f] = 1; });
  return true;
}

double Solver::tightest_ns(const Program& program, uint32_t v) const {
  double least_ns = kNoBudgetNs;
  for (uint32_t i = module_flows_begin_[v]; i < module_flows_begin_[v + 1]; ++i) {
    least_ns = std::min(least_ns, program.flows[module_flows_[i]].budget_ns);
  }
  return least_ns;
}

void Solver::equalise_alike(const Program& program) {
  std::ranges::fill(is_seen_, uint8_t{0});
  for (uint32_t v = 0; v < triggers_.size(); ++v) {
    const double budget_ns = tightest_ns(program, v);
    double least = kNoBudgetNs;
    double most = 0;
    active_.clear();
    std::ranges::fill(is_crossed_, uint8_t{0});
    for (uint32_t w = v; w < triggers_.size(); ++w) {
      if (is_seen_[w] != 0 || triggers_[w] == 0 || is_pinned_[w] != 0) continue;
      if (!are_alike(program.modules[v], program.modules[w]) || !joins(program, w, budget_ns)) {
        continue;
      }
      is_seen_[w] = 1;
      active_.push_back(w);
      least = std::min(least, triggers_[w]);
      most = std::max(most, triggers_[w]);
    }
    if (most > least && program.tasks[program.modules[v].task].is_saturated) {
      equalise(program, most);
    }
  }
}

}  // namespace batchplane::slo
