// SPDX-License-Identifier: BSD-3-Clause
// kernel_stamp_test.cc - kernel time stamps as times of arrival.
#include "ports/kernel_stamp.h"

#include <gtest/gtest.h>

namespace batchplane::ports {
namespace {

constexpr uint64_t kReal = 1'700'000'000'000'000'000;
constexpr uint64_t kNow = 5'000'000'000;

TEST(KernelStamp, IsTheTimeOfArrival) {
  EXPECT_EQ(arrival_ns(kNow, kReal, kReal - 200'000'000), kNow - 200'000'000);
  EXPECT_EQ(arrival_ns(kNow, kReal, kReal), kNow);
}

TEST(KernelStamp, MeansNowWhereTheClockWasSet) {
  EXPECT_EQ(arrival_ns(kNow, kReal, kReal + 1), kNow);                   // back
  EXPECT_EQ(arrival_ns(kNow, kReal, kReal - kMaxStampAgeNs - 1), kNow);  // forward
  EXPECT_EQ(arrival_ns(kNow, kReal, 0), kNow);                           // no stamp
}

TEST(KernelStamp, IsNotBeforeTheClockBegan) {
  EXPECT_EQ(arrival_ns(1'000, kReal, kReal - 5'000), 0U);
}

TEST(RealTime, IsThatOfTheKernel) { EXPECT_GT(real_time_ns(), kReal); }

}  // namespace
}  // namespace batchplane::ports
