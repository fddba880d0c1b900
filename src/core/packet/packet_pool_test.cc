// SPDX-License-Identifier: BSD-3-Clause
// packet_pool_test.cc - packets come back soon, while caches still have them.
#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "core/packet/packet_pool.h"

namespace batchplane {
namespace {

TEST(PacketPool, GivesWhatCameBackLast) {
  constexpr uint32_t kPoolPkts = 16'384;
  constexpr uint32_t kBurstPkts = 32;
  constexpr uint32_t kUnderWayPkts = 2048;
  PacketPool pool("pool_order", kPoolPkts);
  std::set<Packet*> seen;
  for (uint32_t round = 0; round < 50; ++round) {
    std::vector<Packet*> under_way(kUnderWayPkts);
    for (uint32_t at = 0; at < kUnderWayPkts; at += kBurstPkts) {
      ASSERT_TRUE(pool.alloc_bulk(&under_way[at], kBurstPkts));
    }
    seen.insert(under_way.begin(), under_way.end());
    for (uint32_t at = 0; at < kUnderWayPkts; at += kBurstPkts) {
      PacketPool::free_bulk(&under_way[at], kBurstPkts);
    }
  }
  // Those and a cache or two; a queue would have had all of the pool take turns.
  EXPECT_LE(seen.size(), 2U * kUnderWayPkts);
  EXPECT_EQ(pool.available_pkts(), kPoolPkts);
}

}  // namespace
}  // namespace batchplane
