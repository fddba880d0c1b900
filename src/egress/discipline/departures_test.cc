// SPDX-License-Identifier: BSD-3-Clause
// departures_test.cc - rounding of departure times, and the parameters that are refused. Their values are
// tested where the module is (pace_test.cc).
#include "egress/discipline/departures.h"

#include <gtest/gtest.h>

namespace batchplane::egress {
namespace departures_test {

TEST(Departures, NoneIsEarly) {
  EXPECT_EQ(departure_ticks_of(0), 0U);
  EXPECT_EQ(departure_ticks_of(1), 1U);
  EXPECT_EQ(departure_ticks_of(16), 1U);
  EXPECT_EQ(departure_ticks_of(17), 2U);
  EXPECT_EQ(departure_ticks_of((1ULL << 36) + 16), 1U);
}

TEST(Departures, RefusesWhatCannotBeKept) {
  EXPECT_THROW((void)departure_rule({.rate_bps = kMinPaceBps - 1}, "pace"), ConfigError);
  EXPECT_THROW((void)departure_rule({.delay_us = 60, .jitter_us = 41, .horizon_us = 100}, "pace"),
               ConfigError);
  EXPECT_EQ(departure_rule({.delay_us = 60, .jitter_us = 40, .horizon_us = 100}, "pace").delay_us,
            60U);
}

TEST(Departures, WithoutAHorizonNothingIsTooFar) {
  Departures departures(1);
  const DepartureRule rule = {.units_per_byte = time_units_per_byte(kMinPaceBps)};
  uint64_t last_ns = 0;
  for (uint32_t i = 0; i < 100; ++i) last_ns = departures.next_ns(0, 1000, 5, rule);
  EXPECT_EQ(last_ns, 5 + 99 * 500'000'000ULL);
}

}  // namespace departures_test
}  // namespace batchplane::egress
