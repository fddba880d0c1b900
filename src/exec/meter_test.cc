// SPDX-License-Identifier: BSD-3-Clause
// meter_test.cc - delay buckets and flow meter: edges, late counts, epochs.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/rng.h"
#include "exec/delay_histogram.h"
#include "exec/flow_book.h"
#include "exec/flow_meter.h"

namespace batchplane::exec {
namespace {

TEST(FineBuckets, LowerEdgesAreTheSmallestOfTheirBucket) {
  for (uint32_t i = 0; i < FineBuckets::kCount; ++i) {
    const uint64_t lower_ns = FineBuckets::lower_ns(i);
    ASSERT_EQ(FineBuckets::index(lower_ns), i);
    ASSERT_EQ(FineBuckets::index(lower_ns - (i > 0)), i - (i > 0));
  }
  EXPECT_EQ(FineBuckets::index(~0ULL), FineBuckets::kCount - 1);
}

TEST(FineBuckets, AreNoWiderThanThreePercent) {
  for (uint32_t i = 33; i < FineBuckets::kCount; ++i) {
    const auto lower = static_cast<double>(FineBuckets::lower_ns(i - 1));
    ASSERT_LE(static_cast<double>(FineBuckets::lower_ns(i)) / lower, 1.032) << i;
  }
}

TEST(SloBuckets, DivideTheSloInto24AndTheRestByQuarters) {
  for (const uint64_t slo_ns : {2400ULL, 1'000'000ULL, 100'000'000ULL, 10'000'000'000ULL}) {
    const uint64_t scale = SloBuckets::scale_of(slo_ns);
    EXPECT_EQ(SloBuckets::index(0, scale), 0U);
    EXPECT_EQ(SloBuckets::index(slo_ns - 1, scale), 23U) << slo_ns;
    EXPECT_EQ(SloBuckets::index(slo_ns + slo_ns / 1000 + 1, scale), 24U) << slo_ns;
    EXPECT_EQ(SloBuckets::index(slo_ns / 2 + slo_ns / 1000 + 1, scale), 12U) << slo_ns;
    EXPECT_EQ(SloBuckets::index(slo_ns * 3 / 2 + slo_ns / 1000 + 1, scale), 26U) << slo_ns;
    EXPECT_EQ(SloBuckets::index(slo_ns * 3, scale), 31U) << slo_ns;
    EXPECT_EQ(SloBuckets::index(~0ULL >> 1, scale), 31U) << slo_ns;
  }
}

TEST(SloBuckets, SayWhereTheyBegin) {
  constexpr uint64_t kSloNs = 240'000;
  const uint64_t scale = SloBuckets::scale_of(kSloNs);
  for (uint32_t i = 1; i < SloBuckets::kCount; ++i) {
    const auto begin_ns = static_cast<uint64_t>(SloBuckets::lower_ratio(i) * kSloNs);
    EXPECT_EQ(SloBuckets::index(begin_ns + 10, scale), i);
    EXPECT_EQ(SloBuckets::index(begin_ns - 10, scale), i - 1);
  }
}

TEST(FlowBook, APeriodKnowsItsPercentilesFromOnePass) {
  FlowMeter meter(1);
  FlowBook book(1);
  for (uint64_t i = 1; i <= 1000; ++i) {
    meter.record(0, 1, 1'000'000 - i * 100);
    meter.flush(1'000'000);
  }
  meter.switch_epoch();
  book.collect(meter);
  const FlowPeriod period = book.take_period(0, 0, 0.95);
  EXPECT_NEAR(static_cast<double>(period.p50_ns), 50'000, 1'600);
  EXPECT_NEAR(static_cast<double>(period.delay_ns), 95'000, 3'000);
  EXPECT_NEAR(static_cast<double>(period.p99_ns), 99'000, 3'200);
  EXPECT_LE(period.p99_ns, period.delay_max_ns);
  const FlowPeriod empty = book.take_period(0, 0, 0.95);
  EXPECT_EQ(empty.p50_ns + empty.delay_ns + empty.p99_ns, 0U);
}

TEST(SloBuckets, NeverFallAsDelayRises) {
  Rng rng(3);
  for (uint32_t round = 0; round < 1000; ++round) {
    const uint64_t scale = SloBuckets::scale_of(1 + rng.next() % 1'000'000'000);
    uint32_t last = 0;
    for (uint64_t delay_ns = 0; delay_ns < 4'000'000'000; delay_ns = delay_ns * 5 / 4 + 1) {
      const uint32_t index = SloBuckets::index(delay_ns, scale);
      ASSERT_GE(index, last);
      ASSERT_LT(index, SloBuckets::kCount);
      last = index;
    }
  }
}

// By flow.
std::vector<FlowEpoch> collect(FlowMeter& meter, std::vector<uint64_t>* fine = nullptr) {
  std::vector<uint64_t> unused(FineBuckets::kCount);
  std::vector<FlowEpoch> flows(meter.n_flows());
  meter.collect(fine == nullptr ? unused.data() : fine->data(),
                [&](uint32_t flow, const FlowEpoch& epoch) {
                  EXPECT_EQ(flows[flow].pkts, 0U) << "collected twice";
                  flows[flow] = epoch;
                });
  return flows;
}

TEST(FlowMeter, BooksDelaysOfTheFlushNotOfTheRecord) {
  FlowMeter meter(2);
  meter.set_slo(0, 100);
  meter.record(0, 3, 1000);
  meter.record(1, 2, 900);
  EXPECT_EQ(meter.sent_pkts(), 0U);
  meter.flush(1100);
  EXPECT_EQ(meter.sent_pkts(), 5U);
  meter.record(0, 4, 1000);
  meter.flush(1101);
  meter.switch_epoch();
  const std::vector<FlowEpoch> flows = collect(meter);
  const FlowEpoch& flow = flows[0];
  EXPECT_EQ(flow.pkts, 7U);
  EXPECT_EQ(flow.late_pkts, 4U);  // a delay that equals the SLO is not late
  EXPECT_EQ(flow.delay_sum_ns, 3 * 100 + 4 * 101U);
  EXPECT_EQ(flow.delay_max_ns, 101U);
  EXPECT_EQ(std::accumulate(std::begin(flow.slo_buckets), std::end(flow.slo_buckets), 0U), 7U);
  EXPECT_EQ(flows[1].late_pkts, 0U) << "a flow without SLO has none late";
}

TEST(FlowMeter, CollectTakesTheQuietEpochOnceAndAddsItUp) {
  FlowMeter meter(1);
  std::vector<uint64_t> fine(FineBuckets::kCount);
  meter.record(0, 1, 0);
  meter.flush(10);
  meter.switch_epoch();
  meter.record(0, 2, 0);
  meter.flush(20);  // belongs to the next epoch
  EXPECT_EQ(collect(meter, &fine)[0].pkts, 1U);
  EXPECT_EQ(collect(meter, &fine)[0].pkts, 0U);
  meter.switch_epoch();
  EXPECT_EQ(collect(meter, &fine)[0].pkts, 2U);
  EXPECT_EQ(fine[10], 1U);
  EXPECT_EQ(fine[20], 2U);
  EXPECT_EQ(std::accumulate(fine.begin(), fine.end(), uint64_t{0}), 3U);
}

TEST(FlowMeter, EntriesOfOneBurstAndOfManyAreBookedAlike) {
  Rng rng(8);
  FlowMeter meter(3);
  FlowEpoch wanted[3];
  for (uint32_t f = 0; f < 3; ++f) meter.set_slo(f, 1000 * (f + 1));
  uint64_t now_ns = 1'000'000;
  for (uint32_t round = 0; round < 200; ++round, now_ns += 5000) {
    uint64_t entry_ns = now_ns;
    for (uint32_t k = rng.below(50); k-- > 0;) {
      if (rng.below(3) == 0) entry_ns = now_ns - rng.below(6000);
      const uint32_t flow = rng.below(3);
      const uint32_t n_pkts = 1 + rng.below(32);
      const uint64_t delay_ns = now_ns - entry_ns;
      meter.record(flow, n_pkts, entry_ns);
      wanted[flow].pkts += n_pkts;
      wanted[flow].late_pkts += delay_ns > 1000 * (flow + 1) ? n_pkts : 0;
      wanted[flow].delay_sum_ns += delay_ns * n_pkts;
      wanted[flow].delay_max_ns = std::max(wanted[flow].delay_max_ns, delay_ns);
    }
    meter.flush(now_ns);
  }
  meter.switch_epoch();
  const std::vector<FlowEpoch> flows = collect(meter);
  for (uint32_t f = 0; f < 3; ++f) {
    const FlowEpoch& got = flows[f];
    EXPECT_EQ(got.pkts, wanted[f].pkts);
    EXPECT_EQ(got.late_pkts, wanted[f].late_pkts);
    EXPECT_EQ(got.delay_sum_ns, wanted[f].delay_sum_ns);
    EXPECT_EQ(got.delay_max_ns, wanted[f].delay_max_ns);
  }
}

TEST(FlowMeter, EntryAfterTheReadingCountsAsNoDelay) {
  FlowMeter meter(1);
  meter.record(0, 1, 500);
  meter.flush(400);
  meter.switch_epoch();
  EXPECT_EQ(collect(meter)[0].delay_sum_ns, 0U);
}

TEST(FlowMeter, SaysWhenTheNextBatchMightNotFit) {
  FlowMeter meter(1);
  for (uint32_t i = 0; i + 64 < FlowMeter::kLogEntries; ++i) meter.record(0, 1, 0);
  EXPECT_FALSE(meter.is_nearly_full(32));
  meter.record(0, 1, 0);
  EXPECT_TRUE(meter.is_nearly_full(32));
}

}  // namespace
}  // namespace batchplane::exec
