// SPDX-License-Identifier: BSD-3-Clause
// telemetry_test.cc - cost fits, percentiles and the cache of snapshots.
#include "telemetry/telemetry.h"

#include <gtest/gtest.h>

#include "app/packet_summary.h"
#include "app/snapshot_cache.h"

namespace batchplane::app {
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

struct CountedTakes {
  int plain = 0;
  int fine = 0;
  SnapshotCache::Take take = [this](bool with_fine) {
    ++(with_fine ? fine : plain);
    Snapshot snapshot;
    snapshot.flows.resize(1);
    if (with_fine) snapshot.flows[0].fine_buckets = {1, 2, 3};
    return snapshot;
  };
};

TEST(SnapshotCache, OneSnapshotServesAllOfAMillisecond) {
  CountedTakes counted;
  SnapshotCache cache;
  uint64_t now_ns = 1'000'000'000;
  for (int i = 0; i < 10; ++i)
    (void)cache.get(now_ns + static_cast<uint64_t>(i) * 99'999, false, counted.take);
  EXPECT_EQ(counted.plain, 1);
  (void)cache.get(now_ns + SnapshotCache::kFreshNs, false, counted.take);
  EXPECT_EQ(counted.plain, 2);
}

TEST(SnapshotCache, FineHistogramsAreTakenRarelyAndAlwaysThere) {
  CountedTakes counted;
  SnapshotCache cache;
  for (uint64_t ms = 0; ms < 100; ++ms) {
    const auto snapshot = cache.get(5'000'000'000 + ms * 2'000'000, true, counted.take);
    EXPECT_EQ(snapshot->flows[0].fine_buckets.size(), 3U);
  }
  EXPECT_EQ(counted.fine, 1);
  EXPECT_EQ(counted.plain, 99);
}

TEST(SnapshotCache, ForgetsWhenTold) {
  CountedTakes counted;
  SnapshotCache cache;
  (void)cache.get(1, false, counted.take);
  cache.forget();
  (void)cache.get(1, false, counted.take);
  EXPECT_EQ(counted.plain, 2);
}

TEST(PacketSummary, NamesTheHeaders) {
  std::vector<uint8_t> frame(60);
  frame[12] = 0x08;
  uint8_t* ip = frame.data() + 14;
  ip[0] = 0x45;
  ip[8] = 64;
  ip[9] = 17;
  ip[12] = ip[16] = 10;
  ip[15] = 1;
  ip[19] = 2;
  ip[21] = 7;
  ip[23] = 9;
  EXPECT_EQ(summarize(frame.data(), 60, 60), "UDP 10.0.0.1:7 > 10.0.0.2:9, ttl 64, 60 bytes");
}

TEST(PacketSummary, NeverLooksBeyondWhatIsThere) {
  std::vector<uint8_t> frame(60, 0xff);
  frame[12] = 0x81;
  frame[13] = 0x00;
  frame[16] = 0x08;
  frame[17] = 0x00;
  for (uint32_t n = 0; n <= 60; ++n) {
    const std::vector<uint8_t> exact(frame.begin(), frame.begin() + n);
    EXPECT_FALSE(summarize(exact.data(), n, n).empty());
  }
}

}  // namespace
}  // namespace batchplane::app
