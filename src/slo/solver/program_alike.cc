// SPDX-License-Identifier: BSD-3-Clause
// program_alike.cc - gives modules that are alike the same trigger. Equal triggers take turns; unequal ones
// drift against each other, so that now and then several fire in one run, which the model does not see.
#include <algorithm>

#include "slo/solver/program.h"

namespace batchplane::slo {
namespace {
constexpr double kMayCost = 0.01;  // of the load: as much may equal triggers cost
}  // namespace

// The largest trigger for all modules in active_, from `most` down, that fits at about the same load; if there
// is none, leaves the triggers as they are.
void Solver::equalise(const Program& program, double most) {
  backup_ = point_.triggers;
  evaluate_triggers(program);
  const double most_load = trial_.load * (1 + kMayCost);
  const auto holds = [&](double to) {
    return std::ranges::all_of(active_,
                               [&](uint32_t v) { return is_holding(program.modules[v], to); });
  };
  const ProgramModule& first = program.modules[active_.front()];
  for (double to = most; holds(to); to = worth_down(first, to - 1)) {
    for (const uint32_t v : active_) point_.triggers[v] = to;
    const bool all_fit = fits(program);
    if (trial_.load > most_load) break;
    if (all_fit) return;
  }
  point_.triggers = backup_;
}

void Solver::equalise_alike(const Program& program) {
  // Chains of modules that are alike, from the first one of each.
  std::ranges::fill(next_alike_, kNoModule);
  for (auto w = static_cast<uint32_t>(point_.triggers.size()); w-- > 0;) {
    const uint32_t first = program.modules[w].alike;
    if (first == kNoModule || first == w) continue;
    next_alike_[w] = next_alike_[first];
    next_alike_[first] = w;
  }
  for (uint32_t v = 0; v < point_.triggers.size(); ++v) {
    if (program.modules[v].alike != v || !program.tasks[program.modules[v].task].is_saturated)
      continue;
    double least = kNoBudgetNs;
    double most = 0;
    active_.clear();
    for (uint32_t w = v; w != kNoModule; w = next_alike_[w]) {
      if (point_.triggers[w] == 0 || is_pinned_[w] != 0) continue;
      active_.push_back(w);
      least = std::min(least, point_.triggers[w]);
      most = std::max(most, point_.triggers[w]);
    }
    if (most > least) equalise(program, most);
  }
}

}  // namespace batchplane::slo
