// SPDX-License-Identifier: BSD-3-Clause
// usual_cost_test.cc - tells disturbed executions from a change of the cost itself.
#include "exec/usual_cost.h"

#include <gtest/gtest.h>

#include "base/rng.h"

namespace batchplane::exec {
namespace {

constexpr uint64_t cycles_of(uint64_t n_pkts) { return 200 + 60 * n_pkts; }
constexpr uint64_t kStolen = 8'000'000;  // a time slice of another program

struct Believed {
  uint64_t n = 0;
  uint64_t cycles = 0;
  uint64_t due = 0;  // without what was stolen
};

Believed believed(UsualCost& usual, uint64_t n_samples, uint64_t stolen_percent, uint64_t factor) {
  Rng rng(7);
  Believed sum;
  for (uint64_t i = 0; i < n_samples; ++i) {
    const uint64_t n_pkts = 1 + rng.below(32);
    const uint64_t due = factor * cycles_of(n_pkts);
    const uint64_t cycles = due + (rng.below(100) < stolen_percent ? kStolen : 0);
    if (!usual.believes(n_pkts, cycles)) continue;
    ++sum.n;
    sum.cycles += cycles;
    sum.due += due;
  }
  return sum;
}

TEST(UsualCost, WhatOthersTakeIsLeftOutHoweverOftenTheyDo) {
  for (const uint64_t percent : {0, 1, 10, 30}) {
    UsualCost usual;
    believed(usual, 200, percent, 1);
    const Believed sum = believed(usual, 10'000, percent, 1);
    EXPECT_EQ(sum.cycles, sum.due) << percent;
    EXPECT_GT(sum.n, 10'000 * (99 - percent) / 100) << percent;
  }
}

TEST(UsualCost, OneThatBeginsWithAStolenOneIsSoonRight) {
  UsualCost usual;
  EXPECT_TRUE(usual.believes(32, kStolen));
  EXPECT_TRUE(usual.believes(32, cycles_of(32)));
  EXPECT_FALSE(usual.believes(32, kStolen));
}

TEST(UsualCost, ACostThatChangesIsBelievedSoon) {
  UsualCost usual;
  believed(usual, 100, 0, 1);
  EXPECT_LT(believed(usual, 40, 0, 100).n, 40U);
  EXPECT_EQ(believed(usual, 100, 0, 100).n, 100U);
  EXPECT_EQ(believed(usual, 100, 0, 1).n, 100U);
}

}  // namespace
}  // namespace batchplane::exec
