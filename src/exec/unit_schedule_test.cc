// SPDX-License-Identifier: BSD-3-Clause
// unit_schedule_test.cc - the schedule against the textbook algorithm; shares, blocking, limits.
#include "exec/unit_schedule.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/rng.h"

namespace batchplane::exec {
namespace {

// Textbook stride scheduling: exact passes, linear search from the start.
struct Oracle {
  struct Unit {
    double pass = 0;
    double weight = 1;
    bool can_run = false;
  };
  explicit Oracle(uint32_t n) : units(n) {}
  void set_can_run(uint32_t u, bool can_run) {
    if (can_run && !units[u].can_run) units[u].pass = std::max(units[u].pass, now);
    units[u].can_run = can_run;
  }
  uint32_t pick() {
    uint32_t best = UnitSchedule::kNobody;
    for (uint32_t u = 1; u < units.size(); ++u) {
      if (!units[u].can_run) continue;
      if (best == UnitSchedule::kNobody || units[u].pass < units[best].pass) best = u;
    }
    if (best != UnitSchedule::kNobody) now = std::max(now, units[best].pass);
    return best;
  }
  std::vector<Unit> units;
  double now = 0;
};

TEST(UnitSchedule, ChoosesLikeATextbookScheduler) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    Rng rng(seed);
    const uint32_t n = 2 + rng.below(20);
    UnitSchedule schedule(n);
    Oracle oracle(n);
    for (uint32_t u = 1; u < n; ++u) {
      const uint32_t weight = 1U << rng.below(11);  // passes are exact in both
      schedule.set_weight(u, weight);
      oracle.units[u].weight = weight;
    }
    for (uint32_t step = 0; step < 3000; ++step) {
      const uint32_t u = 1 + rng.below(n - 1);
      const bool can_run = rng.below(3) != 0;
      can_run ? schedule.activate(u) : schedule.deactivate(u);
      oracle.set_can_run(u, can_run);
      const uint32_t wanted = oracle.pick();
      ASSERT_EQ(schedule.pick(false), wanted) << "seed " << seed << " step " << step;
      if (wanted == UnitSchedule::kNobody) continue;
      const uint64_t cost = 1 + rng.below(5000);
      schedule.charge(wanted, cost);
      oracle.units[wanted].pass += static_cast<double>(cost) / oracle.units[wanted].weight;
    }
  }
}

// While all units can run, none is further from its share than one turn of its own and one of another.
TEST(UnitSchedule, SharesFollowWeights) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Rng rng(seed);
    const uint32_t n = 3 + rng.below(12);
    UnitSchedule schedule(n);
    std::vector<uint64_t> cost(n, 0);
    for (uint32_t u = 1; u < n; ++u) {
      schedule.set_weight(u, 1 + rng.below(kMaxWeight));
      schedule.activate(u);
      cost[u] = 1 + rng.below(rng.below(2) == 0 ? 100 : 100'000);
    }
    for (uint32_t turn = 0; turn < 20'000; ++turn) {
      const uint32_t u = schedule.pick(false);
      schedule.charge(u, cost[u]);
    }
    const auto used = [&](uint32_t u) {
      return static_cast<double>(schedule.charged(u)) / schedule.weight(u);
    };
    for (uint32_t a = 1; a < n; ++a) {
      for (uint32_t b = 1; b < a; ++b) {
        const double one_turn = static_cast<double>(cost[a]) / schedule.weight(a) +
                                static_cast<double>(cost[b]) / schedule.weight(b);
        // A stride is rounded to 0.05 %.
        ASSERT_NEAR(used(a), used(b), one_turn + 1e-3 * used(a)) << "seed " << seed;
      }
    }
  }
}

TEST(UnitSchedule, UnitsThatCouldNotRunHoardNoCredit) {
  UnitSchedule schedule(3);
  schedule.activate(1);
  for (int i = 0; i < 1000; ++i) schedule.charge(schedule.pick(false), 1000);
  schedule.activate(2);
  int turns_of_2 = 0;
  for (int i = 0; i < 100; ++i) {
    const uint32_t u = schedule.pick(false);
    turns_of_2 += u == 2 ? 1 : 0;
    schedule.charge(u, 1000);
  }
  EXPECT_NEAR(turns_of_2, 50, 1);
}

TEST(UnitSchedule, BlockedUnitsWaitAndComeBackWithoutCredit) {
  UnitSchedule schedule(3);
  schedule.activate(1);
  schedule.activate(2);
  schedule.block(2);
  schedule.block(2);
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(schedule.pick(false), 1U);
    schedule.charge(1, 10);
  }
  schedule.unblock(2);
  EXPECT_EQ(schedule.pick(false), 1U);
  schedule.unblock(2);
  int turns_of_2 = 0;
  for (int i = 0; i < 20; ++i) {
    const uint32_t u = schedule.pick(false);
    turns_of_2 += u == 2 ? 1 : 0;
    schedule.charge(u, 10);
  }
  EXPECT_NEAR(turns_of_2, 10, 1);
}

TEST(UnitSchedule, AnEmptyInputIsPassedOverAndGainsNothing) {
  UnitSchedule schedule(2);
  schedule.activate(1);
  for (int i = 0; i < 50; ++i) {
    const uint32_t first = schedule.pick(true);
    if (first == UnitSchedule::kInput) {
      ASSERT_EQ(schedule.pick(false), 1U);
    }
    schedule.charge(1, 100);
  }
  int turns_of_input = 0;
  for (int i = 0; i < 100; ++i) {
    const uint32_t u = schedule.pick(true);
    turns_of_input += u == UnitSchedule::kInput ? 1 : 0;
    schedule.charge(u, 100);
  }
  EXPECT_NEAR(turns_of_input, 50, 1);
}

// Late units go first, but a unit that always claims to be late gets no more than its share.
TEST(UnitSchedule, ALimitBuysOneTurnAndNoShare) {
  UnitSchedule schedule(4);
  for (const uint32_t u : {1, 2, 3}) schedule.activate(u);
  schedule.charge(1, 100);  // its turn is over, yet it is late
  schedule.expire(1, 50);
  EXPECT_EQ(schedule.pick(false), 1U);
  for (int i = 0; i < 3000; ++i) {
    const uint32_t u = schedule.pick(false);
    schedule.charge(u, 100);
    if (u == 1) schedule.expire(1, 50);
  }
  EXPECT_NEAR(static_cast<double>(schedule.turns(1)), 1000, 3);
  EXPECT_NEAR(static_cast<double>(schedule.turns(2)), 1000, 3);
}

TEST(UnitSchedule, AmongLateOnesTheEarliestDeadlineGoesFirst) {
  UnitSchedule schedule(4);
  for (const uint32_t u : {1, 2, 3}) schedule.activate(u);
  schedule.expire(2, 900);
  schedule.expire(3, 800);
  EXPECT_EQ(schedule.pick(false), 3U);
  schedule.unexpire(3);
  schedule.charge(3, 10);
  EXPECT_EQ(schedule.pick(false), 2U);
}

// Passes wrap around at 2^64: only their distance counts.
TEST(UnitSchedule, PassesMayRunOver) {
  UnitSchedule schedule(3);
  schedule.activate(1);
  schedule.activate(2);
  const uint64_t huge = 1ULL << 42;  // times 2^20 a turn: runs over every fourth
  int turns_of_1 = 0;
  for (int i = 0; i < 1000; ++i) {
    const uint32_t u = schedule.pick(false);
    turns_of_1 += u == 1 ? 1 : 0;
    schedule.charge(u, huge);
  }
  EXPECT_EQ(turns_of_1, 500);
}

}  // namespace
}  // namespace batchplane::exec
