// SPDX-License-Identifier: BSD-3-Clause
// arrivals_test.cc - rates, spacing and reproducibility of arrival schedules.
#include "exec/arrivals.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/rng.h"

namespace batchplane::exec {
namespace {

std::vector<uint64_t> take(Arrivals<Rng>& arrivals, int n) {
  std::vector<uint64_t> due;
  for (int i = 0; i < n; ++i) {
    due.push_back(arrivals.due_ns());
    arrivals.advance();
  }
  return due;
}

TEST(Arrivals, ConstantKeepsItsRateOverHours) {
  Arrivals<Rng> arrivals({.rate_per_s = 3.0}, Rng(1));
  arrivals.start(1000);
  EXPECT_EQ(arrivals.due_ns(), 1000U);
  const auto due = take(arrivals, 30001);
  // 10,000 seconds, although a third of a second is not a whole number of nanoseconds.
  EXPECT_NEAR(static_cast<double>(due.back() - 1000), 1e13, 10.0);
}

TEST(Arrivals, PoissonHasTheRightMeanAndSpread) {
  Arrivals<Rng> arrivals({.kind = ArrivalKind::kPoisson, .rate_per_s = 1e6}, Rng(5));
  arrivals.start(0);
  const auto due = take(arrivals, 100001);
  double sum = 0;
  double squares = 0;
  for (size_t i = 1; i < due.size(); ++i) {
    const auto gap = static_cast<double>(due[i] - due[i - 1]);
    sum += gap;
    squares += gap * gap;
  }
  const double mean = sum / 1e5;
  EXPECT_NEAR(mean, 1000, 15);
  EXPECT_NEAR(squares / 1e5 / (mean * mean), 2.0, 0.1);
}

TEST(Arrivals, OnOffIsSilentWhenOffAndKeepsTheMeanRate) {
  Arrivals<Rng> arrivals(
      {.kind = ArrivalKind::kOnOff, .rate_per_s = 1e6, .on_ns = 10'000, .off_ns = 30'000}, Rng(1));
  arrivals.start(500);
  const auto due = take(arrivals, 4000);
  for (const uint64_t at : due) EXPECT_LT((at - 500) % 40'000, 10'000U);
  EXPECT_NEAR(static_cast<double>(due.back() - due.front()), 4e6, 40'000);
}

TEST(Arrivals, SameSeedSameTimes) {
  const ArrivalSpec spec{.kind = ArrivalKind::kPoisson, .rate_per_s = 1e5};
  Arrivals<Rng> a(spec, Rng(9));
  Arrivals<Rng> b(spec, Rng(9));
  Arrivals<Rng> c(spec, Rng(10));
  for (auto* arrivals : {&a, &b, &c}) arrivals->start(0);
  const auto first = take(a, 100);
  EXPECT_EQ(first, take(b, 100));
  EXPECT_NE(first, take(c, 100));
}

TEST(Arrivals, RateZeroStopsAndALaterRateStartsAgain) {
  Arrivals<Rng> arrivals({.rate_per_s = 0}, Rng(1));
  arrivals.start(10);
  EXPECT_EQ(arrivals.due_ns(), kNeverNs);
  arrivals.advance();
  EXPECT_EQ(arrivals.due_ns(), kNeverNs);
  arrivals.set_rate(1e9, 5000);
  EXPECT_EQ(arrivals.due_ns(), 5000U);
  arrivals.set_rate(0, 6000);
  EXPECT_EQ(arrivals.due_ns(), kNeverNs);
}

TEST(Arrivals, AFasterRateDoesNotWaitForTheSlowOne) {
  Arrivals<Rng> arrivals({.rate_per_s = 0.001}, Rng(1));
  arrivals.start(0);
  arrivals.advance();  // next in 1000 s
  arrivals.set_rate(1000, 2'000'000);
  EXPECT_LE(arrivals.due_ns(), 3'000'000U);
}

}  // namespace
}  // namespace batchplane::exec
