// SPDX-License-Identifier: BSD-3-Clause
// control_log_test.cc - which periods count as violated, which of those the machine caused, and delays over
// many periods.
#include "app/control/control_log.h"

#include <gtest/gtest.h>

namespace batchplane::app {
namespace control_log_test {

constexpr uint64_t kSloNs = 40'000;
constexpr double kP95 = 0.95;

exec::FlowPeriod period_of(uint64_t pkts, uint64_t late_pkts) {
  exec::FlowPeriod period;
  period.slo_ns = kSloNs;
  period.pkts = pkts;
  period.late_pkts = late_pkts;
  period.delay_sum_ns = (pkts - late_pkts) * 10'000 + late_pkts * 60'000;
  period.delay_max_ns = late_pkts == 0 ? 10'000 : 60'000;
  period.delay_ns = late_pkts * 20 > pkts ? 60'000 : 10'000;
  period.slo_buckets[6] = pkts - late_pkts;                       // 10 to 11.7 us
  period.slo_buckets[exec::SloBuckets::kWithin + 2] = late_pkts;  // 60 to 70 us
  return period;
}

TEST(FlowRecord, APeriodWithTooManyLatePacketsIsViolated) {
  FlowRecord record;
  record.add(period_of(1000, 50), kP95, 0, 0);
  EXPECT_EQ(record.violated_periods, 0U) << "as many as the percentile allows";
  record.add(period_of(1000, 51), kP95, 0, 0);
  EXPECT_EQ(record.violated_periods, 1U);
  EXPECT_EQ(record.stalled_periods, 0U);
  EXPECT_DOUBLE_EQ(record.excess_ratio_sum, 0.5);
  EXPECT_EQ(record.all.periods, 2U);
  EXPECT_EQ(record.all.late_pkts, 101U);
}

TEST(FlowRecord, AStallExcusesWhatWasInsideAndNoMore) {
  FlowRecord record;
  record.add(period_of(1000, 80), kP95, 30'000, 40);
  EXPECT_EQ(record.stalled_periods, 1U) << "40 of 960 are allowed";
  record.add(period_of(1000, 400), kP95, 30'000, 40);
  EXPECT_EQ(record.violated_periods, 2U);
  EXPECT_EQ(record.stalled_periods, 1U) << "360 late ones were not inside";
  record.add(period_of(1000, 80), kP95, kSloNs / 20, 40);
  EXPECT_EQ(record.stalled_periods, 1U) << "so short a stall excuses nothing";
  EXPECT_EQ(record.quiet.periods, 1U);
  EXPECT_EQ(record.quiet.pkts, 1000U);
}

TEST(FlowRecord, MeansAreJudgedByTheirSum) {
  FlowRecord record;
  record.add(period_of(1000, 700), 0, 0, 0);
  EXPECT_EQ(record.violated_periods, 1U);
  record.add(period_of(1000, 700), 0, 30'000, 500);
  EXPECT_EQ(record.stalled_periods, 1U);
}

TEST(CountedDelays, PercentilesLieWithinTheirBuckets) {
  CountedDelays counted;
  EXPECT_TRUE(counted.percentile_ns(0.5, kSloNs).is_null());
  for (int i = 0; i < 10; ++i) counted.add(period_of(1000, 100));
  EXPECT_EQ(counted.periods, 10U);
  EXPECT_NEAR(counted.percentile_ns(0.45, kSloNs).as_double(), 10'833, 20);
  EXPECT_NEAR(counted.percentile_ns(0.95, kSloNs).as_double(), 60'000, 1)
      << "never above the largest";
  EXPECT_TRUE(counted.percentile_ns(0.9999, kSloNs).is_null()) << "too few packets";
}

TEST(ControlLog, TheSameEventIsCounted) {
  ControlLog log;
  log.note_event(1, "oh", 4);
  log.note_event(2, "oh", 5);
  log.note_event(3, "no", 6);
  const Value events = log.events_value();
  ASSERT_EQ(events.as_list().size(), 2U);
  EXPECT_EQ(events.as_list()[0]["times"].as_int(), 2);
  EXPECT_EQ(events.as_list()[0]["period"].as_int(), 5);
}

}  // namespace control_log_test
}  // namespace batchplane::app
