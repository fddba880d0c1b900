// SPDX-License-Identifier: BSD-3-Clause
// session_five_qi_test.cc - QERs with a 5QI: the priority that follows from it, errors, and what
// live commands and saved sessions keep.
#include "modules/session/session_five_qi.h"

#include <gtest/gtest.h>

#include "modules/session/session_shape_test_util.h"

namespace batchplane {
namespace session_five_qi_test {

const Dict kFlood{{"flows", List{to_user("10.45.0.2", 53), to_user("10.45.0.2", 5000)}}};
constexpr int64_t kPlain = nth_flow(0);
constexpr int64_t kSpecial = nth_flow(1);

session::Qer qer_of(const Dict& more) {
  return session::parse_qer(shaped_qer(1, 300 * kMbps, more), "qer");
}

// Two bearers of one user below an AMBR of 400 Mbit/s; each may have 300.
ShapeWorld two_bearers(const Dict& plain, const Dict& special) {
  const List qers{shaped_qer(1, 300 * kMbps, plain), shaped_qer(2, 300 * kMbps, special),
                  shaped_qer(9, 400 * kMbps)};
  return {.source = kFlood, .users = {{"sessions", List{shaped_session(qers, {1, 9}, {2, 9})}}}};
}

TEST(FiveQi, MoreImportantLevelsNeverHaveLowerPriorities) {
  uint8_t last = 7;
  for (int level = 1; level <= 127; ++level) {
    const uint8_t priority = session::priority_of_level(static_cast<uint8_t>(level));
    EXPECT_LE(priority, last) << level;
    EXPECT_LE(last - priority, 1) << "all eight are in use: " << level;
    last = priority;
  }
  EXPECT_EQ(last, 0);
}

TEST(FiveQi, SaysThePriority) {
  const std::pair<int64_t, uint32_t> expected[] = {{69, 7}, {5, 7}, {70, 3}, {7, 1}, {8, 1},
                                                   {9, 0},  {6, 2}, {80, 2}, {79, 2}};
  for (const auto& [value, priority] : expected) {
    EXPECT_EQ(qer_of({{"5qi", value}}).priority, priority) << value;
  }
  const Dict voice{{"5qi", 1}, {"gbr_down_bps", kMbps}};
  EXPECT_EQ(qer_of(voice).priority, 6);
  EXPECT_EQ(session::standard_five_qi(65)->level, 7);
  EXPECT_EQ(session::standard_five_qi(90)->level, 25);
  EXPECT_FALSE(session::standard_five_qi(77).has_value());
  EXPECT_FALSE(session::standard_five_qi(128).has_value());
}

TEST(FiveQi, APriorityThatIsGivenWins) {
  EXPECT_EQ(qer_of({{"5qi", 9}, {"priority", 7}}).priority, 7);
  EXPECT_EQ(qer_of({{"5qi", 5}, {"priority", 0}}).priority, 0);
}

TEST(FiveQi, DecidesAmongABearersSiblings) {
  for (const bool is_special : {false, true}) {
    const Dict signalling{{"5qi", 5}};
    const Dict rest{{"5qi", 8}};
    ShapeRig rig(is_special ? two_bearers(rest, signalling) : two_bearers(signalling, rest));
    rig.rig.loop(10'000, 1000);
    std::map<int64_t, double> rates = rig.rates_mbps();
    EXPECT_NEAR(rates[is_special ? kSpecial : kPlain], 300, 3);
    EXPECT_NEAR(rates[is_special ? kPlain : kSpecial], 100, 1);
  }
}

TEST(FiveQi, AModifyChangesThePriorityWhilePacketsWait) {
  ShapeRig rig(two_bearers({{"5qi", 5}}, {{"5qi", 8}}));
  rig.rig.loop(10'000, 1000);
  const auto modify = [&](const Dict& qer) {
    rig.module("users").command("modify", Dict{{"seid", 1}, {"qers", List{qer}}});
    rig.rig.loop(50'000, 1000);  // until bursts are spent
    return rig.rates_mbps();
  };
  std::map<int64_t, double> rates = modify({{"id", 2}, {"5qi", 69}});
  EXPECT_NEAR(rates[kSpecial], 200, 2);  // 5 and 69 go first alike
  rates = modify({{"id", 1}, {"5qi", 9}});
  EXPECT_NEAR(rates[kSpecial], 300, 3);
  rates = modify({{"id", 1}, {"priority", 7}});  // equal to 5QI 69: both get the same
  EXPECT_NEAR(rates[kSpecial], 200, 2);
  rig.rig.balanced();
}

TEST(FiveQi, IsKeptAsItWasGiven) {
  const auto saved = [](const Dict& more) {
    const session::Session made = session::parse_session(
        shaped_session({shaped_qer(1, 300 * kMbps, more)}, {1}, {}), "session");
    const Value once = session::format_session(made);
    EXPECT_EQ(Value(session::format_session(session::parse_session(once, "again"))), once);
    return once["qers"].as_list().at(0);
  };
  const Value by_class = saved({{"5qi", 5}});
  EXPECT_EQ(by_class["5qi"].as_int(), 5);
  EXPECT_FALSE(by_class.has("priority"));
  const Value both = saved({{"5qi", 5}, {"priority", 0}});
  EXPECT_EQ(both["priority"].as_int(), 0);
  EXPECT_FALSE(saved({{"priority", 0}}).has("priority"));
}

TEST(FiveQi, WhatCannotBeIsRefused) {
  const auto expect_refused = [](const Dict& more, const std::string& part) {
    const std::string said = mistake_in([&] { qer_of(more); });
    EXPECT_NE(said.find(part), std::string::npos) << said;
    EXPECT_NE(said.find("qer.5qi"), std::string::npos) << said;
  };
  expect_refused({{"5qi", 11}}, "5QI 11 is not standardised");
  expect_refused({{"5qi", 200}, {"priority", 3}}, "one of 1-10, 65-67, 69-76, 79-80, 82-90");
  expect_refused({{"5qi", 1}}, "for a guaranteed rate");
  expect_refused({{"5qi", 83}}, "set gbr_down_bps");
  expect_refused({{"5qi", 0}}, "");
  expect_refused({{"5qi", 9}, {"shape", "none"}}, "what is policed has no priority");
}

}  // namespace session_five_qi_test
}  // namespace batchplane
