// SPDX-License-Identifier: BSD-3-Clause
// session_shape_live_test.cc - shaped sessions are added, changed and removed under traffic, wholly
// or not at all, and survive an apply.
#include <gtest/gtest.h>

#include "modules/session/session_shape_test_util.h"

namespace batchplane {
namespace session_shape_live_test {

constexpr int64_t kMbr = 80 * kMbps;

Dict one_leaf(int64_t seid = 1, const char* ue = "10.45.0.2", int64_t mbr_bps = kMbr) {
  return shaped_session({shaped_qer(1, mbr_bps)}, {1}, {}, seid, ue);
}
Dict two_leaves(int64_t seid, const char* ue, int64_t ambr_bps) {
  return shaped_session({shaped_qer(1, ambr_bps)}, {1}, {1}, seid, ue);
}
ShapeWorld flooding(const List& sessions) {
  return {.source = {{"flows", List{to_user("10.45.0.2", 53), to_user("10.45.0.3", 53)}}},
          .users = {{"sessions", sessions}}};
}
size_t n_nodes(ShapeRig& rig) {
  return static_cast<size_t>(
      rig.module("link").command("status", Dict{{"limit", 1000}})["rows"].as_list().size());
}
uint64_t n_sessions(ShapeRig& rig) {
  return static_cast<uint64_t>(rig.module("users").show()["sessions"].as_int());
}

TEST(SessionShapeLive, ComesChangesAndGoesUnderTraffic) {
  ShapeRig rig(flooding({one_leaf()}));
  for (int64_t round = 0; round < 20; ++round) {
    rig.module("users").command("add", two_leaves(2, "10.45.0.3", kMbr));
    rig.rig.loop(300, 1000);
    rig.rig.balanced();
    rig.module("users").command("add", one_leaf(2, "10.45.0.3", 2 * kMbr));
    rig.rig.loop(300, 1000);
    rig.module("users").command("delete", Dict{{"seid", 2}});
    rig.rig.loop(100, 1000);
    rig.rig.balanced();
  }
  std::map<int64_t, double> rates = rig.rates_mbps();
  EXPECT_NEAR(rates[nth_flow(0)], 80, 0.8);
  rig.rig.loop(200'000, 1000);
  EXPECT_EQ(rig.flows().size(), 2U);  // flow 0 and one for the user
  rig.rig.expect_pool_whole(rig.rig.balanced());
}

TEST(SessionShapeLive, ARefusedChangeLeavesEverythingAsItWas) {
  ShapeWorld world = flooding({one_leaf()});
  world.link = {{"max_flows", nth_flow(5)}, {"max_nodes", 1}};
  ShapeRig rig(world);
  const size_t before = n_nodes(rig);
  const Value rules = rig.module("users").show();
  const auto refused = [&](const Value& items, const std::string& part) {
    const std::string said = refusal_of([&] {
      rig.module("users").command("add", Dict{{"items", items}});
    });
    EXPECT_NE(said.find(part), std::string::npos) << said;
    EXPECT_EQ(n_nodes(rig), before);
    EXPECT_EQ(rig.module("users").show(), rules);
  };
  // There is no room for the second of two sessions; the second change conflicts with the first.
  refused(List{two_leaves(2, "10.45.0.3", kMbr), two_leaves(3, "10.45.0.4", kMbr)}, "session 3");
  refused(List{one_leaf(1, "10.45.0.2", 3 * kMbr), two_leaves(3, "10.45.0.4", 1000)},
          "a rate must be");
  rig.rig.loop(10'000, 1000);
  EXPECT_NEAR(rig.rates_mbps()[nth_flow(0)], 80, 0.8);
  rig.module("users").command("add", two_leaves(2, "10.45.0.3", kMbr));
  EXPECT_EQ(n_sessions(rig), 2U);
  rig.rig.balanced();
}

// Packets of a removed session wait in its leaf: a new session gets another leaf until they have
// left.
TEST(SessionShapeLive, ANumberIsNotUsedAgainWhilePacketsOfItsLastUserWait) {
  ShapeRig rig(flooding({one_leaf()}));
  rig.rig.loop(3000, 1000);
  rig.module("in").command("off", Dict{});
  rig.rig.loop(10, 1000);
  ASSERT_GT(rig.flows().at(nth_flow(0))["backlog_pkts"].as_int(), 300);
  rig.module("users").command("delete", Dict{{"seid", 1}});
  rig.module("users").command("add", one_leaf(2, "10.45.0.3"));
  rig.rig.loop(10, 1000);
  // Only one of the two removed rules had a leaf.
  EXPECT_EQ(rig.flows().count(nth_flow(0)), 0U);
  EXPECT_EQ(rig.flows().count(nth_flow(1)), 1U);
  rig.rig.loop(200'000, 1000);
  EXPECT_EQ(rig.rig.balanced().balance.held_pkts, 0U);
  rig.module("users").command("delete", Dict{{"seid", 2}});
  rig.rig.loop(10, 1000);
  rig.module("users").command("add", one_leaf(3, "10.45.0.4"));
  rig.rig.loop(10, 1000);
  EXPECT_EQ(rig.flows().count(nth_flow(0)), 1U);
}

// Marks of another generation: packets still on their way when the slot was given to another
// session.
TEST(SessionShapeLive, APacketOfAnotherGenerationIsEverybodys) {
  PipelineSpec spec = flooding({one_leaf()}).spec();
  const uint32_t slot = session::slot_at(0, false);
  for (const uint32_t generation : {1U, 2U, 255U}) {
    const std::string which = std::to_string(generation);
    spec.modules.push_back({"in" + which, "source", {{"limit_pkts", 10 * generation}}});
    spec.modules.push_back(
        {"mark" + which, "set_meta", {{"mark", generation << session::kSlotBits | slot}}});
    spec.edges.push_back({"in" + which, "0", "mark" + which});
    spec.edges.push_back({"mark" + which, "0", "link"});
  }
  EngineRig rig(spec, 65'536);
  rig.engine().graph().at("in").module->command("off", Dict{});
  rig.loop(100'000, 1000);
  const Value shown = rig.engine().graph().at("link").module->show();
  EXPECT_EQ(shown["flows"].as_list().at(0)["released_pkts"].as_int(), 10 * (2 + 255));
  EXPECT_EQ(shown["flows"].as_list().at(1)["released_pkts"].as_int(), 10);
  rig.balanced();
}

TEST(SessionShapeLive, TheSchedulersOwnCommandsLeaveSessionsAlone) {
  ShapeRig rig(flooding({two_leaves(1, "10.45.0.2", kMbr)}));
  const auto refused = [&](const char* verb, const Dict& item) {
    return refusal_of([&] { rig.module("link").command(verb, item); });
  };
  const std::string whose = "is another module's";
  EXPECT_NE(refused("delete", {{"flow", nth_flow(0)}}).find(whose), std::string::npos);
  EXPECT_NE(refused("replace", {{"flow", nth_flow(0)}}).find(whose), std::string::npos);
  EXPECT_NE(refused("add", {{"flow", nth_flow(0)}}).find(whose), std::string::npos);
  EXPECT_NE(refused("add", {{"flow", 77}, {"parent", "session.1.qer.1.down"}}).find(whose),
            std::string::npos);
  rig.module("link").command("add", Dict{{"flow", 77}});
  // Saving the scheduler writes only its own nodes; the sessions' nodes belong to the other module.
  const Dict saved = rig.module("link").saved_params();
  EXPECT_EQ(saved.at("flows").as_list().size(), 2U);
  EXPECT_TRUE(saved.at("nodes").as_list().empty());
  const Value session = rig.module("users").saved_params().at("sessions").as_list().at(0);
  EXPECT_EQ(session["qers"].as_list().at(0)["shape"].as_string(), "down");
}

TEST(SessionShapeLive, AnApplyCarriesLeavesAndWhatWaitsThere) {
  ShapeRig rig(flooding({one_leaf()}));
  rig.module("users").command("add", two_leaves(2, "10.45.0.3", 2 * kMbr));
  rig.rig.loop(20'000, 1000);
  const Value held = rig.flows().at(nth_flow(0))["backlog_pkts"];
  const Value released = rig.flows().at(nth_flow(0))["released_pkts"];
  ShapeWorld next = flooding({one_leaf(1, "10.45.0.2", 2 * kMbr)});
  next.link = {{"nodes", List{Dict{{"node", "beside"}}}}};
  rig.apply(next);
  EXPECT_EQ(rig.flows().at(nth_flow(0))["backlog_pkts"], held);
  EXPECT_EQ(rig.flows().at(nth_flow(0))["released_pkts"], released);
  rig.rig.loop(10'000, 1000);
  std::map<int64_t, double> rates = rig.rates_mbps();
  EXPECT_NEAR(rates[nth_flow(0)], 160, 1.6);
  EXPECT_NEAR(rates[nth_flow(2)], 160, 1.6);
  // Applied to a scheduler with less room.
  next.link = {{"max_flows", 128}, {"total_limit_pkts", 100}};
  rig.apply(next);
  rig.rig.loop(10'000, 1000);
  EXPECT_NEAR(rig.rates_mbps()[nth_flow(0)], 160, 1.6);
  rig.rig.expect_pool_whole(rig.rig.balanced());
}

// Three users send at ten times their rates and fill the scheduler's queues; the fourth stays below
// its rate.
TEST(SessionShapeLive, AUserWithinItsRateLosesNothingToOthersThatFlood) {
  List sessions;
  List flows;
  for (int64_t user = 0; user < 4; ++user) {
    const std::string ue = "10.45.0." + std::to_string(2 + user);
    sessions.push_back(one_leaf(1 + user, ue.c_str(), user == 3 ? 160 * kMbps : 8 * kMbps));
    flows.push_back(to_user(ue.c_str(), 53));
  }
  ShapeWorld world = flooding(sessions);
  world.source = {{"flows", flows}, {"rate_pps", 40'000}};
  world.link = {{"total_limit_pkts", 256}};
  ShapeRig rig(world);
  // Each has two rules, and a leaf for the first.
  const auto flow_of = [](uint32_t user) { return nth_flow(2 * user); };
  rig.rig.loop(50'000, 1000);
  std::map<int64_t, double> rates = rig.rates_mbps();
  for (uint32_t user = 0; user < 3; ++user) EXPECT_NEAR(rates[flow_of(user)], 8, 0.2) << user;
  EXPECT_NEAR(rates[flow_of(3)], 80, 0.8);
  EXPECT_EQ(rig.flows().at(flow_of(3))["refused_pkts"].as_int(), 0);
  EXPECT_GT(rig.flows().at(flow_of(0))["refused_pkts"].as_int(), 500);
  rig.rig.expect_pool_whole(rig.rig.balanced());
}

TEST(SessionShapeLive, AnApplyThatCannotShapeWhatIsThereIsRefused) {
  ShapeRig rig(flooding({}));
  rig.module("users").command("add", one_leaf());
  ShapeWorld next = flooding({});
  next.shape = {};
  EXPECT_THROW(rig.apply(next), ConfigErrors);
  next = flooding({});
  next.link = {{"max_flows", 1}};
  EXPECT_THROW(rig.apply(next), ConfigErrors);
  rig.rig.loop(10'000, 1000);
  EXPECT_NEAR(rig.rates_mbps()[nth_flow(0)], 80, 0.8);
}

}  // namespace session_shape_live_test
}  // namespace batchplane
