// SPDX-License-Identifier: BSD-3-Clause
// session_quota_test.cc - no packet passes beyond a quota, whichever rules share it, and a new
// grant lets packets pass again.
#include "modules/session/session_quota.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>

#include "base/rng.h"
#include "modules/session/session.h"
#include "modules/session/session_usage_test_util.h"

namespace batchplane {
namespace session_quota_test {

using session::Quota;
using session::QuotaKind;
using session::QuotaState;

Dict quota_urr(const Dict& keys, int id = 1) {
  Dict urr{{"id", id}};
  urr.insert(keys.begin(), keys.end());
  return urr;
}
Dict with_quota(const Dict& keys) { return with_urrs({quota_urr(keys), Dict{{"id", 2}}}); }

TEST(SessionQuota, EndsWithThePacketThatWouldExceedIt) {
  UsageRig rig(with_quota({{"quota_bytes", 5 * kTestBytes + 50}}));
  EXPECT_EQ(rig.use(test_mark(1), 2), 2U);
  EXPECT_EQ(rig.urr()["quota_left_bytes"].as_int(), 3 * kTestBytes + 50);
  EXPECT_EQ(rig.use(test_mark(2), 9), 3U) << "both directions, within a batch";
  EXPECT_EQ(rig.last.dropped_for("urr_quota"), 6U);
  EXPECT_EQ(rig.use(test_mark(3), 1, 40), 0U) << "a short one does not overtake";
  EXPECT_EQ(rig.urr()["quota_left_bytes"].as_int(), 50);
  EXPECT_TRUE(rig.urr()["is_used_up"].as_bool());
  EXPECT_EQ(rig.urr()["down_dropped_pkts"].as_int(), 7);
  EXPECT_EQ(rig.urr()["down_bytes"].as_int(), 3 * kTestBytes);
  EXPECT_FALSE(rig.urr(1).has("quota_left_bytes"));
}

TEST(SessionQuota, OneDirectionsQuotaStopsThatOneOnly) {
  UsageRig rig(with_quota({{"up_quota_bytes", 2 * kTestBytes}, {"quota_bytes", 7 * kTestBytes}}));
  EXPECT_EQ(rig.use(test_mark(1), 4), 2U);
  EXPECT_EQ(rig.use(test_mark(2), 4), 4U);
  EXPECT_EQ(rig.urr()["up_quota_left_bytes"].as_int(), 0);
  EXPECT_EQ(rig.use(test_mark(3), 4), 1U) << "what one of them stopped was not taken of the other";
  UsageRig down(with_quota({{"down_quota_bytes", kTestBytes}}));
  EXPECT_EQ(down.use(test_mark(2), 4), 1U);
  EXPECT_EQ(down.use(test_mark(1), 4), 4U);
}

TEST(SessionQuota, IsReportedOncePerGrant) {
  UsageRig rig(with_quota({{"quota_bytes", 3 * kTestBytes}, {"volume_bytes", 2 * kTestBytes}}));
  rig.use(test_mark(2), 2);
  rig.look();
  EXPECT_EQ(rig.reports().at(0)["trigger"].as_string(), "volume");
  EXPECT_FALSE(rig.reports()[0].has("used_up"));
  EXPECT_EQ(rig.use(test_mark(2), 2), 1U);
  rig.look();
  rig.look();
  ASSERT_EQ(rig.reports().size(), 2U);
  const Value report = rig.reports()[1];
  EXPECT_EQ(report["trigger"].as_string(), "quota");
  EXPECT_EQ(report["used_up"], Value(List{"quota_bytes"}));
  EXPECT_EQ(report["down_bytes"].as_int(), kTestBytes);
  EXPECT_EQ(report["sequence"].as_int(), 1);
  rig.modify("urrs", quota_urr({{"quota_bytes", kTestBytes}}));
  rig.look();
  EXPECT_EQ(rig.reports().size(), 2U);
  EXPECT_EQ(rig.use(test_mark(1), 2), 1U);
  rig.look();
  EXPECT_EQ(rig.reports().size(), 3U);
}

TEST(SessionQuota, OnlyNamedQuotasAreRenewed) {
  UsageRig rig(with_quota({{"quota_bytes", 3 * kTestBytes}}));
  const auto grant = [&](const Value& bytes) {
    rig.modify("urrs", quota_urr({{"quota_bytes", bytes}}));
  };
  EXPECT_EQ(rig.use(test_mark(2), 4), 3U);
  rig.look();
  grant(3 * kTestBytes);
  EXPECT_EQ(rig.use(test_mark(2), 2), 2U) << "as much as before is a new one";
  // Changing anything else, or adding the same session again, does not renew the quota.
  rig.modify("fars", Dict{{"id", 1}, {"teid", 9}, {"peer", "192.0.2.9"}});
  rig.enforce.command("add", with_quota({{"quota_bytes", 3 * kTestBytes}}));
  EXPECT_EQ(rig.urr()["quota_left_bytes"].as_int(), kTestBytes);
  // Two packets are not reported yet: they count for the new quota, which replaces the old one.
  grant(5 * kTestBytes);
  EXPECT_EQ(rig.use(test_mark(2), 9), 3U);
  grant(0);
  EXPECT_EQ(rig.use(test_mark(2), 1), 0U);
  grant(Value());
  EXPECT_EQ(rig.use(test_mark(2), 9), 9U);
  EXPECT_FALSE(rig.urr().has("quota_left_bytes"));
  // A quota for a rule that had none begins with its full amount.
  grant(2 * kTestBytes);
  EXPECT_EQ(rig.use(test_mark(2), 9), 2U);
}

TEST(SessionQuota, TimeRunsFromTheFirstPacketOn) {
  UsageRig rig(with_quota({{"quota_ns", 10 * kTestMs}}));
  rig.look(50 * kTestMs);
  EXPECT_EQ(rig.urr()["quota_left_ns"].as_int(), 10 * int64_t{kTestMs});
  EXPECT_EQ(rig.use(test_mark(1), 1), 1U);
  rig.look(10 * kTestMs - 1);
  EXPECT_EQ(rig.use(test_mark(2), 1), 1U);
  EXPECT_EQ(rig.urr()["quota_left_ns"].as_int(), 1);
  rig.look(1);
  // Reported although no packet came too late.
  ASSERT_EQ(rig.reports().size(), 1U);
  EXPECT_EQ(rig.reports()[0]["used_up"], Value(List{"quota_ns"}));
  EXPECT_EQ(rig.use(test_mark(2), 1), 0U);
  rig.modify("urrs", quota_urr({{"quota_ns", 10 * kTestMs}}));
  rig.look(20 * kTestMs);
  EXPECT_EQ(rig.use(test_mark(2), 1), 1U) << "the new one begins with its own first packet";
  rig.look(10 * kTestMs);
  EXPECT_EQ(rig.use(test_mark(2), 1), 0U);
  UsageRig none(with_quota({{"quota_ns", 0}}));
  EXPECT_EQ(none.use(test_mark(2), 1), 0U);
}

// With a shared rate, and with one of the rule's own.
TEST(SessionQuota, PacketsStoppedByARateTakeNoQuotaAndViceVersa) {
  for (const bool is_shared : {false, true}) {
    Dict session = with_quota({{"quota_bytes", 4 * kTestBytes}});
    session["qers"] = List{Dict{{"id", 1}, {"mbr_down_bps", 688'000}, {"burst_ns", 1000}}};
    List pdrs = session["pdrs"].as_list();
    for (size_t i = 1; i < (is_shared ? 3U : 2U); ++i) {
      Dict pdr = pdrs[i].as_dict();
      pdr["qers"] = List{1};
      pdrs[i] = pdr;
    }
    session["pdrs"] = pdrs;
    UsageRig rig(session);
    EXPECT_EQ(rig.use(test_mark(2), 50), 1U);
    EXPECT_EQ(rig.last.dropped_for("qer_rate"), 49U);
    EXPECT_EQ(rig.use(test_mark(1), 9), 3U);
    rig.look(100 * kTestMs);
    EXPECT_EQ(rig.use(test_mark(2), 9), 0U);
    EXPECT_EQ(rig.last.dropped_for("urr_quota"), 9U);
    rig.modify("urrs", quota_urr({{"quota_bytes", 4 * kTestBytes}}));
    EXPECT_EQ(rig.use(test_mark(2), 9), 1U) << "nothing of the rate was taken";
  }
}

TEST(SessionQuota, MistakesAreRefused) {
  for (const Dict& bad :
       {Dict{{"quota_bytes", -1}}, Dict{{"quota_ns", "1s"}}, Dict{{"up_quota_bytes", 1.5}},
        Dict{{"down_quota_bytes", true}}, Dict{{"quota", 5}}}) {
    const std::string told = refusal_of([&] { UsageRig rig(with_quota(bad)); });
    EXPECT_NE(told.find("urrs[0]"), std::string::npos) << told;
    EXPECT_NE(told.find(bad.begin()->first), std::string::npos) << told;
  }
}

// A simple model of the same: one entry for each quota of each usage rule.
struct Oracle {
  struct Entry {
    int urr = 0;
    std::string kind;
    int64_t left = 0;    // bytes, or ns from the first packet on
    int64_t untold = 0;  // bytes since the last report
    uint64_t first_ns = 0;
    bool is_closed = false;
    bool is_told = false;

    [[nodiscard]] bool is_time() const { return kind == "quota_ns"; }
    [[nodiscard]] bool is_over(uint64_t now_ns) const {
      if (!is_time()) return is_closed || left <= 0;
      return first_ns == 0 ? left == 0 : now_ns >= first_ns + static_cast<uint64_t>(left);
    }
  };
  std::vector<Entry> entries;
  std::vector<std::pair<int, List>> reports;  // the rule, and which of its quotas were used up

  void grant(int urr, const std::string& kind, int64_t much) {
    for (Entry& entry : entries) {
      if (entry.urr != urr || entry.kind != kind) continue;
      const int64_t untold = entry.is_time() ? 0 : entry.untold;
      entry = {.urr = urr, .kind = kind, .left = much - untold, .untold = untold};
      return;
    }
    entries.push_back({.urr = urr, .kind = kind, .left = much});
  }
  bool passes(bool is_special, bool is_up, int64_t bytes, uint64_t now_ns) {
    std::vector<Entry*> asked;
    for (Entry& entry : entries) {
      if (entry.urr == 2 && !is_special) continue;
      if (entry.kind == (is_up ? "down_quota_bytes" : "up_quota_bytes")) continue;
      asked.push_back(&entry);
    }
    bool may_pass = true;
    for (Entry* entry : asked) {
      if (!entry->is_time() && entry->left < bytes) entry->is_closed = true;
      if (entry->is_over(now_ns)) may_pass = false;
    }
    if (!may_pass) return false;
    for (Entry* entry : asked) {
      if (entry->first_ns == 0) entry->first_ns = now_ns;
      if (entry->is_time()) continue;
      entry->left -= bytes;
      entry->untold += bytes;
    }
    return true;
  }
  void look(uint64_t now_ns) {
    for (const int urr : {1, 2}) {
      List used_up;
      for (const char* kind : session::kQuotaKeys) {
        for (Entry& entry : entries) {
          if (entry.urr != urr || entry.kind != kind) continue;
          if (entry.is_told || !entry.is_over(now_ns)) continue;
          entry.is_told = true;
          used_up.emplace_back(kind);
        }
      }
      if (used_up.empty()) continue;
      for (Entry& entry : entries) {
        if (entry.urr == urr) entry.untold = 0;
      }
      reports.emplace_back(urr, used_up);
    }
  }
};

// Packets of random lengths and bearers under two usage rules; grants and checks at random times.
TEST(SessionQuota, AgreesWithASlowOracle) {
  uint64_t n_refused = 0;
  uint64_t n_reports = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Rng rng(seed);
    Oracle oracle;
    UsageRig rig(test_session());
    const auto grant = [&] {
      const int urr = 1 + static_cast<int>(rng.below(2));
      const char* const kind = session::kQuotaKeys.at(rng.below(4));
      const auto much = static_cast<int64_t>(
          rng.below(8) == 0 ? 0 : rng.below(kind == session::kQuotaKeys[3] ? 9'000'000 : 9000));
      rig.modify("urrs", quota_urr({{kind, much}}, urr));
      oracle.grant(urr, kind, much);
    };
    for (int step = 0; step < 400; ++step) {
      if (rng.below(15) == 0) grant();
      if (rng.below(8) == 0) {
        rig.look(1 + rng.below(500'000));
        oracle.look(rig.now_ns);
      }
      const int pdr = 1 + static_cast<int>(rng.below(3));
      const uint32_t bytes = 40 + rng.below(700);
      const bool may_pass = oracle.passes(pdr == 3, pdr == 1, bytes, rig.now_ns);
      ASSERT_EQ(rig.use(test_mark(pdr), 1, bytes) == 1, may_pass) << seed << ": " << step;
      n_refused += may_pass ? 0 : 1;
    }
    std::vector<std::pair<int, List>> told;
    for (const Value& report : rig.reports()) {
      told.emplace_back(static_cast<int>(report["urr"].as_int()), report["used_up"].as_list());
    }
    std::ranges::stable_sort(told, {}, &std::pair<int, List>::first);
    std::ranges::stable_sort(oracle.reports, {}, &std::pair<int, List>::first);
    ASSERT_EQ(told.size(), oracle.reports.size()) << seed;
    for (size_t i = 0; i < told.size(); ++i) {
      EXPECT_EQ(told[i].first, oracle.reports[i].first) << seed;
      EXPECT_EQ(Value(told[i].second), Value(oracle.reports[i].second)) << seed;
    }
    n_reports += told.size();
  }
  EXPECT_GT(n_refused, 1000U);
  EXPECT_GT(n_reports, 100U);
}

// Two threads that share one quota, and have one each of their own: together they never exceed it,
// and if all packets have the same length they use all of it.
TEST(SessionQuota, WorkersShareItWithoutALockAndToTheByte) {
  constexpr uint32_t kBytes = 100;
  constexpr uint64_t kPkts = 1'000'000;
  for (const uint64_t spare : {0U, 99U}) {
    std::array<QuotaState, 3> states{};
    std::vector<Quota> quotas = {
        {.limit = kPkts * kBytes + spare, .place = 0, .grant = 1},
        {.limit = kPkts * kBytes, .place = 1, .grant = 1, .next = 0, .kind = QuotaKind::kUp},
        {.limit = kPkts * kBytes, .place = 2, .grant = 1, .next = 0, .kind = QuotaKind::kDown}};
    std::array<uint64_t, 2> passed{};
    std::atomic<uint32_t> n_ready{0};
    const auto work = [&](uint32_t worker) {
      n_ready.fetch_add(1);
      while (n_ready.load() < 2) std::this_thread::yield();
      for (uint64_t i = 0; i < kPkts; ++i) {
        if (session::take_of_all(quotas, states, 1 + worker, kBytes, 1)) ++passed[worker];
      }
    };
    std::thread up([&] { work(0); });
    std::thread down([&] { work(1); });
    up.join();
    down.join();
    EXPECT_LE(passed[0] + passed[1], kPkts);
    // A packet that found too little may have met another whose bytes were then given back.
    EXPECT_GE(passed[0] + passed[1], kPkts - 1);
    EXPECT_EQ(states[0].taken.load(), (passed[0] + passed[1]) * kBytes);
    EXPECT_EQ(states[1].taken.load(), passed[0] * kBytes);
    EXPECT_EQ(states[2].taken.load(), passed[1] * kBytes);
  }
}

}  // namespace session_quota_test
}  // namespace batchplane
