// SPDX-License-Identifier: BSD-3-Clause
// budgets_test.cc - the master against closed forms: tasks whose load falls as c / budget, with
// known best division.
#include "slo/papers/budgets.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "base/rng.h"

namespace batchplane::slo {
namespace {

constexpr double kSloNs = 12'000;

double sum_of(const std::vector<LegState>& legs) {
  double sum_ns = 0;
  for (const LegState& leg : legs) sum_ns += leg.budget_ns;
  return sum_ns;
}

// A chain of one buffer: load c / budget, so one more nanosecond saves c / budget^2.
double set_prices(const std::vector<double>& costs, std::vector<LegState>& legs) {
  double load = 0;
  for (size_t i = 0; i < legs.size(); ++i) {
    load += costs[i] / legs[i].budget_ns;
    legs[i].load_per_ns = costs[i] / (legs[i].budget_ns * legs[i].budget_ns);
  }
  return load;
}

// sum c_i / b_i with sum b_i = D is least for b_i proportional to sqrt(c_i).
double least_load(const std::vector<double>& costs) {
  double roots = 0;
  for (const double cost : costs) roots += std::sqrt(cost);
  return roots * roots / kSloNs;
}

double load_after(const BudgetRule& rule, const std::vector<double>& costs, size_t leader,
                  uint64_t steps) {
  std::vector<LegState> legs = equal_budgets(kSloNs, costs.size());
  for (uint64_t k = 1; k <= steps; ++k) {
    const double load = set_prices(costs, legs);
    divide_budget(kSloNs, leader, load, k, rule, legs);
  }
  return set_prices(costs, legs);
}

// Two to four tasks whose best budgets differ by up to 3 times.
TEST(Budgets, StepsLeadToTheBestDivision) {
  Rng rng(7);
  double worst_fixed = 0;
  double worst_diminishing = 0;
  for (int i = 0; i < 2000; ++i) {
    std::vector<double> costs(2 + rng.below(3));
    for (double& cost : costs) cost = 1'000 + static_cast<double>(rng.below(8'000));
    const size_t leader = rng.below(static_cast<uint32_t>(costs.size()));
    const double least = least_load(costs);
    const double fixed =
        load_after({.step = BudgetStep::kFixed, .step_size = 0.03}, costs, leader, 400);
    const double diminishing =
        load_after({.step = BudgetStep::kDiminishing, .step_size = 0.5}, costs, leader, 400);
    worst_fixed = std::max(worst_fixed, fixed / least);
    worst_diminishing = std::max(worst_diminishing, diminishing / least);
  }
  EXPECT_LT(worst_fixed, 1.01);
  EXPECT_LT(worst_diminishing, 1.01);
}

TEST(Budgets, StaticOnesStay) {
  std::vector<LegState> legs = equal_budgets(kSloNs, 3);
  legs[2].delay_ns = 9'000;
  legs[1].load_per_ns = 1;
  divide_budget(kSloNs, 0, 1, 1, {.step = BudgetStep::kStatic}, legs);
  for (const LegState& leg : legs) EXPECT_EQ(leg.budget_ns, kSloNs / 3);
}

// The paper's second figure: three cores that take 1, 1 and 4 units for a full batch. With equal
// budgets the third is always over its budget; the master takes from the others the part that they
// do not need.
TEST(Budgets, ATaskPastItsBudgetGetsWhatOthersDoNotNeed) {
  std::vector<LegState> legs = equal_budgets(9'000, 3);
  legs[0].delay_ns = legs[1].delay_ns = 1'000;
  legs[2].delay_ns = 4'000;
  for (uint64_t k = 1; k <= 3; ++k) divide_budget(9'000, 2, 1, k, {}, legs);
  EXPECT_GE(legs[2].budget_ns, 4'000);
  EXPECT_GE(legs[0].budget_ns, 1'000);
  EXPECT_NEAR(legs[0].budget_ns, legs[1].budget_ns, 1e-6);
  EXPECT_NEAR(sum_of(legs), 9'000, 1e-6);
}

TEST(Budgets, NobodyGivesWhatItNeeds) {
  std::vector<LegState> legs = equal_budgets(kSloNs, 2);
  legs[0].delay_ns = 5'900;
  legs[1].delay_ns = 11'000;
  for (uint64_t k = 1; k <= 50; ++k) divide_budget(kSloNs, 0, 1, k, {}, legs);
  EXPECT_GE(legs[0].budget_ns, 5'900 - 1e-6);
  EXPECT_NEAR(sum_of(legs), kSloNs, 1e-6);
}

TEST(Budgets, AddUpToTheSloAndAreNeverNegative) {
  Rng rng(11);
  for (int i = 0; i < 3000; ++i) {
    std::vector<LegState> legs = equal_budgets(kSloNs, 2 + rng.below(3));
    const BudgetRule rule{rng.below(2) == 0 ? BudgetStep::kFixed : BudgetStep::kDiminishing,
                          static_cast<double>(rng.below(100)) / 10, 0.1};
    for (uint64_t k = 1; k <= 20; ++k) {
      for (LegState& leg : legs) {
        leg.delay_ns = static_cast<double>(rng.below(9'000));
        leg.load_per_ns = static_cast<double>(rng.below(1'000)) / 1e6;
      }
      divide_budget(kSloNs, rng.below(static_cast<uint32_t>(legs.size())), 0.7, k, rule, legs);
      EXPECT_NEAR(sum_of(legs), kSloNs, 1e-6);
      for (const LegState& leg : legs) EXPECT_GE(leg.budget_ns, -1e-9);
    }
  }
}

}  // namespace
}  // namespace batchplane::slo
