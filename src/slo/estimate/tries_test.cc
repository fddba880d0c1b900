// SPDX-License-Identifier: BSD-3-Clause
// tries_test.cc - when triggers that keep the SLOs may be left for others.
#include "slo/estimate/tries.h"

#include <gtest/gtest.h>

namespace batchplane::slo {
namespace {

const std::vector<double> kFew = {4};
const std::vector<double> kMany = {14};
const std::vector<double> kFewer = {9};

// Periods until a try is allowed, under the same triggers, which keep the SLOs.
uint32_t wait(Tries& tries, double pkt_ns = 100) {
  uint32_t n = 0;
  while (!tries.may_try() && n < 1000) {
    tries.observe(kFew, true, pkt_ns);
    ++n;
  }
  return n;
}

void fail(Tries& tries) {
  tries.begin(100);
  tries.observe(kMany, false, 80);
}

TEST(Tries, ThatBreakAnSloBecomeRare) {
  Tries tries;
  tries.observe(kFew, true, 100);
  for (const uint32_t patience : {16U, 64U, 256U, 256U}) {
    fail(tries);
    EXPECT_TRUE(tries.has_failed());
    EXPECT_FALSE(tries.is_in_vain());
    EXPECT_EQ(wait(tries), patience);
  }
  tries.begin(100);
  tries.observe(kMany, true, 80);
  EXPECT_FALSE(tries.has_failed());
  fail(tries);
  EXPECT_EQ(wait(tries), 128U) << "a success halves the wait";
}

TEST(Tries, OneRetreatInStepsIsOneFailure) {
  Tries tries;
  tries.observe(kFew, true, 100);
  fail(tries);
  tries.observe(kFewer, false, 90);  // still too many: no try, as nothing was kept
  EXPECT_FALSE(tries.has_failed());
  EXPECT_EQ(wait(tries), 15U);
}

TEST(Tries, ThatGainNothingComeBackAndDoNotBecomeRare) {
  Tries tries;
  for (int i = 0; i < 5; ++i) {
    tries.observe(kFew, true, 100);
    tries.begin(100);
    tries.observe(kMany, true, 103);
    EXPECT_TRUE(tries.is_in_vain());
    ASSERT_NE(tries.way_back(), nullptr);
    EXPECT_EQ(tries.way_back()->triggers_pkts, std::vector<uint32_t>{4});
    EXPECT_EQ(wait(tries), 16U);
  }
}

TEST(Tries, ComeBackFromABrokenSloToWhatKeptItForLong) {
  Tries tries;
  for (int i = 0; i < 7; ++i) tries.observe(kFew, true, 100);
  fail(tries);
  EXPECT_EQ(tries.way_back(), nullptr) << "seven periods prove nothing: the model finds the way";
  for (int i = 0; i < 8; ++i) tries.observe(kFew, true, 100);
  EXPECT_EQ(tries.way_back(), nullptr);
  for (int i = 0; i < 3; ++i) {  // by a try, or by small steps
    tries.observe(kFewer, i == 0, 90);
    if (i == 0) continue;
    ASSERT_NE(tries.way_back(), nullptr);
    EXPECT_EQ(tries.way_back()->triggers_pkts, std::vector<uint32_t>{4});
  }
  tries.observe(kFew, false, 100);
  EXPECT_EQ(tries.way_back(), nullptr) << "they no longer keep it";
}

// 103 after 100 is no loss where times change by 6 % from period to period.
TEST(Tries, AreNotInVainWithinTheNoise) {
  Tries tries;
  for (int i = 0; i < 100; ++i) tries.observe(kFew, true, i % 2 == 0 ? 97 : 103);
  tries.observe(kFew, true, 100);
  tries.begin(100);
  tries.observe(kMany, true, 103);
  EXPECT_FALSE(tries.is_in_vain());
}

TEST(Tries, AreAllowedAgainWhereTheCoreHasBecomeFaster) {
  Tries tries;
  tries.observe(kFew, true, 100);
  fail(tries);
  tries.observe(kFew, true, 92);
  EXPECT_FALSE(tries.may_try());
  tries.observe(kFew, true, 70);
  EXPECT_TRUE(tries.may_try());
  fail(tries);
  EXPECT_EQ(wait(tries), 64U) << "no less rarely than they were";
}

}  // namespace
}  // namespace batchplane::slo
