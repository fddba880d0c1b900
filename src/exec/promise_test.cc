// SPDX-License-Identifier: BSD-3-Clause
// promise_test.cc - violations of an SLO: by late packets, or by the mean.
#include "exec/promise.h"

#include <gtest/gtest.h>

namespace batchplane::exec {
namespace {

TEST(SloBroken, IsDecidedByLatePackets) {
  FlowPeriod flow;
  flow.slo_ns = 1000;
  flow.pkts = 100;
  flow.late_pkts = 5;
  EXPECT_FALSE(is_slo_broken(flow, 0.95));
  flow.late_pkts = 6;
  EXPECT_TRUE(is_slo_broken(flow, 0.95));
  EXPECT_TRUE(is_slo_broken(flow, 1));
  EXPECT_FALSE(is_slo_broken(flow, 0));  // the mean is 0 here
  flow.delay_sum_ns = 100'001;
  EXPECT_TRUE(is_slo_broken(flow, 0));
  flow.slo_ns = 0;
  EXPECT_FALSE(is_slo_broken(flow, 1));
}

// In doubles 1 - 0.9 is less than 0.1.
TEST(SloBroken, RoundingBreaksNone) {
  for (const uint64_t pkts : {1'000ULL, 1'000'000ULL, 1'000'000'000ULL}) {
    for (const uint64_t late_of_thousand : {1, 10, 50, 100}) {
      const double percentile = 1 - static_cast<double>(late_of_thousand) / 1000;
      FlowPeriod flow{.slo_ns = 1000, .pkts = pkts, .late_pkts = pkts / 1000 * late_of_thousand};
      EXPECT_FALSE(is_slo_broken(flow, percentile)) << pkts << " " << percentile;
      ++flow.late_pkts;
      EXPECT_TRUE(is_slo_broken(flow, percentile)) << pkts << " " << percentile;
    }
  }
}

}  // namespace
}  // namespace batchplane::exec
