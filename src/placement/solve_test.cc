// SPDX-License-Identifier: BSD-3-Clause
// solve_test.cc - plans against every possible plan, on small random problems.
#include "placement/solve.h"

#include <gtest/gtest.h>

#include "placement/random_problems.h"

namespace batchplane::placement {
namespace solve_test {

// A handful in a thousand are a little further off: bench_placement counts them.
TEST(Placement, IsWithinOnePercentOfTheBestPlanThereIs) {
  uint32_t n_further = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    const Problem problem = random_problem(seed, 2, 2);
    const Outcome found = evaluate(problem, solve(problem, {}));
    ASSERT_TRUE(found.is_feasible) << seed;
    const double off = score(found) / best_of_all(problem);
    EXPECT_LE(off, 1.02) << seed;
    n_further += off > 1.01 ? 1 : 0;
  }
  EXPECT_LE(n_further, 1U);
}

TEST(Placement, FindsTheSameAgain) {
  const Problem problem = random_problem(7, 8, 6);
  EXPECT_EQ(solve(problem, {}), solve(problem, {}));
}

// The plan in force is never made worse.
TEST(Placement, IsNoWorseThanWhereItBegan) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    const Problem problem = random_problem(seed, 4, 3);
    const Plan good = solve(problem, {}, 20 * kEffort);
    const Plan again = solve(problem, good);
    EXPECT_LE(score(evaluate(problem, again)), score(evaluate(problem, good)) * (1 + 1e-9)) << seed;
  }
}

TEST(Placement, RefusesWhatNoDeviceCanDo) {
  Problem problem = random_problem(3, 2, 2);
  for (App& app : problem.apps) app.rate_pps = 1e9;
  const Outcome found = evaluate(problem, solve(problem, {}));
  EXPECT_TRUE(found.is_feasible);
  EXPECT_LT(found.served_value, 0.5);
  for (Device& device : problem.devices) device.is_up = false;
  EXPECT_EQ(evaluate(problem, solve(problem, {})).served_value, 0);
}

// More valuable applications are served first.
TEST(Placement, ServesWhatIsWorthMore) {
  Problem problem;
  problem.devices = {{"only", 0, 1, 10}};
  problem.apps = {{"cheap", Policy::kPower, 1e6, 64, 1e6, 1},
                  {"dear", Policy::kPower, 1e6, 64, 1e6, 5}};
  problem.laws = {{{true, {1'000, 800}}}, {{true, {1'000, 800}}}};
  const Plan plan = solve(problem, {});
  EXPECT_EQ(plan[1].served(), 1);
  EXPECT_LT(plan[0].served(), 0.2);
}

}  // namespace solve_test
}  // namespace batchplane::placement
