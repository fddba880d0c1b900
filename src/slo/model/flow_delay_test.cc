// SPDX-License-Identifier: BSD-3-Clause
// flow_delay_test.cc - percentiles from buckets.
#include "slo/model/flow_delay.h"

#include <gtest/gtest.h>

namespace batchplane::slo {
namespace {

// SLO 24 us, so that a bucket within it is 1 us wide and one beyond it 6 us.
exec::FlowPeriod flow_of(std::vector<uint64_t> delays_ns) {
  exec::FlowPeriod flow;
  flow.slo_ns = 24'000;
  for (const uint64_t delay_ns : delays_ns) {
    flow.pkts += 1;
    flow.late_pkts += delay_ns > flow.slo_ns ? 1 : 0;
    flow.delay_sum_ns += delay_ns;
    flow.delay_max_ns = std::max(flow.delay_max_ns, delay_ns);
    ++flow.slo_buckets[exec::SloBuckets::index(delay_ns, exec::SloBuckets::scale_of(flow.slo_ns))];
  }
  return flow;
}

TEST(BucketPercentile, IsTheUpperEdgeOfItsBucket) {
  const exec::FlowPeriod flow = flow_of({500, 1500, 2500, 9500});
  EXPECT_DOUBLE_EQ(bucket_percentile_ns(flow, 0.5), 2000);
  EXPECT_DOUBLE_EQ(bucket_percentile_ns(flow, 0.75), 3000);
  EXPECT_DOUBLE_EQ(bucket_percentile_ns(flow, 0.99), 9500);  // no more than the largest seen
}

TEST(BucketPercentile, CountsBeyondTheSlo) {
  const exec::FlowPeriod flow = flow_of({1500, 26'000, 900'000});
  EXPECT_DOUBLE_EQ(bucket_percentile_ns(flow, 0.5), 30'000);
  EXPECT_DOUBLE_EQ(bucket_percentile_ns(flow, 0.99), 900'000);
  EXPECT_DOUBLE_EQ(bucket_percentile_ns({}, 0.5), 0);
}

TEST(MeasuredDelay, ZeroIsTheMeanOneTheLargest) {
  exec::FlowPeriod flow = flow_of({1000, 2100, 5900});
  EXPECT_DOUBLE_EQ(measured_delay_ns(flow, 0), 3000);
  EXPECT_DOUBLE_EQ(measured_delay_ns(flow, 1), 5900);
  EXPECT_DOUBLE_EQ(measured_delay_ns(flow, 0.5), 3000);  // by the buckets
  flow.delay_ns = 2100;
  EXPECT_DOUBLE_EQ(measured_delay_ns(flow, 0.5), 2100);  // by the finer ones, when they were read
  EXPECT_DOUBLE_EQ(measured_delay_ns({}, 0.95), 0);
}

}  // namespace
}  // namespace batchplane::slo
