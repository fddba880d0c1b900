// SPDX-License-Identifier: BSD-3-Clause
// packet_pool_test.cc - freed packets are reused soon, while they are still in the CPU caches.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <span>
#include <vector>

#include "core/packet/packet_pool.h"

#if !BATCHPLANE_DPDK && defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

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
  // Those in flight plus a cache or two; a FIFO pool would have cycled through all packets.
  EXPECT_LE(seen.size(), 2U * kUnderWayPkts);
  EXPECT_EQ(pool.available_pkts(), kPoolPkts);
}

// Without its environment DPDK's pools have no common memory.
TEST(PacketPool, ItsMemoryHoldsThePacketsDataAndNothingBehindIt) {
  PacketPool pool("pool_memory", 64);
  const std::vector<std::span<uint8_t>> pieces = pool.memory();
  std::vector<Packet*> pkts(64);
  ASSERT_TRUE(pool.alloc_bulk(pkts.data(), 64));
  for (Packet* const pkt : pkts) {
    pkt->reset(pool.data_bytes());
    const auto holds = [pkt](std::span<uint8_t> piece) {
      return pkt->data() >= piece.data() &&
             pkt->data() + pkt->len_bytes() <= piece.data() + piece.size();
    };
    EXPECT_EQ(std::ranges::count_if(pieces, holds), pieces.empty() ? 0 : 1);
  }
  PacketPool::free_bulk(pkts.data(), 64);
}

#if !BATCHPLANE_DPDK && defined(__SANITIZE_ADDRESS__)
// Packets lie one after another, and most have never been written.
TEST(PacketPool, TheSanitizerKnowsWhereAPacketEnds) {
  PacketPool pool("pool_ends", 3);
  Packet* pkts[3];
  ASSERT_TRUE(pool.alloc_bulk(pkts, 3));
  pkts[1]->reset(pool.data_bytes());
  EXPECT_EQ(__asan_region_is_poisoned(pkts[1]->data(), pool.data_bytes()), nullptr);
  EXPECT_TRUE(__asan_address_is_poisoned(pkts[1]->data() + pool.data_bytes()));
  EXPECT_TRUE(__asan_address_is_poisoned(pkts[1]->data() - kHeadroomBytes - 1));
  PacketPool::free_bulk(pkts, 3);
}
#endif

}  // namespace
}  // namespace batchplane
