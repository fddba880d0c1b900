// SPDX-License-Identifier: BSD-3-Clause
// egress_status_test.cc - the status of flows and nodes, compared with the packets that went in and
// out.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/percentile.h"
#include "base/rng.h"
#include "modules/egress/egress_count.h"
#include "modules/egress/egress_test_util.h"
#include "modules/egress/recent_waits.h"

namespace batchplane {
namespace egress_status_test {

using egress_test::three_direct_senders;

// Flow 0 below the link; 1 and 2 below `alice`, which has 100 Mbit/s, below `tower`.
Dict tree_params() {
  List nodes{Dict{{"node", "tower"}},
             Dict{{"node", "alice"}, {"parent", "tower"}, {"ceil_bps", 100'000'000}}};
  List flows{Dict{{"flow", 0}},
             Dict{{"flow", 1}, {"parent", "alice"}, {"weight", 3}, {"min_rate_bps", 20'000'000}},
             Dict{{"flow", 2}, {"parent", "alice"}}};
  return {{"discipline", "tree"}, {"nodes", nodes},     {"flows", flows},
          {"limit_pkts", 100},    {"lmax_bytes", 1100}, {"rate_bps", 1'000'000'000}};
}

Value status(EngineRig& rig, const Dict& args = {}) {
  return rig.engine().graph().at("egress").module->command("status", args);
}

std::string name_of(const Value& row) {
  if (row.has("flow")) return std::to_string(row["flow"].as_int());
  return row.has("node") ? row["node"].as_string() : "link";
}

std::vector<std::string> names(const Value& told) {
  std::vector<std::string> all;
  for (const Value& row : told["rows"].as_list()) all.push_back(name_of(row));
  return all;
}

using Names = std::vector<std::string>;

TEST(EgressCounts, KeepsFlowsAndReasonsApart) {
  EgressCounts counts(3);
  const std::array reasons{egress::Enqueued::kFull, egress::Enqueued::kTooLong,
                           egress::Enqueued::kNoFlow, egress::Enqueued::kShed};
  for (uint32_t k = 0; k < reasons.size(); ++k) {
    for (uint32_t n = 0; n <= k; ++n) counts.note_refused(1, reasons[k]);
  }
  counts.note_early(1);  // the other way to count a full queue
  counts.note_early(2);
  const EgressCounts::Dropped dropped = counts.dropped_pkts(1);
  for (uint32_t k = 0; k < reasons.size(); ++k) {
    EXPECT_EQ(dropped[static_cast<size_t>(reasons[k])], k == 0 ? 2 : k + 1U);
  }
  EXPECT_EQ(counts.refused_pkts(0), 0U);
  EXPECT_EQ(counts.refused_pkts(1), 1 + 2 + 3 + 4 + 1U);
  EXPECT_EQ(counts.refused_pkts(2), 1U);
}

TEST(EgressStatus, TellsASmallTreeWhole) {
  EngineRig rig(three_direct_senders(tree_params()), 65'536);
  rig.loop(20'000, 1000);
  const Value told = status(rig);
  EXPECT_EQ(names(told), (Names{"link", "0", "tower", "alice", "1", "2"}));
  EXPECT_TRUE(told["is_whole"].as_bool());
  EXPECT_EQ(names(status(rig, {{"node", "alice"}})), (Names{"alice", "1", "2"}));
  const List& rows = told["rows"].as_list();
  EXPECT_GT(rows[4]["bound_ns"].as_int(), 0) << "it has a minimum";
  EXPECT_FALSE(rows[5].has("bound_ns"));
  const Value& alice = rows[3];
  EXPECT_EQ(alice["level"].as_int(), 2);
  EXPECT_EQ(alice["parent"].as_string(), "tower");
  EXPECT_EQ(alice["ceil_bps"].as_int(), 100'000'000);
  EXPECT_EQ(rows[4]["min_rate_bps"].as_int(), 20'000'000);
  EXPECT_DOUBLE_EQ(rows[4]["share"].as_double(), 0.75);
  EXPECT_DOUBLE_EQ(rows[1]["share"].as_double(), 0.5);
}

// A node shows the sum of its flows, and the total agrees with the engine's counts.
TEST(EgressStatus, AddsUpWhatFlowsHave) {
  EngineRig rig(three_direct_senders(tree_params()), 65'536);
  rig.loop(50'000, 1000);
  const Value told = status(rig);
  const List& rows = told["rows"].as_list();
  for (const char* key : {"pkts", "bytes", "backlog_pkts", "backlog_bytes"}) {
    EXPECT_GT(rows[5][key].as_int(), 0) << key;
    EXPECT_EQ(rows[3][key].as_int(), rows[4][key].as_int() + rows[5][key].as_int()) << key;
    EXPECT_EQ(rows[0][key].as_int(), rows[1][key].as_int() + rows[2][key].as_int()) << key;
  }
  const Snapshot snapshot = rig.balanced();
  EXPECT_EQ(rows[0]["pkts"].as_int(), static_cast<int64_t>(snapshot.balance.sent_pkts));
  EXPECT_EQ(rows[0]["drops"]["egress_full"].as_int(),
            static_cast<int64_t>(snapshot.balance.dropped_pkts));
  // Queues hold 100 packets of maximum length; senders learn of free room a few packets at a time.
  EXPECT_GT(rows[5]["backlog_bytes"].as_int(), 80'000);
  EXPECT_LE(rows[5]["backlog_bytes"].as_int(), 110'000);
  EXPECT_EQ(rows[5]["backlog_bytes"].as_int(), rows[5]["backlog_pkts"].as_int() * 1000);
  // Draining this backlog at 25 Mbit/s takes 25 to 35 ms.
  EXPECT_GE(rows[5]["sojourn_p50_ns"].as_int(), 25'000'000);
  EXPECT_LE(rows[5]["sojourn_p50_ns"].as_int(), 70'000'000);
  EXPECT_LT(rows[1]["sojourn_p99_ns"].as_int(), rows[5]["sojourn_p50_ns"].as_int());
}

// The backlog of a starved flow is reported although none of its packets are sent.
TEST(EgressStatus, TellsABacklogOfWhichNothingLeaves) {
  Dict params = tree_params();
  List flows = params["flows"].as_list();
  flows[0] = Dict{{"flow", 0}, {"priority", 7}};
  params["flows"] = flows;
  params["rate_bps"] = 50'000'000;
  flows[1] = Dict{{"flow", 1}, {"parent", "alice"}};
  params["flows"] = flows;
  EngineRig rig(three_direct_senders(params), 65'536);
  rig.loop(20'000, 1000);
  const Value told = status(rig, {{"node", "alice"}});
  const Value& starved = told["rows"].as_list()[2];
  EXPECT_LT(starved["pkts"].as_int(), 5);
  EXPECT_GE(starved["backlog_pkts"].as_int(), 100);
}

TEST(EgressStatus, TellsTheWorstOfALargeTree) {
  EngineRig rig(three_direct_senders(tree_params()), 65'536);
  rig.loop(50'000, 1000);
  const Value told = status(rig, {{"limit", 2}, {"by", "sojourn"}});
  EXPECT_FALSE(told["is_whole"].as_bool());
  EXPECT_EQ(told["n_flows"].as_int(), 3);
  EXPECT_EQ(told["n_nodes"].as_int(), 2);
  EXPECT_EQ(names(told), (Names{"link", "tower", "2", "1"}));
  // Asking for the same rows by number keeps them even if the ranking has changed.
  List numbers;
  for (const Value& row : told["rows"].as_list()) numbers.push_back(row["number"]);
  EXPECT_EQ(names(status(rig, {{"numbers", numbers}})), names(told));
}

TEST(EgressStatus, TellsFlowsSideBySide) {
  List flows{Dict{{"flow", 0}, {"weight", 8}}, Dict{{"flow", 1}}, Dict{{"flow", 2}}};
  for (const char* discipline : {"fifo", "prio", "drr", "wf2q_plus", "qfq", "qfq_plus"}) {
    EngineRig rig(three_direct_senders(
                      {{"discipline", discipline}, {"flows", flows}, {"rate_bps", 1'000'000'000}}),
                  65'536);
    rig.loop(20'000, 1000);
    const Value told = status(rig);
    EXPECT_EQ(names(told), (Names{"link", "0", "1", "2"})) << discipline;
    EXPECT_DOUBLE_EQ(told["rows"].as_list()[1]["share"].as_double(), 0.8);
    EXPECT_EQ(told["rows"].as_list()[2].has("bound_ns"), discipline != std::string("prio"));
    EXPECT_FALSE(told["rows"].as_list()[1].has("backlog_bytes"));
    EXPECT_GT(told["rows"].as_list()[0]["backlog_pkts"].as_int(), 0) << discipline;
  }
}

TEST(EgressStatus, RefusesWhatIsNotThere) {
  EngineRig rig(three_direct_senders(tree_params()), 65'536);
  EXPECT_THROW(status(rig, {{"node", "bob"}}), ConfigError);
  EXPECT_THROW(status(rig, {{"by", "name"}}), ConfigError);
  EXPECT_THROW(status(rig, {{"limit", 0}}), ConfigError);
  EXPECT_THROW(status(rig, {{"what", 1}}), ConfigError);
}

// Percentiles are upper ends of histogram buckets: above the exact value, and at most twice as
// large.
TEST(RecentWaits, BracketsPercentiles) {
  Rng rng(7);
  RecentWaits waits;
  std::vector<uint64_t> all;
  for (uint32_t k = 0; k < 200; ++k) {
    all.push_back(1024ULL + rng.below(1U << (10 + rng.below(15))));
    waits.note(all.back());
  }
  std::ranges::sort(all);
  RecentWaits::Sums sums{};
  waits.add_to(sums);
  for (const double share : {0.5, 0.9, 0.99}) {
    const uint64_t exact = all[nearest_rank(all.size(), share) - 1];
    const uint64_t told = RecentWaits::quantile_ns(sums, share);
    EXPECT_GT(told, exact) << share;
    EXPECT_LE(told, 2 * exact) << share;
  }
  EXPECT_EQ(RecentWaits::quantile_ns(RecentWaits::Sums{}, 0.5), 0U);
}

TEST(RecentWaits, ForgetsWhatWasLongAgo) {
  RecentWaits waits;
  for (uint32_t k = 0; k < 100'000; ++k) waits.note(50'000'000);
  for (uint32_t k = 0; k < 3000; ++k) waits.note(10'000);
  RecentWaits::Sums sums{};
  waits.add_to(sums);
  EXPECT_EQ(RecentWaits::quantile_ns(sums, 0.99), 16'384U);
  waits.note(~0ULL);
}

}  // namespace egress_status_test
}  // namespace batchplane
