// SPDX-License-Identifier: BSD-3-Clause
// packet_test.cc - what modules note of a packet, and what copies of it have.
#include "core/packet/packet.h"

#include <gtest/gtest.h>

#include "core/packet/packet_pool.h"

namespace batchplane {
namespace {

TEST(Packet, NotesLastUntilItsMetadataIsFresh) {
  PacketPool pool("packet_notes", 4);
  Packet* pkts[2];
  ASSERT_TRUE(pool.alloc_bulk(pkts, 2));
  for (Packet* pkt : pkts) {
    pkt->reset(60);
    pkt->meta() = PacketMeta{};
    EXPECT_FALSE(pkt->has_departure());
  }
  pkts[0]->set_mark(0xffff'ffff);
  pkts[0]->set_departure_ticks(7);
  EXPECT_EQ(pkts[0]->mark(), 0xffff'ffff);
  EXPECT_TRUE(pkts[0]->has_departure());
  EXPECT_EQ(pkts[0]->departure_ticks(), 7U);
  copy_meta(*pkts[0], *pkts[1]);
  EXPECT_EQ(pkts[1]->mark(), 0xffff'ffff);
  EXPECT_TRUE(pkts[1]->has_departure());
  EXPECT_EQ(pkts[1]->departure_ticks(), 7U);
  pkts[1]->meta() = PacketMeta{};
  EXPECT_FALSE(pkts[1]->has_departure());
  PacketPool::free_bulk(pkts, 2);
}

}  // namespace
}  // namespace batchplane
