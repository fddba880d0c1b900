// SPDX-License-Identifier: BSD-3-Clause
// telemetry_test.cc - cost fits and percentiles.
#include "telemetry/telemetry.h"

#include <gtest/gtest.h>

namespace batchplane {
namespace {

using telemetry::percentile_ns;
using telemetry::sampled_cost;

TEST(SampledCost, FindsBothCostsOfALaw) {
  CostSamples samples;
  for (uint64_t n = 1; n <= 32; ++n) samples.add(n, 100 + 7 * n);
  const auto law = sampled_cost(samples, 2.0);
  ASSERT_TRUE(law.has_value());
  EXPECT_NEAR(law->cost_per_batch_ns, 50.0, 1e-6);
  EXPECT_NEAR(law->cost_per_pkt_ns, 3.5, 1e-6);
}

TEST(SampledCost, SaysNothingWhenOneSizeIsAllThereIs) {
  CostSamples samples;
  for (int i = 0; i < 100; ++i) samples.add(32, 300);
  EXPECT_FALSE(sampled_cost(samples, 2.0).has_value());
  EXPECT_FALSE(sampled_cost({}, 2.0).has_value());
}

TEST(Percentile, NeedsTenPacketsBeyondIt) {
  std::vector<uint64_t> buckets(exec::FineBuckets::kCount);
  buckets[5] = 999;
  EXPECT_FALSE(percentile_ns(buckets, 0.99, 5).has_value());
  buckets[5] = 1000;
  EXPECT_EQ(percentile_ns(buckets, 0.99, 5), 5U);
  EXPECT_FALSE(percentile_ns(buckets, 0.999, 5).has_value());
}

TEST(Percentile, IsNeverBelowTheTrueOne) {
  std::vector<uint64_t> buckets(exec::FineBuckets::kCount);
  constexpr uint64_t kDelayNs = 123'456;
  buckets[exec::FineBuckets::index(100)] = 900;
  buckets[exec::FineBuckets::index(kDelayNs)] = 100;
  const auto p95 = percentile_ns(buckets, 0.95, 200'000);
  ASSERT_TRUE(p95.has_value());
  EXPECT_GE(*p95, kDelayNs);
  EXPECT_LE(*p95, kDelayNs + kDelayNs / 25);
  EXPECT_LT(*percentile_ns(buckets, 0.5, 200'000), 110U);
  EXPECT_EQ(percentile_ns(buckets, 0.95, kDelayNs), kDelayNs);
}

}  // namespace
}  // namespace batchplane
