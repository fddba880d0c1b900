// SPDX-License-Identifier: BSD-3-Clause
// cost_pool_test.cc - costs of many modules from few samples of each.
#include "slo/model/cost_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <utility>
#include <vector>

namespace batchplane::slo {
namespace {
constexpr uint32_t kBranches = 64;

std::vector<CostEstimator::Prior> branches(const CostLaw& law, uint32_t n = kBranches) {
  return std::vector<CostEstimator::Prior>(n, {law, "nat 0"});
}

// Samples of a core that executes every branch in turn: in a period two of three branches are seen, each once,
// with a batch of about 20 packets. Executions of one size differ by half.
class Core {
 public:
  explicit Core(uint64_t seed) : random_(seed) {}
  void period(exec::PeriodSnapshot& snapshot, const std::function<CostLaw(uint32_t)>& cost) {
    for (uint32_t m = 0; m < snapshot.modules.size(); ++m) {
      CostSamples& samples = snapshot.modules[m].samples;
      samples = {};
      if (random_() % 3 == 0) continue;
      const uint64_t n = 18 + random_() % 5;
      const double factor = std::lognormal_distribution(-0.1, 0.45)(random_);
      samples.add(n,
                  static_cast<uint64_t>(std::llround(factor * cost(m).ns(static_cast<double>(n)))));
    }
  }

 private:
  std::mt19937_64 random_;
};

std::pair<double, double> range(const exec::PeriodSnapshot& snapshot, double size_pkts) {
  double least = 1e9;
  double most = 0;
  for (const exec::ModulePeriod& module : snapshot.modules) {
    least = std::min(least, module.cost.ns(size_pkts));
    most = std::max(most, module.cost.ns(size_pkts));
  }
  return {least, most};
}

TEST(CostEstimator, PutsItsEstimatesIntoTheSnapshot) {
  CostEstimator estimator({{{800, 40}, {}}, {{100, 5}, {}}});
  exec::PeriodSnapshot snapshot;
  snapshot.modules.resize(2);
  for (int i = 0; i < 60; ++i) {
    snapshot.modules[0].samples = {};
    for (int k = 0; k < 2; ++k) snapshot.modules[0].samples.add(20, 3200);
    estimator.update(snapshot);
  }
  EXPECT_NEAR(snapshot.modules[0].cost.line().cost_per_batch_ns, 1600, 40);
  EXPECT_NEAR(estimator.drift_ratio(0), 2, 0.05);
  EXPECT_EQ(estimator.cost(1).line().cost_per_batch_ns, 100);
}

// By themselves, branches sampled as seldom as this seem to differ by more than half.
TEST(CostEstimator, BranchesOfOneMakeCostTheSame) {
  const CostLaw law(66, 7);
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Core core(seed);
    CostEstimator estimator(branches(law));
    exec::PeriodSnapshot snapshot;
    snapshot.modules.resize(kBranches);
    for (int i = 0; i < 300; ++i) {
      core.period(snapshot, [&](uint32_t) { return law.scaled(1.5); });
      estimator.update(snapshot);
      if (i < 20) continue;
      for (const double size_pkts : {1.0, 20.0, 32.0}) {
        const auto [least, most] = range(snapshot, size_pkts);
        EXPECT_LT(most / least, 1.05) << "seed " << seed << ", period " << i;
      }
    }
    EXPECT_NEAR(estimator.drift_ratio(0), 1.5, 0.25);
    EXPECT_EQ(estimator.common_cost(0), estimator.common_cost(kBranches - 1));
  }
}

TEST(CostEstimator, AModuleWithoutAMakeIsByItself) {
  CostEstimator estimator({{{66, 7}, {}}, {{66, 7}, {}}});
  exec::PeriodSnapshot snapshot;
  snapshot.modules.resize(2);
  for (int i = 0; i < 100; ++i) {
    snapshot.modules[0].samples = {};
    snapshot.modules[0].samples.add(20, 412);
    estimator.update(snapshot);
  }
  EXPECT_NEAR(snapshot.modules[0].cost.ns(20), 412, 10);
  EXPECT_EQ(snapshot.modules[1].cost, CostLaw(66, 7));
}

// Sums in whole nanoseconds of one sample each, sizes that vary by a packet.
TEST(CostEstimator, RoundingOfManyIsNoSlope) {
  constexpr double kCyclesPerNs = 2.7;
  const CostLaw law(66, 7);
  std::mt19937_64 random(3);
  std::lognormal_distribution factor(-0.05, 0.33);
  CostEstimator estimator(branches(law));
  exec::PeriodSnapshot snapshot;
  snapshot.modules.resize(kBranches);
  for (int i = 0; i < 1000; ++i) {
    for (exec::ModulePeriod& module : snapshot.modules) {
      const uint64_t n = 19 + random() % 3;
      const double ns = factor(random) * law.ns(static_cast<double>(n));
      CostSamples cycles;
      cycles.add(n, static_cast<uint64_t>(std::llround(kCyclesPerNs * ns)));
      module.samples = cycles.in_units_of(kCyclesPerNs);
    }
    estimator.update(snapshot);
  }
  EXPECT_NEAR(snapshot.modules[0].cost.line().cost_per_batch_ns, 66, 25);
}

// Times are those of a table, not of the line through it: with 16 lanes, 17 packets take twice as long as 16.
TEST(CostEstimator, StairsDoNotSetBranchesApart) {
  std::vector<CostLaw::Point> points;
  for (uint32_t n = 1; n <= 32; ++n) points.push_back({n, n <= 16 ? 130.0 : 230.0});
  const CostLaw law(points);
  CostEstimator estimator(branches(law, 8));
  exec::PeriodSnapshot snapshot;
  snapshot.modules.resize(8);
  for (int i = 0; i < 300; ++i) {
    for (uint32_t m = 0; m < 8; ++m) {
      const uint64_t n = m < 4 ? 16 : 17;
      snapshot.modules[m].samples = {};
      for (int k = 0; k < 3; ++k) {
        snapshot.modules[m].samples.add(n, static_cast<uint64_t>(law.ns(static_cast<double>(n))));
      }
    }
    estimator.update(snapshot);
  }
  const auto [least, most] = range(snapshot, 16);
  EXPECT_LT(most / least, 1.05);
}

// A pool must not hide a branch whose table does not fit the cache.
TEST(CostEstimator, ABranchThatTakesTwiceAsLongIsFound) {
  const CostLaw law(66, 7);
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Core core(seed);
    CostEstimator estimator(branches(law));
    exec::PeriodSnapshot snapshot;
    snapshot.modules.resize(kBranches);
    for (int i = 0; i < 300; ++i) {
      core.period(snapshot, [&](uint32_t m) { return m == 5 ? law.scaled(2) : law; });
      estimator.update(snapshot);
    }
    const double rest = snapshot.modules[6].cost.ns(20);
    EXPECT_GT(snapshot.modules[5].cost.ns(20), 1.5 * rest) << "seed " << seed;
  }
}

// Also where a branch is sampled often, executions hardly differ, and it has become slow meanwhile: what is far off
// once is an interruption, but not what stays.
TEST(CostEstimator, ABranchThatBecomesSlowIsFoundAndTheOthersAreNotBlamed) {
  const CostLaw law(66, 7);
  for (const uint32_t n_branches : {4, 8, 64}) {
    for (const double sigma : {0.1, 0.33}) {
      std::mt19937_64 random(n_branches);
      std::lognormal_distribution factor(-sigma * sigma / 2, sigma);
      CostEstimator estimator(branches(law, n_branches));
      exec::PeriodSnapshot snapshot;
      snapshot.modules.resize(n_branches);
      for (int i = 0; i < 1200; ++i) {
        for (uint32_t m = 0; m < n_branches; ++m) {
          const double ns = law.ns(20) * (m == 0 && i >= 300 ? 2 : 1);
          snapshot.modules[m].samples = {};
          for (uint32_t k = 0; k < 80 / n_branches; ++k) {
            snapshot.modules[m].samples.add(20, static_cast<uint64_t>(ns * factor(random)));
          }
        }
        estimator.update(snapshot);
      }
      EXPECT_NEAR(snapshot.modules[0].cost.ns(20) / law.ns(20), 2, 0.2)
          << n_branches << " " << sigma;
      EXPECT_NEAR(snapshot.modules[1].cost.ns(20) / law.ns(20), 1, 0.1)
          << n_branches << " " << sigma;
    }
  }
}

TEST(CostEstimator, WhatTakesNoTimeIsNoNumberAmiss) {
  CostEstimator estimator(branches({500, 40}, 2));
  exec::PeriodSnapshot snapshot;
  snapshot.modules.resize(2);
  for (exec::ModulePeriod& module : snapshot.modules) module.samples.add(10, 0);
  for (int i = 0; i < 100; ++i) estimator.update(snapshot);
  EXPECT_TRUE(std::isfinite(estimator.drift_ratio(0)));
}

TEST(CostEstimator, EveryBranchHasItsOwnCostsWhereTheyDiffer) {
  const CostLaw law(66, 7);
  const auto cost = [&](uint32_t m) { return law.scaled(0.5 + 0.05 * m); };
  Core core(1);
  CostEstimator estimator(branches(law, 32));
  exec::PeriodSnapshot snapshot;
  snapshot.modules.resize(32);
  for (int i = 0; i < 400; ++i) {
    core.period(snapshot, cost);
    estimator.update(snapshot);
  }
  for (uint32_t m = 0; m < 32; ++m) {
    EXPECT_NEAR(snapshot.modules[m].cost.ns(20) / cost(m).ns(20), 1, 0.35) << m;
  }
}

// What another program took of the core while a branch ran, and sums that no batches can have.
TEST(CostEstimator, ABranchIsNotJudgedByAnInterruptedExecution) {
  const CostLaw law(66, 7);
  Core core(4);
  CostEstimator estimator(branches(law));
  exec::PeriodSnapshot snapshot;
  snapshot.modules.resize(kBranches);
  for (int i = 0; i < 300; ++i) {
    core.period(snapshot, [&](uint32_t) { return law; });
    if (i % 10 == 0) snapshot.modules[3].samples.add(20, 20'000);
    if (i % 10 == 5) snapshot.modules[3].samples = {5, 3, 9, 100, 300};
    estimator.update(snapshot);
  }
  EXPECT_LT(snapshot.modules[3].cost.ns(20) / snapshot.modules[4].cost.ns(20), 1.05);
}

}  // namespace
}  // namespace batchplane::slo
