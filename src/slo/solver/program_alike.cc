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

bool are_near(double a, double b) { return std::abs(a - b) <= kAlike * std::max(a, b); }

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

void Solver::equalise_alike(const Program& program) {
  std::ranges::fill(is_seen_, uint8_t{0});
  for (uint32_t v = 0; v < triggers_.size(); ++v) {
    if (is_seen_[v] != 0 || triggers_[v] == 0 || is_pinned_[v] != 0) continue;
    active_.clear();
    double least = triggers_[v];
    double most = least;
    for (uint32_t w = v; w < triggers_.size(); ++w) {
      const bool is_other = is_seen_[w] != 0 || triggers_[w] == 0 || is_pinned_[w] != 0;
      if (is_other || !are_alike(program.modules[v], program.modules[w])) continue;
      is_seen_[w] = 1;
      active_.push_back(w);
      least = std::min(least, triggers_[w]);
      most = std::max(most, triggers_[w]);
    }
    if (most > least) equalise(program, most);
  }
}

}  // namespace batchplane::slo
