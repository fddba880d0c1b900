// SPDX-License-Identifier: BSD-3-Clause
// tries_test.cc - when triggers that keep the SLOs may be left for others.
#include "slo/estimate/tries.h"

#include <gtest/gtest.h>

namespace batchplane::slo {
namespace {

constexpr auto kKept = Outcome::Slos::kKept;
constexpr auto kBroken = Outcome::Slos::kBroken;
const std::vector<double> kFew = {4};
const std::vector<double> kMany = {14};
const std::vector<double> kFewer = {9};  // than kMany

// Periods until a try is allowed, under the same triggers, which keep the SLOs.
uint32_t wait(Tries& tries, double pkt_ns = 100) {
  uint32_t n = 0;
  while (!tries.may_try() && n < 1000) {
    tries.observe(kFew, {kKept, pkt_ns});
    ++n;
  }
  return n;
}

void fail(Tries& tries) {
  tries.begin();
  tries.observe(kMany, {kBroken, 80});
}

TEST(Tries, ThatBreakAnSloBecomeRare) {
  Tries tries;
  tries.observe(kFew, {kKept, 100});
  for (const uint32_t patience : {16U, 64U, 256U, 256U}) {
    fail(tries);
    EXPECT_TRUE(tries.has_failed());
    EXPECT_FALSE(tries.is_in_vain());
    EXPECT_EQ(wait(tries), patience);
  }
  tries.begin();
  tries.observe(kMany, {kKept, 80});
  EXPECT_FALSE(tries.has_failed());
  fail(tries);
  EXPECT_EQ(wait(tries), 128U) << "a success halves the wait";
}

TEST(Tries, OneRetreatInStepsIsOneFailure) {
  Tries tries;
  tries.observe(kFew, {kKept, 100});
  fail(tries);
  tries.observe(kFewer, {kBroken, 90});  // still too many: no try, as nothing was kept
  EXPECT_FALSE(tries.has_failed());
  EXPECT_EQ(wait(tries), 15U);
}

TEST(Tries, ThatGainNothingComeBackAndDoNotBecomeRare) {
  Tries tries;
  for (int i = 0; i < 5; ++i) {
    tries.observe(kFew, {kKept, 100});
    tries.begin();
    tries.observe(kMany, {kKept, 103});
    EXPECT_TRUE(tries.is_in_vain());
    ASSERT_NE(tries.way_back(), nullptr);
    EXPECT_EQ(tries.way_back()->triggers_pkts, Triggers{4});
    EXPECT_EQ(wait(tries), 16U);
  }
}

void expect_way_back(const Tries& tries, double trigger_pkts) {
  ASSERT_NE(tries.way_back(), nullptr);
  EXPECT_EQ(tries.way_back()->triggers_pkts, Triggers{trigger_pkts});
}

TEST(Tries, ComeBackFromABrokenSloToWhatKeptItForLong) {
  Tries tries;
  for (int i = 0; i < 8; ++i) tries.observe(kFew, {kKept, 100});
  EXPECT_EQ(tries.way_back(), nullptr);
  tries.observe(kFewer, {kKept, 90});
  fail(tries);
  expect_way_back(tries, 4);  // not 9, which was kept for one period
  for (int i = 0; i < 12; ++i) tries.observe(kMany, {kBroken, 80});
  tries.observe(kFew, {kBroken, 100});
  expect_way_back(tries, 9);  // these no longer keep it
}

// Other triggers took longer for a packet: that these take less does not mean that the core is faster.
TEST(Tries, ThatCameBackStayThoughFasterThanTheFirstOnes) {
  Tries tries;
  tries.observe({0}, {kKept, 240});
  for (int i = 0; i < 50; ++i) tries.observe(kFew, {kKept, 150});
  tries.observe(kMany, {kBroken, 140});
  tries.come_back();
  EXPECT_EQ(wait(tries, 150), 16U);
}

TEST(Tries, ComeBackToTheLastThatKeptAnSloWhereNoneDidForLong) {
  Tries tries;
  tries.observe(kFew, {kKept, 100});
  fail(tries);
  expect_way_back(tries, 4);
  tries.skip();
  EXPECT_EQ(tries.way_back(), nullptr) << "the period tells nothing";
  tries.forget();
  tries.observe(kMany, {kBroken, 80});
  EXPECT_EQ(tries.way_back(), nullptr) << "of another SLO";
}

TEST(Tries, HoldingNothingIsProvenByOnePeriod) {
  Tries tries;
  tries.observe({0}, {kKept, 200});
  tries.observe(kFew, {kKept, 100});
  tries.observe(kMany, {Outcome::Slos::kLeftOut, 80});
  expect_way_back(tries, 0);
}

TEST(Tries, OneBrokenPeriodOfManyIsChance) {
  Tries tries;
  for (int i = 0; i < 100; ++i) tries.observe(kFew, {kKept, 100});
  for (const bool is_proven : {true, true, false}) {  // 16 periods, 8, 4
    tries.observe(kFew, {kBroken, 100});
    tries.observe(kMany, {kBroken, 80});
    if (is_proven) {
      expect_way_back(tries, 4);
    } else {
      EXPECT_EQ(tries.way_back(), nullptr);
    }
  }
}

TEST(Tries, NothingIsProvenAtAnotherLoad) {
  Tries tries;
  for (int i = 0; i < 8; ++i) tries.observe(kFew, {kKept, 100});
  tries.prove_nothing();
  fail(tries);
  EXPECT_EQ(tries.way_back(), nullptr);
  tries.observe(kFewer, {kKept, 90});
  fail(tries);
  expect_way_back(tries, 9);
}

TEST(Tries, ThatCameBackStayForAWhile) {
  Tries tries;
  tries.observe(kFew, {kKept, 100});
  tries.observe(kMany, {kBroken, 80});
  tries.come_back();
  uint32_t n = 0;
  for (; tries.is_back() && n < 1000; ++n) {
    EXPECT_FALSE(tries.may_try());
    tries.observe(kFew, {kKept, 100});
  }
  EXPECT_EQ(n, 16U);
  tries.come_back();
  tries.observe(kFew, {kBroken, 100});
  EXPECT_FALSE(tries.is_back()) << "only as long as they keep the SLOs";
}

// 103 after 100 is no loss where times change by 6 % from period to period.
TEST(Tries, AreNotInVainWithinTheNoise) {
  Tries tries;
  for (int i = 0; i < 100; ++i) tries.observe(kFew, {kKept, i % 2 == 0 ? 97.0 : 103.0});
  tries.observe(kFew, {kKept, 100});
  tries.begin();
  tries.observe(kMany, {kKept, 103});
  EXPECT_FALSE(tries.is_in_vain());
}

TEST(Tries, AreNotAllowedAgainBecausePartOfATryRemains) {
  Tries tries;
  tries.observe(kFew, {kKept, 100});
  fail(tries);
  tries.observe(kFewer, {kKept, 60});
  EXPECT_FALSE(tries.may_try());
}

TEST(Tries, AreAllowedAgainWhereTheCoreHasBecomeFaster) {
  Tries tries;
  tries.observe(kFew, {kKept, 100});
  fail(tries);
  tries.observe(kFew, {kKept, 92});
  EXPECT_FALSE(tries.may_try());
  tries.observe(kFew, {kKept, 70});
  EXPECT_TRUE(tries.may_try());
  fail(tries);
  EXPECT_EQ(wait(tries), 64U) << "no less rarely than they were";
}

}  // namespace
}  // namespace batchplane::slo
