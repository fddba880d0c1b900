// SPDX-License-Identifier: BSD-3-Clause
// percentiles_test.cc - percentiles from buckets: nearest ranks, interpolation, enough packets.
#include "exec/percentiles.h"

#include <gtest/gtest.h>

#include <vector>

#include "exec/delay_histogram.h"

namespace batchplane::exec {
namespace {

TEST(Percentiles, AreFoundInOnePass) {
  const std::vector<uint64_t> counts{0, 90, 0, 5, 4, 1};
  WantedPercentile wanted[] = {{0.5}, {0.9}, {0.95}, {0.99}, {1}, {0}};
  find_percentiles(
      100, 6, [&](uint32_t i) { return counts[i]; }, wanted);
  std::vector<uint32_t> buckets;
  for (const WantedPercentile& found : wanted) buckets.push_back(found.bucket);
  EXPECT_EQ(buckets, (std::vector<uint32_t>{1, 1, 3, 4, 5, 1}));
}

TEST(Percentiles, NeedTenBeyondThem) {
  for (const double p : {0.5, 0.9, 0.95, 0.99, 0.999}) {
    const auto least = static_cast<uint64_t>(10 / (1 - p) + 0.5);
    EXPECT_TRUE(has_percentile(least, p)) << p;
    EXPECT_FALSE(has_percentile(least - 1, p)) << p;
  }
}

TEST(Percentiles, EndWithTheLargest) {
  const uint32_t b = FineBuckets::index(1000);
  EXPECT_EQ(FineBuckets::upper_ns(b, 5000), FineBuckets::lower_ns(b + 1) - 1);
  EXPECT_EQ(FineBuckets::upper_ns(b, 1001), 1001U);
  EXPECT_EQ(FineBuckets::upper_ns(FineBuckets::kCount - 1, 1ULL << 41), 1ULL << 41);
}

// A bucket within the SLO is 1/24 of it wide, one beyond it 1/4.
TEST(SloBuckets, SpreadTheirPackets) {
  uint64_t pkts[SloBuckets::kCount] = {};
  pkts[6] = 80;
  pkts[SloBuckets::kWithin + 1] = 20;
  EXPECT_DOUBLE_EQ(SloBuckets::ratio_above(40, pkts), 6.5 / 24);
  EXPECT_DOUBLE_EQ(SloBuckets::ratio_above(80, pkts), 7.0 / 24);
  EXPECT_DOUBLE_EQ(SloBuckets::ratio_above(95, pkts), 1 + 0.25 * 1.75);
  EXPECT_GT(SloBuckets::ratio_above(101, pkts), 1e9);
}

}  // namespace
}  // namespace batchplane::exec
