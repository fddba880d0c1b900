// SPDX-License-Identifier: BSD-3-Clause
// demand_test.cc - the periods of an input add up to its offered load, whenever it is read.
#include "exec/demand.h"

#include <gtest/gtest.h>

#include "base/rng.h"

namespace batchplane::exec {
namespace {

TEST(DemandBook, OfferedIsTakenAndLostAndWhatWaitsMore) {
  DemandBook book;
  book.begin({100, {20, 64, {}}, {5, 7}});
  const InputPeriod period = book.close({130, {64, 64, {}}, {9, 40}});
  EXPECT_EQ(period.taken_pkts, 30U);
  EXPECT_EQ(period.lost_pkts, 4U);
  EXPECT_EQ(period.offered_pkts, 30U + 4U + 44U + 33U);
  EXPECT_EQ(period.waiting_pkts, 64U);
  EXPECT_EQ(period.backlog_pkts, 40U);
  EXPECT_EQ(period.fill_max_pkts, 64U);
}

TEST(DemandBook, MeanAndHighestAreThePeriodsOwn) {
  DemandBook book;
  InputCounts counts{.ring = {.ring_pkts = 64}};
  counts.ring.fill.look(50);
  book.begin(counts);
  counts.ring.fill.begin_period();
  for (const uint64_t fill : {4, 8, 0, 12}) counts.ring.fill.look(fill);
  EXPECT_EQ(book.close(counts).fill_mean_pkts, 8.0);
  EXPECT_EQ(book.close(counts).fill_mean_pkts, 0.0) << "nobody looked";
  counts.ring.fill.look(6);
  const InputPeriod period = book.close(counts);
  EXPECT_EQ(period.fill_mean_pkts, 6.0);
  EXPECT_EQ(period.fill_max_pkts, 12U) << "as nobody began a period";
}

// The producer is read a moment after the ring, so packets in transit are seen twice.
TEST(DemandBook, SumsOverPeriodsAreExactThoughReadingsAreNot) {
  Rng rng(7);
  DemandBook book;
  uint64_t offered = 0;
  uint64_t sum = 0;
  InputCounts counts;
  for (int i = 0; i < 1000; ++i) {
    const uint64_t fresh = rng.below(50);
    offered += fresh;
    counts.arrivals.backlog_pkts += fresh;
    const uint64_t moved = rng.below(static_cast<uint32_t>(counts.arrivals.backlog_pkts) + 1);
    counts.arrivals.backlog_pkts -= moved;
    counts.ring.waiting_pkts += moved;
    const uint64_t taken = rng.below(static_cast<uint32_t>(counts.ring.waiting_pkts) + 1);
    counts.ring.waiting_pkts -= taken;
    counts.taken_pkts += taken;
    InputCounts seen = counts;
    if (i != 999) seen.arrivals.backlog_pkts += rng.below(static_cast<uint32_t>(moved) + 1);
    sum += book.close(seen).offered_pkts;
    ASSERT_GE(sum, offered);
    ASSERT_LE(sum, offered + 50'000);
  }
  while (counts.arrivals.backlog_pkts + counts.ring.waiting_pkts != 0) {
    counts.taken_pkts += counts.arrivals.backlog_pkts + counts.ring.waiting_pkts;
    counts.arrivals.backlog_pkts = 0;
    counts.ring.waiting_pkts = 0;
  }
  // Packets seen too early are not counted again.
  counts.taken_pkts += 100'000;
  sum += book.close(counts).offered_pkts;
  EXPECT_EQ(sum, offered + 100'000);
}

}  // namespace
}  // namespace batchplane::exec
