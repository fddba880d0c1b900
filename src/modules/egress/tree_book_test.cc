// SPDX-License-Identifier: BSD-3-Clause
// tree_book_test.cc - a tree within an engine: rates at each level, live changes, files, and
// refused edits.
#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "modules/egress/egress_test_util.h"

namespace batchplane {
namespace tree_book_test {

using egress_test::released;
using egress_test::three_direct_senders;

// Flows 0 and 1 are below `home`, flow 2 beside it; one byte per nanosecond, packets of 1000 bytes.
Dict home_and_other(Dict more = {}) {
  Dict params{{"discipline", "tree"},
              {"rate_bps", 8'000'000'000},
              {"nodes", List{Dict{{"node", "home"}, {"ceil_bps", 4'000'000'000}}}},
              {"flows", List{Dict{{"flow", 0}, {"parent", "home"}, {"weight", 3}},
                             Dict{{"flow", 1}, {"parent", "home"}}, Dict{{"flow", 2}}}}};
  for (auto& [key, value] : more) params[key] = value;
  return params;
}

// Shares of the link in percent.
std::vector<double> shares(EngineRig& rig, uint64_t loops = 60'000) {
  const std::vector<uint64_t> before = released(rig);
  const uint64_t from_ns = rig.now_ns;
  rig.loop(loops, 1000);
  const std::vector<uint64_t> after = released(rig);
  std::vector<double> all;
  for (size_t f = 0; f < after.size(); ++f) {
    all.push_back(1e5 * static_cast<double>(after[f] - before[f]) /
                  static_cast<double>(rig.now_ns - from_ns));
  }
  return all;
}
void expect_shares(EngineRig& rig, const std::vector<double>& want) {
  const std::vector<double> got = shares(rig);
  ASSERT_GE(got.size(), want.size());
  for (size_t f = 0; f < want.size(); ++f) EXPECT_NEAR(got[f], want[f], 0.7) << "flow " << f;
}
Module& scheduler_of(EngineRig& rig) { return *rig.engine().graph().at("egress").module; }
Value bound_of(EngineRig& rig, uint32_t flow) {
  return scheduler_of(rig).command("bounds", Dict{{"flows", List{flow}}}).as_list().at(0);
}

class TempFile {
 public:
  explicit TempFile(const std::string& text)
      : path_((std::filesystem::temp_directory_path() / ("bp_tree_" + std::to_string(getpid())))
                  .string()) {
    std::ofstream(path_) << text;
  }
  ~TempFile() { std::filesystem::remove(path_); }
  TempFile(const TempFile&) = delete;
  TempFile& operator=(const TempFile&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

void expect_mistake(const std::string& said, const std::string& part) {
  EXPECT_NE(said.find(part), std::string::npos) << said;
}

TEST(EgressTree, SharesTheLinkByLevel) {
  EngineRig rig(three_direct_senders(home_and_other()), 65'536);
  rig.loop(10'000, 1000);
  expect_shares(rig, {37.5, 12.5, 50});
  rig.expect_pool_whole(rig.balanced());
}

TEST(EgressTree, ChangesWhileItIsFull) {
  EngineRig rig(three_direct_senders(home_and_other()), 65'536);
  rig.loop(10'000, 1000);
  Module& egress = scheduler_of(rig);
  egress.command("replace", Dict{{"node", "home"}, {"ceil_bps", 2'000'000'000}});
  egress.command("replace", Dict{{"flow", 1}, {"parent", "home"}, {"min_rate_bps", 1'600'000'000}});
  rig.loop(10'000, 1000);
  expect_shares(rig, {3.75, 21.25, 75});
  // Adds a level, and moves a flow below it.
  egress.command("add", Dict{{"nodes", List{Dict{{"node", "site"}, {"ceil_bps", 800'000'000}},
                                            Dict{{"node", "room"}, {"parent", "site"}}}}});
  egress.command("replace", Dict{{"flow", 2}, {"parent", "room"}});
  rig.loop(10'000, 1000);
  expect_shares(rig, {3.75, 21.25, 10});
  // Two nodes swap places: one moves below its former child.
  egress.command("replace",
                 Dict{{"nodes", List{Dict{{"node", "site"}, {"parent", "room"}},
                                     Dict{{"node", "room"}, {"ceil_bps", 1'600'000'000}}}}});
  rig.loop(10'000, 1000);
  expect_shares(rig, {3.75, 21.25, 20});
  egress.command("delete", Dict{{"node", "site"}});
  egress.command("add", Dict{{"node", "site"}, {"parent", "home"}});
  egress.command("delete", Dict{{"flow", 2}});
  rig.loop(10'000, 1000);
  egress.command("delete", Dict{{"node", "room"}});
  rig.loop(100, 1000);
  rig.expect_pool_whole(rig.balanced());
}

TEST(EgressTree, ChangesAllOfACommandOrNothing) {
  EngineRig rig(three_direct_senders(home_and_other()), 65'536);
  Module& egress = scheduler_of(rig);
  const auto refused = [&](const std::string& verb, Value args, const std::string& part) {
    const Dict before = egress.saved_params();
    expect_mistake(mistake_in([&] { egress.command(verb, args); }), part);
    EXPECT_EQ(Value(egress.saved_params()), Value(before)) << verb;
  };
  refused("add", List{Dict{{"node", "a"}}, Dict{{"node", "a"}}}, "'a' is there twice");
  refused("add", List{Dict{{"node", "a"}}, Dict{{"node", "home"}}}, "'home' exists");
  refused("add", List{Dict{{"node", "a"}, {"parent", "nowhere"}}}, "no node 'nowhere'");
  refused("add", List{Dict{{"node", "a"}, {"parent", "b"}}, Dict{{"node", "b"}, {"parent", "a"}}},
          "lies below itself");
  refused("add", List{Dict{{"node", "a"}}, Dict{{"flow", 9}, {"min_rate_bps", 9'000'000'000}}},
          "below the link add up to 9000000000");
  refused("add", Dict{{"flow", 9}, {"parent", "home"}, {"min_rate_bps", 4'000'000'001}},
          "below 'home' add up to 4000000001");
  refused("add", Dict{{"flow", 9}, {"ceil_bps", 20'000}, {"min_rate_bps", 30'000}},
          "ceiling is below");
  refused("add", Dict{{"flow", 9}, {"weight", 0}}, "from 1 to 10000");
  refused("add", Dict{{"flow", 2000}}, "from 0 to 1023");
  refused("add", Dict{{"flow", 9}, {"queue", "red"}}, "unknown queue 'red'");
  refused("add", Dict{{"node", "a"}, {"queue", "codel"}}, "holds no packets");
  refused("add", Dict{{"flow", 9}, {"node", "a"}}, "either a flow or a node");
  refused("add", Dict{{"flow", 9}, {"lmax_bytes", 5}}, "unknown key 'lmax_bytes'");
  refused("replace", Dict{{"node", "a"}}, "no node 'a'");
  refused("replace", Dict{{"node", "home"}, {"parent", "home"}}, "lies below itself");
  egress.command("replace", Dict{{"flow", 2}, {"min_rate_bps", 3'000'000'000}});
  refused("set", Dict{{"rate_bps", 2'999'999'999}}, "below the link add up to 3000000000");
  egress.command("replace", Dict{{"flow", 2}});
  refused("delete", Dict{{"node", "home"}}, "has something below it");
  refused("delete", List{Dict{{"flow", 1}}, Dict{{"flow", 0}}}, "flow 0 takes");
  // A refused edit leaves the tree as it was.
  egress.command("add", Dict{{"node", "a"}, {"parent", "home"}});
  rig.loop(10'000, 1000);
  expect_shares(rig, {37.5, 12.5, 50});
}

TEST(EgressTree, MayBeOverbookedWhenToldSo) {
  Dict params =
      home_and_other({{"nodes", List{Dict{{"node", "home"}, {"min_rate_bps", 9'000'000'000}}}}});
  expect_mistake(mistake_in([&] { EngineRig rig(three_direct_senders(params)); }),
                 "overbook: true");
  params["overbook"] = true;
  EngineRig rig(three_direct_senders(params), 65'536);
  rig.loop(1000, 1000);
  rig.expect_pool_whole(rig.balanced());
}

TEST(EgressTree, CarriesEverythingOverAnApply) {
  EngineRig rig(three_direct_senders(home_and_other()), 65'536);
  rig.loop(10'000, 1000);
  const Snapshot before = rig.balanced();
  // Another tree: a new node in between, one removed, the others in another order.
  const Dict other = home_and_other(
      {{"nodes", List{Dict{{"node", "attic"}, {"parent", "roof"}, {"ceil_bps", 800'000'000}},
                      Dict{{"node", "roof"}, {"parent", "home"}},
                      Dict{{"node", "home"}, {"ceil_bps", 2'000'000'000}}}},
       {"flows", List{Dict{{"flow", 0}, {"parent", "attic"}}, Dict{{"flow", 1}, {"parent", "home"}},
                      Dict{{"flow", 2}}}}});
  rig.engine().apply(rig.build(three_direct_senders(other)));
  EXPECT_EQ(rig.balanced().balance.held_pkts, before.balance.held_pkts);
  rig.loop(10'000, 1000);
  expect_shares(rig, {10, 15, 75});
  rig.engine().apply(rig.build(three_direct_senders(home_and_other())));
  rig.loop(10'000, 1000);
  expect_shares(rig, {37.5, 12.5, 50});
  // To another discipline and back.
  rig.engine().apply(rig.build(three_direct_senders({{"discipline", "drr"}})));
  rig.loop(100, 1000);
  rig.engine().apply(rig.build(three_direct_senders(home_and_other())));
  rig.loop(10'000, 1000);
  expect_shares(rig, {37.5, 12.5, 50});
  rig.expect_pool_whole(rig.balanced());
}

// Creates and deletes as many inner nodes as allowed, also across applies.
TEST(EgressTree, NumbersOfNodesAreUsedAgain) {
  const Dict params = home_and_other({{"max_nodes", 3}});
  EngineRig rig(three_direct_senders(params), 65'536);
  for (int k = 0; k < 20; ++k) {
    const std::string name = "n" + std::to_string(k);
    scheduler_of(rig).command(
        "add", List{Dict{{"node", name}}, Dict{{"node", name + "b"}, {"parent", name}}});
    expect_mistake(mistake_in([&] {
                     scheduler_of(rig).command("add", Dict{{"node", "more"}});
                   }),
                   "raise max_nodes");
    rig.loop(10, 1000);
    scheduler_of(rig).command("delete", List{Dict{{"node", name + "b"}}, Dict{{"node", name}}});
    rig.loop(k % 2 == 0 ? 10 : 1, 1000);
    if (k % 3 == 0) rig.engine().apply(rig.build(three_direct_senders(params)));
    rig.loop(10, 1000);
  }
  rig.expect_pool_whole(rig.balanced());
}

uint64_t shed_pkts(EngineRig& rig, const Snapshot& snapshot) {
  const auto& drops = snapshot.modules[rig.engine().graph().index.at("egress")].drops;
  for (size_t r = 0; r < drops.size(); ++r) {
    if (drop_reasons()[r].name == "egress_shed") return drops[r];
  }
  return 0;
}

// The sender does not slow down, so the drop rate rises; all packets are accounted for.
TEST(EgressTree, KeepsDelaysShortWhereToldSo) {
  for (const char* queue : {"codel", "fq_codel", "pie"}) {
    const Dict flow2{{"flow", 2}, {"queue", queue}, {"limit_bytes", 100'000}};
    EngineRig rig(three_direct_senders(home_and_other(
                      {{"codel_target_us", 50},
                       {"codel_interval_us", 500},
                       {"flows", List{Dict{{"flow", 0}, {"parent", "home"}, {"weight", 3}},
                                      Dict{{"flow", 1}, {"parent", "home"}}, flow2}}})),
                  65'536);
    rig.loop(10'000, 1000);
    expect_shares(rig, {37.5, 12.5, 50});
    EXPECT_GT(shed_pkts(rig, rig.balanced()), 100U) << queue;
    // To another kind of queue and back, with its packets.
    scheduler_of(rig).command("replace", Dict{{"flow", 2}});
    rig.loop(100, 1000);
    const uint64_t before = shed_pkts(rig, rig.balanced());
    rig.loop(1000, 1000);
    EXPECT_EQ(shed_pkts(rig, rig.balanced()), before);
    scheduler_of(rig).command("replace", flow2);
    rig.loop(10'000, 1000);
    EXPECT_GT(shed_pkts(rig, rig.balanced()), before);
    rig.engine().apply(rig.build(three_direct_senders({{"discipline", "drr"}})));
    rig.loop(10, 1000);
    rig.expect_pool_whole(rig.balanced());
  }
}

// The backlog of a flooding flow is limited to the bytes that its rate carries in limit_us.
TEST(EgressTree, LimitsQueuesInTime) {
  const List flows{Dict{{"flow", 0}},
                   Dict{{"flow", 1}, {"ceil_bps", 800'000'000}, {"limit_us", 500}},
                   Dict{{"flow", 2}, {"min_rate_bps", 400'000'000}, {"limit_us", 2000}}};
  EngineRig rig(
      three_direct_senders({{"discipline", "tree"}, {"rate_bps", 8'000'000'000}, {"flows", flows}}),
      65'536);
  const List rows = scheduler_of(rig).show()["flows"].as_list();
  EXPECT_EQ(rows[1]["limit_bytes"].as_int(), 50'000);
  EXPECT_EQ(rows[2]["limit_bytes"].as_int(), 100'000);
  rig.loop(20'000, 1000);
  const Value told = scheduler_of(rig).command("status", Dict{});
  const Value& paced = told["rows"].as_list()[2];
  EXPECT_GT(paced["backlog_bytes"].as_int(), 30'000);
  EXPECT_LE(paced["backlog_bytes"].as_int(), 50'000);
  EXPECT_LE(paced["sojourn_p99_ns"].as_int(), 524'288);
  EXPECT_LE(told["rows"].as_list()[3]["backlog_bytes"].as_int(), 100'000);
  expect_mistake(mistake_in([&] {
                   scheduler_of(rig).command("add", Dict{{"flow", 5}, {"limit_us", 500}});
                 }),
                 "limit_us is for flows with a rate");
}

TEST(EgressTree, ReadsAFile) {
  const TempFile file(
      "# the same tree\n"
      "flow,parent,node,weight,limit_us,ceil_bps\n"
      "0,home,,3,,\n"
      "1, home ,,1,1000,4000000000\n"
      ",,home,,,4000000000\r\n"
      "\n"
      "2,,,,,\n");
  const Dict params{
      {"discipline", "tree"}, {"rate_bps", 8'000'000'000}, {"tree_file", file.path()}};
  EngineRig rig(three_direct_senders(params), 65'536);
  rig.loop(10'000, 1000);
  expect_shares(rig, {37.5, 12.5, 50});
  EXPECT_EQ(scheduler_of(rig).show()["flows"].as_list()[1]["limit_bytes"].as_int(), 500'000);
  // Saved by file name as long as nothing has been changed.
  EXPECT_EQ(scheduler_of(rig).saved_params().at("tree_file").as_string(), file.path());
  scheduler_of(rig).command("replace", Dict{{"flow", 2}, {"weight", 2}});
  const Dict saved = scheduler_of(rig).saved_params();
  EXPECT_EQ(saved.at("tree_file").as_string(), "");
  EXPECT_EQ(saved.at("flows").as_list().size(), 3U);
  EXPECT_EQ(saved.at("nodes").as_list().size(), 1U);
}

TEST(EgressTree, SaysWhereAFileIsWrong) {
  const auto mistake = [](const std::string& text) {
    const TempFile file(text);
    return mistake_in([&] {
      const Dict params{{"discipline", "tree"}, {"tree_file", file.path()}};
      EngineRig rig(three_direct_senders(params));
    });
  };
  const std::string head = "flow,node,parent,weight,ceil_bps\n";
  expect_mistake(mistake(head + "1,,,1,\n2,,,0,\n"), ":3: '0' under weight");
  expect_mistake(mistake(head + "1,,,1\n"), ":2: 4 cells under 5 columns");
  expect_mistake(mistake(head + "1,,nowhere,1,\n"), ":2: there is no node 'nowhere'");
  expect_mistake(mistake(head + ",a,b,1,\n,b,a,1,\n"), ":2: node 'a' lies below itself");
  expect_mistake(mistake(head + ",a,,1,\n,a,,1,\n"), ":3: node 'a' is there twice");
  expect_mistake(mistake(head + "1,,,1,\n1,,,1,\n"), ":3: flow 1 is there twice");
  expect_mistake(mistake(head + ",,,1,\n"), ":2: an entry is either");
  expect_mistake(mistake(head + "1,,,1,100\n"), ":2: a rate must be");
  expect_mistake(mistake(head + "1,,,1x,\n"), "'1x' under weight");
  expect_mistake(mistake("flow,nod\n"), ":1: unknown column 'nod'");
  expect_mistake(mistake("# nothing\n"), "no columns");
  expect_mistake(mistake_in([] {
                   EngineRig rig(three_direct_senders(
                       {{"discipline", "tree"}, {"tree_file", "/nowhere.csv"}}));
                 }),
                 "cannot read '/nowhere.csv'");
  expect_mistake(mistake_in([] {
                   EngineRig rig(three_direct_senders({{"nodes", List{Dict{{"node", "a"}}}}}));
                 }),
                 "only a tree has nodes");
}

// Bounds follow changes of the tree, and of the link.
TEST(TreeBook, TellsWhatAFlowWaitsAtMost) {
  EngineRig rig(three_direct_senders(home_and_other({{"lmax_bytes", 1000}})), 65'536);
  Module& scheduler = scheduler_of(rig);
  EXPECT_TRUE(bound_of(rig, 2)["bound_ns"].is_null());
  EXPECT_NE(bound_of(rig, 2)["why_not"].as_string(), "");
  scheduler.command("replace", Dict{{"flow", 2}, {"min_rate_bps", 1'000'000'000}});
  const Value bound = bound_of(rig, 2);
  EXPECT_EQ(bound["why_not"].as_string(), "");
  EXPECT_DOUBLE_EQ(bound["share_bps"].as_double(), 1e9);
  // A step of its own longest packet, and one of others on the link.
  EXPECT_NEAR(bound["bound_ns"].as_double(), 8'000 + 1'000, 1);
  scheduler.command("set", Dict{{"rate_bps", 4'000'000'000}});
  EXPECT_NEAR(bound_of(rig, 2)["bound_ns"].as_double(), 8'000 + 2'000, 1);
  scheduler.command("replace", Dict{{"node", "home"}, {"min_rate_bps", 1'000'000'000}});
  EXPECT_GT(bound_of(rig, 2)["bound_ns"].as_double(), 8'000 + 4'000) << "and home goes first";
}

TEST(TreeBook, CatchUpIsAParameter) {
  const auto bound_ns = [](int64_t catch_up_us) {
    EngineRig rig(
        three_direct_senders(
            {{"discipline", "tree"},
             {"rate_bps", 8'000'000'000},
             {"catch_up_us", catch_up_us},
             {"flows", List{Dict{{"flow", 0}, {"min_rate_bps", 8'000'000}},
                            Dict{{"flow", 1}, {"priority", 1}, {"min_rate_bps", 1'000'000'000}}}}}),
        65'536);
    return bound_of(rig, 0)["bound_ns"].as_double();
  };
  EXPECT_LT(bound_ns(200), bound_ns(100'000) / 4);
}

}  // namespace tree_book_test
}  // namespace batchplane
