// SPDX-License-Identifier: BSD-3-Clause
// cost_estimate_test.cc - a module's costs from sampled executions, exact and noisy.
#include "slo/model/cost_estimate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace batchplane::slo {
namespace {

// Batches of the given sizes, with times by the law, each off by a uniform share of `noise`.
CostSamples samples_of(const std::vector<uint32_t>& sizes, const CostLaw& cost, double noise = 0,
                       std::mt19937_64* random = nullptr) {
  CostSamples samples;
  for (const uint32_t n : sizes) {
    double time_ns = cost.ns(n);
    if (random != nullptr) time_ns *= 1 + std::uniform_real_distribution(-noise, noise)(*random);
    samples.add(n, static_cast<uint64_t>(std::llround(time_ns)));
  }
  return samples;
}

TEST(CostEstimate, StartsAsTheProfileAndStaysThereWithoutSamples) {
  ModuleCostEstimate estimate({800, 40});
  for (int i = 0; i < 100; ++i) estimate.add({});
  EXPECT_EQ(estimate.cost().line().cost_per_batch_ns, 800);
  EXPECT_EQ(estimate.cost().line().cost_per_pkt_ns, 40);
  EXPECT_EQ(estimate.drift_ratio(), 1);
}

// One size only: 800 + 40 * 20 = 1600 ns were expected, 3200 are measured. Which cost has changed
// cannot be known: both double.
TEST(CostEstimate, OneSizeScalesBothCosts) {
  ModuleCostEstimate estimate({800, 40});
  for (int i = 0; i < 20; ++i) estimate.add(samples_of(std::vector<uint32_t>(10, 20), {1600, 80}));
  EXPECT_NEAR(estimate.cost().line().cost_per_batch_ns, 1600, 16);
  EXPECT_NEAR(estimate.cost().line().cost_per_pkt_ns, 80, 1);
  EXPECT_NEAR(estimate.drift_ratio(), 2, 0.02);
}

// The same time for that size although only the cost per packet has grown: the proportion is kept.
TEST(CostEstimate, OneSizeKeepsTheProportionOfTheProfile) {
  ModuleCostEstimate estimate({800, 40});
  for (int i = 0; i < 40; ++i) estimate.add(samples_of({20, 20, 20, 20}, {800, 120}));
  EXPECT_NEAR(estimate.cost().line().cost_per_batch_ns, 1600, 16);
  EXPECT_NEAR(estimate.cost().line().cost_per_pkt_ns, 80, 1);
}

TEST(CostEstimate, VaryingSizesMoveEachCostByItself) {
  ModuleCostEstimate estimate({800, 40});
  for (int i = 0; i < 100; ++i) {
    estimate.add(samples_of({1, 4, 8, 16, 24, 32, 32, 12}, {800, 120}));
  }
  EXPECT_NEAR(estimate.cost().line().cost_per_batch_ns, 800, 25);
  EXPECT_NEAR(estimate.cost().line().cost_per_pkt_ns, 120, 2);
  // Once learned, the proportion stays when sizes no longer vary and everything becomes 1.5 times slower.
  for (int i = 0; i < 40; ++i) estimate.add(samples_of({16, 16, 16}, {1200, 180}));
  EXPECT_NEAR(estimate.cost().line().cost_per_batch_ns, 1200, 60);
  EXPECT_NEAR(estimate.cost().line().cost_per_pkt_ns, 180, 3);
}

// A drift of 2x is followed to within 5 % in 20 periods, with few samples per period and 10 %
// noise.
TEST(CostEstimate, FollowsADriftWithinTwentyPeriods) {
  std::mt19937_64 random(11);
  for (int seed = 0; seed < 50; ++seed) {
    const CostLaw before(500.0 + 50 * seed, 20.0 + seed);
    const CostLaw after = before.scaled(2);
    ModuleCostEstimate estimate(before);
    const auto sizes = [&] {
      std::vector<uint32_t> drawn(3);
      for (uint32_t& n : drawn) n = 1 + random() % 32;
      return drawn;
    };
    for (int i = 0; i < 200; ++i) estimate.add(samples_of(sizes(), before, 0.1, &random));
    EXPECT_NEAR(estimate.drift_ratio(), 1, 0.05);
    for (int i = 0; i < 20; ++i) estimate.add(samples_of(sizes(), after, 0.1, &random));
    EXPECT_NEAR(estimate.drift_ratio(), 2, 0.1);
  }
}

TEST(CostEstimate, IsQuietInNoise) {
  std::mt19937_64 random(5);
  ModuleCostEstimate estimate({1000, 50});
  for (int i = 0; i < 1000; ++i) {
    std::vector<uint32_t> sizes;
    for (int k = 0; k < 30; ++k) sizes.push_back(19 + random() % 3);
    estimate.add(samples_of(sizes, {1000, 50}, 0.1, &random));
    EXPECT_NEAR(estimate.cost().line().cost_per_batch_ns, 1000, 150);
    EXPECT_NEAR(estimate.cost().line().cost_per_pkt_ns, 50, 8);
  }
}

// As sampled behind buffers on a real core: a few executions a period, of similar sizes, whose times
// differ by half. A slope through the samples alone would be anything between nothing and all.
TEST(CostEstimate, KeepsTheProportionWhereNoiseIsLarge) {
  std::mt19937_64 random(7);
  double most = 0;
  for (int seed = 0; seed < 50; ++seed) {
    ModuleCostEstimate estimate({66, 7});
    for (int i = 0; i < 500; ++i) {
      std::vector<uint32_t> sizes;
      for (int k = 0; k < 3; ++k) sizes.push_back(6 + random() % 5);
      estimate.add(samples_of(sizes, {66, 7}, 0.8, &random));
      const double wrong = estimate.cost().line().cost_per_batch_ns / 66 - 1;
      most += wrong * wrong / (50 * 500);
    }
  }
  EXPECT_LT(std::sqrt(most), 0.3);
}

// Whoever holds nothing sees one size only, at a speed that changes and with noise, for hours.
TEST(CostEstimate, OneSizeTellsNothingOfTheProportion) {
  const CostLaw::Line profile{46, 6};
  for (const uint32_t size_pkts : {2, 30}) {
    for (const bool alternates : {false, true}) {
      std::mt19937_64 random(size_pkts);
      std::lognormal_distribution factor(-0.1, 0.45);
      ModuleCostEstimate estimate{CostLaw(profile)};
      for (int i = 0; i < 100'000; ++i) {
        const double speed = alternates && i / 20 % 2 == 0 ? 1.45 : 1;
        CostSamples samples;
        for (int k = 0; k < 10; ++k) {
          const double ns = speed * factor(random) * profile.ns(size_pkts);
          samples.add(size_pkts, static_cast<uint64_t>(std::llround(ns)));
        }
        estimate.add(samples);
      }
      const CostLaw::Line& line = estimate.cost().line();
      EXPECT_NEAR(line.cost_per_batch_ns / line.cost_per_pkt_ns, 46.0 / 6, 1)
          << size_pkts << " packets, " << alternates;
    }
  }
}

// Sums of whole nanoseconds, as they come from a core: what is lost there was a slope once, that made batches seem
// free within 20 periods.
TEST(CostEstimate, RoundingIsNoSlope) {
  std::mt19937_64 random(1);
  ModuleCostEstimate estimate({46, 6});
  for (int i = 0; i < 300; ++i) {
    uint64_t cycles = 0;
    for (int k = 0; k < 272; ++k) cycles += 140 + random() % 60;
    constexpr double kNsPerCycle = 0.37;
    const auto in_ns = [](uint64_t n) {
      return static_cast<uint64_t>(kNsPerCycle * static_cast<double>(n));
    };
    estimate.add({272, 544, 1088, in_ns(cycles), in_ns(2 * cycles)});
    const CostLaw::Line& line = estimate.cost().line();
    EXPECT_NEAR(line.cost_per_batch_ns / line.ns(2), 46.0 / 58, 0.05) << "period " << i;
  }
}

// The logarithm of a few noisy times is low on average.
TEST(CostEstimate, NoiseMakesNothingCheap) {
  std::mt19937_64 random(2);
  std::lognormal_distribution factor(-0.125, 0.5);
  ModuleCostEstimate estimate({66, 7});
  double sum_ns = 0;
  for (int i = 0; i < 4000; ++i) {
    CostSamples samples;
    samples.add(10, static_cast<uint64_t>(std::llround(136 * factor(random))));
    estimate.add(samples);
    sum_ns += estimate.cost().ns(10) / 4000;
  }
  EXPECT_NEAR(sum_ns, 136, 4);
}

// Two interruptions in a row are seldom alike; a change of speed is.
TEST(CostEstimate, TwoThatAreFarOffCountOnlyIfTheySayTheSame) {
  ModuleCostEstimate estimate({66, 7});
  const auto see = [&](double factor) {
    estimate.add(samples_of({10, 10, 10}, CostLaw(66, 7).scaled(factor)));
  };
  for (int i = 0; i < 50; ++i) see(1);
  for (const double factor : {150.0, 0.05, 0.9, 150.0, 6.0}) see(factor);
  EXPECT_NEAR(estimate.cost().ns(10), 136, 8);
  for (int i = 0; i < 3; ++i) see(6);
  EXPECT_NEAR(estimate.cost().ns(10), 6 * 136, 40);
}

// A profile may have points of nothing, and a table that falls is nothing beyond its end.
TEST(CostEstimate, APointOfNothingIsNoEnd) {
  for (const CostLaw& law : {CostLaw({{1, 0}, {2, 1.5}, {4, 3}, {8, 7}}, {0, 1}),
                             CostLaw({{16, 100}, {32, 500}}, {0, 25})}) {
    ModuleCostEstimate estimate(law);
    for (int i = 0; i < 50'000; ++i) estimate.add(samples_of({1, 1, 2, 2}, {10, 3}));
    EXPECT_TRUE(std::isfinite(estimate.cost().ns(8)));
    EXPECT_GT(estimate.cost().ns(16), 0);
    EXPECT_GT(estimate.drift_ratio(), 0);
  }
}

// Nothing is known of a module that was never profiled, not even which of its costs counts.
TEST(CostEstimate, WhatWasNeverProfiledIsLearntSooner) {
  const CostLaw truth(20, 200);
  ModuleCostEstimate unknown(CostLaw(kUnknownCost), kUnknownShape);
  ModuleCostEstimate profiled{CostLaw(kUnknownCost)};
  std::mt19937_64 random(4);
  for (int i = 0; i < 20; ++i) {
    const CostSamples samples = samples_of({1, 2, 4, 3, 5, 2, 8, 1}, truth, 0.3, &random);
    unknown.add(samples);
    profiled.add(samples);
  }
  EXPECT_LT(unknown.cost().line().cost_per_batch_ns,
            0.8 * profiled.cost().line().cost_per_batch_ns);
}

// A few large batches among small ones: their noise is ten times as many nanoseconds, and they alone make the slope.
TEST(CostEstimate, TheNoiseOfLargeBatchesIsNotTakenForThatOfTheMean) {
  const CostLaw truth(66, 7);
  double squares = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    std::mt19937_64 random(seed);
    std::lognormal_distribution factor(-0.125, 0.5);
    ModuleCostEstimate estimate(truth);
    for (int i = 0; i < 1000; ++i) {
      CostSamples samples;
      for (int k = 0; k < 3; ++k) {
        const uint64_t n = random() % 10 < 3 ? 32 : 2;
        const double ns = factor(random) * truth.ns(static_cast<double>(n));
        samples.add(n, static_cast<uint64_t>(std::llround(ns)));
      }
      estimate.add(samples);
      squares += std::pow(std::log(estimate.cost().line().cost_per_batch_ns / 66), 2);
    }
  }
  EXPECT_LT(std::sqrt(squares / 20'000), 0.12);
}

// Hours of noise do not raise the level of anything inside, and what an interrupted execution took is
// not held against the packets.
TEST(CostEstimate, KeepsItsLevelForHours) {
  std::mt19937_64 random(3);
  ModuleCostEstimate estimate({66, 7});
  for (int i = 0; i < 3'000'000; ++i) {
    std::vector<uint32_t> sizes;
    for (int k = 0; k < 2; ++k) sizes.push_back(6 + random() % 5);
    CostSamples samples = samples_of(sizes, {66, 7}, 0.9, &random);
    if (i % 1000 == 0) samples.add(10, 70'000);
    estimate.add(samples);
    if (i % 1000 != 200) continue;
    EXPECT_NEAR(estimate.cost().line().ns(8), 122, 100);
    EXPECT_GT(estimate.cost().line().cost_per_batch_ns, 15);
    EXPECT_GT(estimate.cost().line().cost_per_pkt_ns, 2);
  }
}

TEST(CostEstimate, NeverNegative) {
  ModuleCostEstimate falling({1000, 50});  // larger batches are faster: no negative slope
  ModuleCostEstimate rising({1000, 50});   // time grows with the square: no negative intercept
  CostSamples fall;
  CostSamples rise;
  for (const uint64_t n : {4, 16, 32}) {
    fall.add(n, 3200 - 50 * n);
    rise.add(n, 10 * n * n);
  }
  for (int i = 0; i < 100; ++i) {
    falling.add(fall);
    rising.add(rise);
  }
  EXPECT_GE(falling.cost().line().cost_per_pkt_ns, 0);
  EXPECT_LT(falling.cost().line().cost_per_pkt_ns, 1);
  EXPECT_NEAR(falling.cost().line().cost_per_batch_ns, fall.cycles / 3.0, 20);
  EXPECT_GE(rising.cost().line().cost_per_batch_ns, 0);
  EXPECT_LT(rising.cost().line().cost_per_batch_ns, 200);
  EXPECT_GT(rising.cost().line().cost_per_pkt_ns, 200);
}

TEST(CostEstimate, NonsenseIsPassedOver) {
  ModuleCostEstimate estimate({std::nan(""), -3});
  EXPECT_EQ(estimate.cost().line().cost_per_batch_ns, 0);
  EXPECT_EQ(estimate.cost().line().cost_per_pkt_ns, 0);
  ModuleCostEstimate good({800, 40});
  constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
  for (const CostSamples& bad :
       {CostSamples{5, 3, 9, 100, 300}, CostSamples{2, 20, 10, 100, 300},
        CostSamples{1, 4, kMost, 100, 400}, CostSamples{0, 4, 16, 100, 400}}) {
    good.add(bad);
  }
  EXPECT_EQ(good.cost().line().cost_per_batch_ns, 800);
  good.add({1, 4, 16, 0, 0});
  good.add({3, 12, 48, kMost, kMost});
  EXPECT_TRUE(std::isfinite(good.cost().line().cost_per_batch_ns));
  EXPECT_GE(good.cost().line().cost_per_batch_ns, 0);
}

TEST(CostEstimate, WithoutAProfileTheSamplesAloneTell) {
  ModuleCostEstimate estimate({});
  estimate.add(samples_of({2, 8, 16, 32, 20, 1}, {600, 30}));
  for (int i = 0; i < 100; ++i) estimate.add(samples_of({2, 8, 16, 32, 20, 1}, {600, 30}));
  EXPECT_NEAR(estimate.cost().line().cost_per_batch_ns, 600, 10);
  EXPECT_NEAR(estimate.cost().line().cost_per_pkt_ns, 30, 1);
  EXPECT_EQ(estimate.drift_ratio(), 1);
}

// Work in units of eight packets: batches of nine take 210 ns, which no line fits.
TEST(CostEstimate, AProfiledTableKeepsItsShape) {
  std::vector<double> stairs;
  for (uint32_t n = 1; n <= 32; ++n) {
    const uint32_t units = (n + 7) / 8;
    stairs.push_back(50.0 + 80.0 * units);
  }
  const CostLaw profile(points_of(stairs));
  ModuleCostEstimate estimate(profile);
  for (int i = 0; i < 20; ++i) estimate.add(samples_of({9, 9, 9, 9}, profile));
  for (const uint32_t n : {1, 8, 9, 32}) {
    EXPECT_NEAR(estimate.cost().ns(n), profile.ns(n), 0.05 * profile.ns(n)) << n;
  }
  for (int i = 0; i < 40; ++i) estimate.add(samples_of({9, 9, 9, 9}, profile.scaled(2)));
  for (const uint32_t n : {1, 8, 9, 32}) {
    EXPECT_NEAR(estimate.cost().ns(n), 2 * profile.ns(n), 0.05 * profile.ns(n)) << n;
  }
}

}  // namespace
}  // namespace batchplane::slo
