// SPDX-License-Identifier: BSD-3-Clause
// session_watch_test.cc - usage is reported at its thresholds, and exactly once.
#include <gtest/gtest.h>

#include "base/rng.h"
#include "modules/session/session_rules.h"
#include "modules/session/session_test_util.h"

namespace batchplane {
namespace session_watch_test {

constexpr uint64_t kMs = 1'000'000;
// Slots of test_session()'s rules, all of the first generation.
constexpr uint32_t kUp = 1U << 24;
constexpr uint32_t kDown = 1U << 24 | session::slot_at(0, false);
constexpr uint32_t kSpecial = 1U << 24 | session::slot_at(1, false);
constexpr int64_t kBytes = 86;  // IP bytes in a downlink_frame()

Dict with_urr(const Dict& thresholds) {
  Dict session = test_session();
  Dict urr{{"id", 1}};
  urr.insert(thresholds.begin(), thresholds.end());
  session["urrs"] = List{urr, Dict{{"id", 2}}};
  return session;
}

struct Gateway {
  ModuleHarness enforce;
  uint64_t now_ns = 1000 * kMs;

  explicit Gateway(const Dict& session)
      : enforce("session_enforce", {{"sessions", List{session}}}) {
    look();
  }
  void use(uint32_t mark, uint32_t n) {
    std::vector<Packet*> pkts;
    for (uint32_t i = 0; i < n; ++i) {
      pkts.push_back(enforce.make_packet(downlink_frame()));
      pkts.back()->set_mark(mark);
    }
    (void)enforce.run_packets(std::move(pkts));
  }
  void look(uint64_t after_ns = kMs) {
    now_ns += after_ns;
    enforce.set_now_ns(now_ns);
    (void)enforce.housekeep();
  }
  List reports(int64_t after = 0) {
    return enforce.command("reports", Dict{{"after", after}})["reports"].as_list();
  }
  Value urr(size_t i = 0) {
    return enforce.command("list")["sessions"].as_list().at(0)["urrs"].as_list().at(i);
  }
};

TEST(SessionWatch, ReportsVolume) {
  Gateway gateway(with_urr({{"volume_bytes", 10 * kBytes}}));
  gateway.use(kDown, 6);
  gateway.use(kUp, 3);
  gateway.look();
  EXPECT_TRUE(gateway.reports().empty());
  EXPECT_EQ(gateway.urr()["down_bytes_since_report"].as_int(), 6 * kBytes);
  gateway.use(kSpecial, 1);
  gateway.look();
  ASSERT_EQ(gateway.reports().size(), 1U);
  const Value report = gateway.reports()[0];
  EXPECT_EQ(report["kind"].as_string(), "usage");
  EXPECT_EQ(report["trigger"].as_string(), "volume");
  EXPECT_EQ(report["seid"].as_int(), 1);
  EXPECT_EQ(report["urr"].as_int(), 1);
  EXPECT_EQ(report["down_bytes"].as_int(), 7 * kBytes);
  EXPECT_EQ(report["up_pkts"].as_int(), 3);
  EXPECT_EQ(report["end_ns"].as_int() - report["begin_ns"].as_int(), 2 * int64_t{kMs});
  // Counting starts again from here.
  gateway.look();
  EXPECT_EQ(gateway.reports().size(), 1U);
  EXPECT_EQ(gateway.urr()["down_bytes_since_report"].as_int(), 0);
  gateway.use(kDown, 10);
  gateway.look();
  ASSERT_EQ(gateway.reports(1).size(), 1U);
  EXPECT_EQ(gateway.reports(1)[0]["sequence"].as_int(), 1);
  EXPECT_EQ(gateway.urr()["reports"].as_int(), 2);
  EXPECT_FALSE(gateway.urr(1).has("reports"));
}

TEST(SessionWatch, ReportsOneDirectionAndTime) {
  Gateway up(with_urr({{"up_bytes", 5 * kBytes}}));
  up.use(kDown, 50);
  up.look();
  EXPECT_TRUE(up.reports().empty());
  up.use(kUp, 5);
  up.look();
  EXPECT_EQ(up.reports().size(), 1U);
  Gateway time(with_urr({{"time_ns", 50 * kMs}, {"down_bytes", 100 * kBytes}}));
  time.use(kDown, 1);
  time.look(49 * kMs);
  EXPECT_TRUE(time.reports().empty());
  time.look(2 * kMs);
  ASSERT_EQ(time.reports().size(), 1U);
  EXPECT_EQ(time.reports()[0]["trigger"].as_string(), "time");
  EXPECT_EQ(time.reports()[0]["down_bytes"].as_int(), kBytes);
  // Whichever threshold is reached first, both start again.
  time.use(kDown, 100);
  time.look(30 * kMs);
  EXPECT_EQ(time.reports(1).at(0)["trigger"].as_string(), "volume");
  time.look(30 * kMs);
  EXPECT_EQ(time.reports().size(), 2U);
}

// Rules join and leave, thresholds are added, changed and removed: each report covers what was used
// under the rule meanwhile.
TEST(SessionWatch, FollowsChanges) {
  Gateway gateway(test_session());
  gateway.use(kDown, 100);
  gateway.look();
  const auto thresholds = [&](const Dict& urr) {
    gateway.enforce.command("modify", Dict{{"seid", 1}, {"urrs", List{urr}}});
  };
  thresholds({{"id", 1}, {"volume_bytes", 20 * kBytes}});
  gateway.look();
  EXPECT_TRUE(gateway.reports().empty()) << "what was used before is not its";
  gateway.use(kDown, 12);
  // The special bearer leaves the rule after 4 packets; its later packets do not count for the
  // rule.
  gateway.use(kSpecial, 4);
  const auto special = [&](const List& urrs) {
    gateway.enforce.command("modify",
                            Dict{{"seid", 1}, {"pdrs", List{Dict{{"id", 3}, {"urrs", urrs}}}}});
  };
  special({2});
  gateway.use(kSpecial, 70);
  gateway.look();
  EXPECT_TRUE(gateway.reports().empty());
  EXPECT_EQ(gateway.urr()["down_bytes_since_report"].as_int(), 16 * kBytes);
  special({1, 2});
  EXPECT_EQ(gateway.urr()["down_bytes_since_report"].as_int(), 16 * kBytes);
  gateway.use(kSpecial, 4);
  gateway.look();
  ASSERT_EQ(gateway.reports().size(), 1U);
  EXPECT_EQ(gateway.reports()[0]["down_bytes"].as_int(), 20 * kBytes);
  thresholds({{"id", 1}, {"volume_bytes", 0}});
  gateway.use(kDown, 100);
  gateway.look();
  EXPECT_EQ(gateway.reports().size(), 1U);
  EXPECT_FALSE(gateway.urr().has("reports"));
}

TEST(SessionWatch, SurvivesDeletionAndReuse) {
  Gateway gateway(with_urr({{"volume_bytes", 10 * kBytes}}));
  gateway.use(kDown, 9);
  gateway.enforce.command("delete", Dict{{"seid", 1}});
  gateway.look();
  ASSERT_EQ(gateway.reports().size(), 2U) << "the last ones, of both usage rules";
  gateway.enforce.command("add", with_urr({{"volume_bytes", 10 * kBytes}}));
  gateway.look();
  EXPECT_EQ(gateway.reports().size(), 2U);
  EXPECT_EQ(gateway.urr()["down_bytes_since_report"].as_int(), 0);
}

TEST(SessionWatch, LooksAtAllOfManyInTurn) {
  List sessions;
  for (int i = 0; i < 500; ++i) {
    Dict session = with_urr({{"volume_bytes", 3 * kBytes}});
    session["seid"] = 1 + i;
    session["ue"] = "10.46." + std::to_string(i / 250) + "." + std::to_string(1 + i % 250);
    List pdrs = session["pdrs"].as_list();
    Dict up = pdrs[0].as_dict();
    up["teid"] = 100 + i;
    session["pdrs"] = List{up, pdrs[1], pdrs[2]};
    sessions.push_back(session);
  }
  ModuleHarness enforce("session_enforce", {{"sessions", sessions}});
  for (uint32_t i = 0; i < 500; ++i) {
    std::vector<Packet*> pkts;
    for (uint32_t k = 0; k < 1 + i % 4; ++k) {
      pkts.push_back(enforce.make_packet(downlink_frame()));
      pkts.back()->set_mark(1U << 24 | session::slot_at(2 * i, false));
    }
    (void)enforce.run_packets(std::move(pkts));
  }
  for (uint32_t i = 0; i < 10; ++i) (void)enforce.housekeep();
  const Value told = enforce.command("reports", Dict{{"limit", 1000}});
  EXPECT_EQ(told["reports"].as_list().size(), 250U);
  EXPECT_EQ(told["latest"].as_int(), 250);
  EXPECT_EQ(enforce.command("reports", Dict{{"seid", 4}})["reports"].as_list().size(), 1U);
  EXPECT_EQ(enforce.command("reports", Dict{{"seid", 5}})["reports"].as_list().size(), 0U);
}

TEST(SessionWatch, MistakesAreRefused) {
  for (const Dict& bad : {Dict{{"volume_bytes", -1}}, Dict{{"time_ns", 10}},
                          Dict{{"up_bytes", "x"}}, Dict{{"volume", 5}}}) {
    EXPECT_NE(refusal_of([&] {
                ModuleHarness("session_enforce", {{"sessions", List{with_urr(bad)}}});
              }).find("urrs[0]"),
              std::string::npos);
  }
}

}  // namespace session_watch_test
}  // namespace batchplane
