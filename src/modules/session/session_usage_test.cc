// SPDX-License-Identifier: BSD-3-Clause
// session_usage_test.cc - however rules are added, changed and removed, all usage is reported
// exactly once.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <thread>

#include "base/rng.h"
#include "core/module/live_table.h"
#include "modules/session/session_usage_test_util.h"

namespace batchplane {
namespace session_usage_test {

Value delete_it(UsageRig& rig) { return rig.enforce.command("delete", Dict{{"seid", 1}}); }

TEST(SessionUsage, ADeletedSessionTellsTheRest) {
  UsageRig rig(with_urrs({Dict{{"id", 1}, {"volume_bytes", 4 * kTestBytes}}, Dict{{"id", 2}}}));
  rig.use(test_mark(2), 5);
  rig.look();
  rig.use(test_mark(1), 1);
  rig.use(test_mark(3), 2);
  const Value answer = delete_it(rig);
  EXPECT_EQ(answer["sessions"].as_int(), 0);
  const Value ended = answer["ended"].as_list().at(0);
  EXPECT_EQ(ended["seid"].as_int(), 1);
  EXPECT_TRUE(ended["is_deleted"].as_bool());
  // For PDRs all that they passed, for URRs what was not reported yet.
  const List pdrs = ended["pdrs"].as_list();
  ASSERT_EQ(pdrs.size(), 3U);
  EXPECT_EQ(pdrs[0]["pkts"].as_int(), 1);
  EXPECT_EQ(pdrs[0]["source"].as_string(), "access");
  EXPECT_EQ(pdrs[1]["bytes"].as_int(), 5 * kTestBytes);
  const List urrs = ended["urrs"].as_list();
  ASSERT_EQ(urrs.size(), 2U);
  EXPECT_EQ(urrs[0]["down_bytes"].as_int(), 2 * kTestBytes);
  EXPECT_EQ(urrs[0]["up_pkts"].as_int(), 1);
  EXPECT_EQ(urrs[1]["down_pkts"].as_int(), 2);
  const List reports = rig.reports(1);
  ASSERT_EQ(reports.size(), 2U);
  EXPECT_EQ(reports[0]["trigger"].as_string(), "termination");
  EXPECT_EQ(reports[0]["number"], urrs[0]["report"]);
  EXPECT_EQ(reports[0]["seid"].as_int(), 1);
  EXPECT_EQ(reports[0]["sequence"].as_int(), 1);
  EXPECT_EQ(reports[0]["begin_ns"], rig.reports()[0]["end_ns"]);
  EXPECT_EQ(reports[0]["down_bytes"].as_int(), 2 * kTestBytes);
  EXPECT_EQ(reports[1]["urr"].as_int(), 2);
  EXPECT_EQ(reports[1]["sequence"].as_int(), 0);
  EXPECT_GE(reports[1]["end_ns"].as_int(), reports[1]["begin_ns"].as_int());
}

// A packet in flight when its session is removed is dropped and counts for no one.
TEST(SessionUsage, WhatIsOnItsWayIsNotUsed) {
  UsageRig rig(test_session());
  rig.use(test_mark(2), 3);
  const Value urr = delete_it(rig)["ended"].as_list().at(0)["urrs"].as_list().at(0);
  EXPECT_EQ(urr["down_pkts"].as_int(), 3);
  EXPECT_EQ(rig.use(test_mark(2), 4), 0U);
  EXPECT_EQ(rig.last.dropped_for("session_gone"), 4U);
  rig.enforce.command("add", test_session());
  EXPECT_EQ(rig.use(test_mark(2), 4), 0U);
  const Value next = delete_it(rig)["ended"].as_list().at(0)["urrs"].as_list().at(0);
  EXPECT_EQ(next["down_pkts"].as_int(), 0) << "told all the same: there was nothing";
  EXPECT_EQ(rig.reports().size(), 4U);
}

TEST(SessionUsage, AUsageRuleThatGoesTellsTheRest) {
  UsageRig rig(test_session());
  rig.use(test_mark(3), 2);
  EXPECT_FALSE(rig.modify("pdrs", Dict{{"id", 3}, {"urrs", List{1}}}).has("ended"));
  rig.use(test_mark(3), 3);
  const Value answer = rig.modify("urrs", Dict{{"id", 2}, {"remove", true}});
  const Value ended = answer["ended"].as_list().at(0);
  EXPECT_FALSE(ended["is_deleted"].as_bool());
  EXPECT_TRUE(ended["pdrs"].as_list().empty());
  EXPECT_EQ(ended["urrs"].as_list().at(0)["down_pkts"].as_int(), 2);
  ASSERT_EQ(rig.reports().size(), 1U);
  EXPECT_EQ(rig.reports()[0]["urr"].as_int(), 2);
  // When a PDR is removed, what it passed still belongs to its usage rule.
  const Value gone = rig.modify("pdrs", Dict{{"id", 3}, {"remove", true}});
  EXPECT_EQ(gone["ended"].as_list().at(0)["pdrs"].as_list().at(0)["pkts"].as_int(), 5);
  const Value last = delete_it(rig)["ended"].as_list().at(0)["urrs"].as_list().at(0);
  EXPECT_EQ(last["down_pkts"].as_int(), 5);
}

TEST(SessionUsage, AListWithoutTheSessionAndAPipelineWithoutIt) {
  UsageRig rig(test_session());
  rig.use(test_mark(2), 3);
  const Value answer = rig.enforce.command("replace", test_session(2, 200, "10.45.0.3"));
  EXPECT_EQ(answer["ended"].as_list().at(0)["urrs"].as_list().at(0)["down_pkts"].as_int(), 3);
  // No command answers for what an apply removes: the reports have it.
  Environment before;
  ModuleHarness old("session_enforce", {{"sessions", List{test_session()}}}, 1, &before);
  Packet* const pkt = old.make_packet(downlink_frame());
  pkt->set_mark(test_mark(2));
  (void)old.run_packets({pkt});
  Environment after;
  after.carry_over(before);
  ModuleHarness next("session_enforce", {{"sessions", List{test_session(2, 200, "10.45.0.3")}}}, 1,
                     &after);
  const List reports = next.command("reports")["reports"].as_list();
  ASSERT_EQ(reports.size(), 2U);
  EXPECT_EQ(reports[0]["trigger"].as_string(), "termination");
  EXPECT_EQ(reports[0]["seid"].as_int(), 1);
  EXPECT_EQ(reports[0]["down_pkts"].as_int(), 1);
}

// All reports of one step can be fetched, even if more than are usually kept.
TEST(SessionUsage, ManyAtOnceAreAllTold) {
  ModuleHarness enforce("session_enforce", {{"synthetic", Dict{{"count", 6000}}}});
  enforce.command("replace", Dict{{"sessions", List{test_session(9000, 90'000, "10.99.0.2")}}});
  const Value told = enforce.command("reports", Dict{{"limit", 10'000}});
  EXPECT_EQ(told["reports"].as_list().size(), 6000U);
  EXPECT_EQ(told["oldest"].as_int(), 1);
}

// A simple model: the packets that passed while rules referred to usage rules.
struct Account {
  std::map<int64_t, std::array<int64_t, 3>> told;  // by URR: up and down bytes, packets
  std::map<int64_t, std::array<int64_t, 3>> used;

  void use(const std::vector<int64_t>& urrs, bool is_up, int64_t bytes) {
    for (const int64_t urr : urrs) {
      used[urr][is_up ? 0 : 1] += bytes;
      ++used[urr][2];
    }
  }
  void tell(const List& reports) {
    for (const Value& report : reports) {
      std::array<int64_t, 3>& sum = told[report["urr"].as_int()];
      sum[0] += report["up_bytes"].as_int();
      sum[1] += report["down_bytes"].as_int();
      sum[2] += report["up_pkts"].as_int() + report["down_pkts"].as_int();
    }
  }
};

// Bearers join and leave usage rules, thresholds and quotas change, bearers and usage rules are
// removed and added again, and reports are made in between: the sum of all reports is the usage.
TEST(SessionUsage, ReportsAddUpToWhatWasUsed) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Rng rng(seed);
    UsageRig rig(test_session());
    Account account;
    std::map<int, std::vector<int64_t>> named = {{1, {1}}, {2, {1}}, {3, {1, 2}}};
    const auto random_urr = [&] {
      Dict urr{{"id", 1 + static_cast<int>(rng.below(2))}};
      for (const char* key : {"volume_bytes", "up_bytes", "time_ns"}) {
        if (rng.below(2) == 0) urr[key] = rng.below(2) == 0 ? 0 : 1'000'000 + rng.below(3000);
      }
      if (rng.below(4) == 0) urr["volume_bytes"] = 500 + rng.below(3000);
      if (rng.below(3) == 0) urr["quota_bytes"] = 100'000'000;
      if (rng.below(3) == 0) urr["quota_bytes"] = Value();
      return urr;
    };
    for (int step = 0; step < 300; ++step) {
      const int pdr = 1 + static_cast<int>(rng.below(3));
      const uint32_t bytes = 40 + rng.below(700);
      ASSERT_EQ(rig.use(test_mark(pdr), 1, bytes), 1U);
      account.use(named[pdr], pdr == 1, bytes);
      if (rng.below(6) == 0) rig.look();
      if (rng.below(6) == 0) rig.modify("urrs", random_urr());
      if (rng.below(6) != 0) continue;
      List urrs;
      named[pdr].clear();
      for (const int64_t urr : {1, 2}) {
        if (rng.below(2) == 0) continue;
        urrs.emplace_back(urr);
        named[pdr].push_back(urr);
      }
      Dict change{{"seid", 1}, {"pdrs", List{Dict{{"id", pdr}, {"urrs", urrs}}}}};
      const bool is_free = std::ranges::none_of(named, [](const auto& rules) {
        return std::ranges::find(rules.second, 2) != rules.second.end();
      });
      // No PDR refers to it: it may be removed, and added again as a new one.
      if (is_free && rng.below(2) == 0) change["urrs"] = List{Dict{{"id", 2}, {"remove", true}}};
      rig.enforce.command("modify", change);
      if (change.contains("urrs")) rig.modify("urrs", Dict{{"id", 2}});
      if (!change.contains("urrs") && rng.below(2) == 0) rig.modify("urrs", random_urr());
    }
    delete_it(rig);
    account.tell(rig.reports());
    for (const int64_t urr : {1, 2}) EXPECT_EQ(account.told[urr], account.used[urr]) << seed;
  }
}

// A worker counts while the session is removed, added and changed: its packets are counted or
// dropped, and all counted ones are reported.
TEST(SessionUsage, NothingIsLostWhileAWorkerCounts) {
  Quiescence quiescence;
  Environment env;
  env.quiescence = &quiescence;
  const Dict watched = with_urrs({Dict{{"id", 1}, {"volume_bytes", 20 * kTestBytes}},
                                  Dict{{"id", 2}, {"quota_bytes", 1'000'000'000}}});
  ModuleHarness enforce("session_enforce", {{"sessions", List{watched}}}, 1, &env);
  ModuleHarness control("session_split", {}, 1, &env);
  std::atomic<bool> must_stop{false};
  std::atomic<uint32_t> generation{1};
  std::atomic<uint64_t> passed_bytes{0};
  std::thread worker([&] {
    quiescence.set_online(0, true);
    for (uint64_t i = 1; !must_stop.load(); ++i) {
      std::vector<Packet*> pkts;
      for (int k = 0; k < 8; ++k) {
        pkts.push_back(enforce.make_packet(downlink_frame()));
        pkts.back()->set_mark(test_mark(3, generation.load()));
      }
      passed_bytes += enforce.run_packets(std::move(pkts)).outputs.size() * kTestBytes;
      if (i % 4 == 0) (void)enforce.housekeep();
      quiescence.pass(0);
    }
    quiescence.set_online(0, false);
  });
  uint64_t told_bytes = 0;
  int64_t seen = 0;
  const auto hear = [&] {
    const Value told = control.command("reports", Dict{{"after", seen}, {"limit", 5000}});
    for (const Value& report : told["reports"].as_list()) {
      if (report["urr"].as_int() == 1) told_bytes += report["down_bytes"].as_int();
    }
    ASSERT_TRUE(seen == 0 || told["oldest"].as_int() <= seen + 1) << "some were pushed out";
    seen = told["latest"].as_int();
  };
  for (uint32_t round = 0; round < 40; ++round) {
    for (int i = 0; i < 5; ++i) {
      control.command("modify", Dict{{"seid", 1},
                                     {"urrs", List{Dict{{"id", 1}, {"volume_bytes", i % 2 * 999}},
                                                   Dict{{"id", 2}, {"quota_bytes", 1 << 30}}}}});
      hear();
    }
    control.command("delete", Dict{{"seid", 1}});
    control.command("add", watched);
    generation.store(generation.load() % 255 + 1);
    hear();
    // Each round's session is used.
    const uint64_t before = passed_bytes.load();
    while (passed_bytes.load() == before) std::this_thread::yield();
  }
  must_stop.store(true);
  worker.join();
  control.command("delete", Dict{{"seid", 1}});
  hear();
  EXPECT_EQ(told_bytes, passed_bytes.load());
}

}  // namespace session_usage_test
}  // namespace batchplane
