// SPDX-License-Identifier: BSD-3-Clause
#include "slo/papers/budgets.h"

#include <algorithm>

namespace batchplane::slo {
namespace {

// Legs over their budgets get more, as far as the others can spare it: a budget never falls below
// the measured delay. True when there were such legs, whether or not they could be helped.
bool help_those_over(double slo_ns, const BudgetRule& rule, std::vector<LegState>& legs) {
  double wanted_ns = 0;
  double spare_ns = 0;
  for (const LegState& leg : legs) {
    if (leg.delay_ns > leg.budget_ns) wanted_ns += rule.shift * slo_ns;
    spare_ns += std::max(0.0, leg.budget_ns - leg.delay_ns);
  }
  if (wanted_ns <= 0) return false;
  if (spare_ns <= 0) return true;
  const double given_ns = std::min(wanted_ns, spare_ns);
  for (LegState& leg : legs) {
    const double own_spare_ns = leg.budget_ns - leg.delay_ns;
    if (own_spare_ns < 0) {
      leg.budget_ns += given_ns * rule.shift * slo_ns / wanted_ns;
    } else {
      leg.budget_ns -= given_ns * own_spare_ns / spare_ns;
    }
  }
  return true;
}

}  // namespace

std::vector<LegState> equal_budgets(double slo_ns, size_t n_legs) {
  return std::vector<LegState>(n_legs, {.budget_ns = slo_ns / static_cast<double>(n_legs)});
}

void divide_budget(double slo_ns, size_t leader, double load, uint64_t number,
                   const BudgetRule& rule, std::vector<LegState>& legs) {
  if (rule.step == BudgetStep::kStatic || legs.size() < 2) return;
  if (help_those_over(slo_ns, rule, legs) || load <= 0) return;
  // alpha = delta D^2 / L: prices are loads per time, so alpha times a price is a time.
  double step_ns2 = rule.step_size * slo_ns * slo_ns / load;
  if (rule.step == BudgetStep::kDiminishing) step_ns2 /= static_cast<double>(number);
  double followers_ns = 0;
  for (size_t i = 0; i < legs.size(); ++i) {
    if (i == leader) continue;
    const double moved_ns = step_ns2 * (legs[i].load_per_ns - legs[leader].load_per_ns);
    // A leg keeps the delay that it takes now: prices are valid for small changes only.
    const double least_ns = std::min(legs[i].budget_ns, legs[i].delay_ns);
    legs[i].budget_ns = std::clamp(legs[i].budget_ns + moved_ns, least_ns, slo_ns);
    followers_ns += legs[i].budget_ns;
  }
  const double least_ns = std::min(legs[leader].budget_ns, legs[leader].delay_ns);
  const double most_ns = slo_ns - least_ns;
  if (followers_ns > most_ns) {
    for (size_t i = 0; i < legs.size(); ++i) {
      if (i != leader) legs[i].budget_ns *= most_ns / followers_ns;
    }
    followers_ns = most_ns;
  }
  legs[leader].budget_ns = slo_ns - followers_ns;
}

}  // namespace batchplane::slo
