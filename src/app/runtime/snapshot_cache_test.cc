// SPDX-License-Identifier: BSD-3-Clause
// snapshot_cache_test.cc - how often snapshots are taken; one-line summaries of packets.
#include "app/runtime/snapshot_cache.h"

#include <gtest/gtest.h>

#include "app/runtime/packet_summary.h"

namespace batchplane::app {
namespace {

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
