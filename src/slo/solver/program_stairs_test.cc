// SPDX-License-Identifier: BSD-3-Clause
// program_stairs_test.cc - the solver with stair-shaped costs of lanes, against every vector of
// integers.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "base/cost_fit.h"
#include "base/rng.h"
#include "slo/solver/program.h"
#include "slo/solver/program_test_util.h"

namespace batchplane::slo {
namespace program_stairs_test {

// A step for each `lanes` packets, a line that summarises it, and the remainder off that line.
void make_stair(ProgramModule& module, Stair& stair, uint32_t lanes, double step_ns,
                double per_pkt_ns) {
  std::vector<double> times;
  for (uint32_t n = 1; n <= module.max_pkts; ++n) {
    times.push_back(step_ns * std::ceil(static_cast<double>(n) / lanes) + per_pkt_ns * n);
  }
  const CostLaw::Line line = fit_line(points_of(times)).line;
  module.cost_per_batch_ns = line.cost_per_batch_ns;
  module.cost_per_pkt_ns = line.cost_per_pkt_ns;
  stair.extra_ns.assign(module.max_pkts + 1, 0);
  for (uint32_t n = 1; n <= module.max_pkts; ++n) stair.extra_ns[n] = times[n - 1] - line.ns(n);
  stair.extra_ns[0] = stair.extra_ns[1];
  module.stair = &stair;
  mark_worth(module);
}

struct Stairs {
  Program program;
  std::vector<std::unique_ptr<Stair>> stairs;
};

// Budgets as random_program_of gives them to lines of about the same costs.
Stairs random_stairs(Rng& rng, bool is_saturated, uint32_t n_modules, uint32_t max_pkts) {
  Stairs made{random_program_of(rng, is_saturated, n_modules, max_pkts), {}};
  for (ProgramModule& module : made.program.modules) {
    made.stairs.push_back(std::make_unique<Stair>());
    if (rng.below(4) == 0) continue;
    make_stair(module, *made.stairs.back(), 2 + rng.below(max_pkts - 2), module.cost_per_batch_ns,
               0.2 * module.cost_per_pkt_ns);
  }
  return made;
}

struct Tally {
  uint32_t feasible = 0;
  uint32_t apart = 0;  // more than 1 % above the best
  double worst_ratio = 1;
};

struct Kind {
  bool is_saturated = false;
  uint32_t most_modules = 3;
  uint32_t max_pkts = 10;
};

Tally compare(uint64_t seed, uint32_t instances, const Kind& kind, bool sees_stairs) {
  Rng rng(seed);
  Tally tally;
  for (uint32_t i = 0; i < instances; ++i) {
    const Stairs made =
        random_stairs(rng, kind.is_saturated, 1 + rng.below(kind.most_modules), kind.max_pkts);
    const Best best = brute_force(made.program);
    Program seen = made.program;
    for (ProgramModule& module : seen.modules) {
      if (!sees_stairs) module.stair = nullptr;
    }
    Solver solver;
    solver.prepare(seen);
    const Solution& solution = solver.solve(seen);
    if (best.load == kNoBudgetNs || std::ranges::count(solution.is_infeasible, true) != 0) continue;
    ++tally.feasible;
    Evaluation at;
    const Triggers& triggers = solution.triggers_pkts;
    evaluate(made.program, triggers, at);
    bool fits = true;
    for (size_t f = 0; f < made.program.flows.size(); ++f) {
      fits &= at.delay_ns[f] <= made.program.flows[f].budget_ns * (1 + 1e-8);
    }
    EXPECT_TRUE(fits || !sees_stairs) << "seed " << seed << " instance " << i;
    const double ratio = fits ? at.load / best.load : 2;
    tally.worst_ratio = std::max(tally.worst_ratio, ratio);
    tally.apart += ratio > 1.01 ? 1 : 0;
  }
  return tally;
}

class ProgramStairs : public testing::TestWithParam<bool> {};

TEST_P(ProgramStairs, AreSeenAndClimbed) {
  const Kind kind{.is_saturated = GetParam()};
  const Tally tally = compare(11, 4000, kind, true);
  EXPECT_GT(tally.feasible, 1500U);
  EXPECT_LE(tally.apart, tally.feasible / 1000);
  EXPECT_LE(tally.worst_ratio, 1.05);
  // A solver that sees only lines misses the edges of the steps, or the budgets.
  const Tally blind = compare(11, 500, kind, false);
  EXPECT_GT(blind.apart, blind.feasible / 4);
}

TEST_P(ProgramStairs, LargerBatches) {
  const Kind kind{.is_saturated = GetParam(), .max_pkts = 24};
  const Tally tally = compare(12, 150, kind, true);
  EXPECT_GT(tally.feasible, 60U);
  EXPECT_LE(tally.apart, tally.feasible / 20);
  EXPECT_LE(tally.worst_ratio, 1.05);
}

// Also where modules that are alike get a common one.
TEST(ProgramStairs, TriggersAreSizesWithCheaperPacketsThanSmallerOnes) {
  uint32_t held = 0;
  for (uint32_t i = 0; i < 100; ++i) {
    Rng rng(i);
    Program program = alike_branches(8);
    std::vector<Stair> stairs(8);
    for (uint32_t v = 0; v < 8; ++v) {
      make_stair(program.modules[v], stairs[v], 4, 80 * (1 + 0.1 * rng.uniform()), 2);
    }
    for (uint32_t v = 0; v < 8; ++v) {
      add_flow(program, (4'000 + 100 * i) * (1 + 0.3 * rng.uniform()), {v});
    }
    Solver solver;
    solver.prepare(program);
    const Solution& found = solver.solve(program);
    for (uint32_t v = 0; v < 8; ++v) {
      const ProgramModule& module = program.modules[v];
      const double q = found.triggers_pkts[v];
      held += q > 0;
      for (double less = 3; less < q; ++less) {
        EXPECT_LE(module.service_ns(q) / q, module.service_ns(less) / less * (1 + 1e-9)) << i;
      }
    }
  }
  EXPECT_GT(held, 200U);
}

INSTANTIATE_TEST_SUITE_P(Loads, ProgramStairs, testing::Bool());

}  // namespace program_stairs_test
}  // namespace batchplane::slo
