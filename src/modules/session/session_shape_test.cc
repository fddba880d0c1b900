// SPDX-License-Identifier: BSD-3-Clause
// session_shape_test.cc - sessions whose rates a scheduler's tree enforces: MBR, GBR, AMBR, bursts,
// and errors.
#include <gtest/gtest.h>

#include "modules/session/session_shape_test_util.h"

namespace batchplane {
namespace session_shape_test {

// Both bearers of the user, flooded.
const Dict kBothBearers{{"flows", List{to_user("10.45.0.2", 53), to_user("10.45.0.2", 5000)}}};
constexpr int64_t kPlain = nth_flow(0);
constexpr int64_t kSpecial = nth_flow(1);

Dict users_of(const List& sessions) { return {{"sessions", sessions}}; }
ShapeWorld world_of(const Dict& session) {
  return {.source = kBothBearers, .users = users_of({session})};
}

TEST(SessionShape, ABearersRateIsTheCeilingOfItsLeaf) {
  ShapeRig rig(world_of(shaped_session({shaped_qer(1, 800 * kMbps)}, {}, {1})));
  rig.rig.loop(10'000, 1000);
  std::map<int64_t, double> rates = rig.rates_mbps();
  EXPECT_NEAR(rates[kSpecial], 800, 8);
  // The other bearer has no QER and no leaf.
  EXPECT_EQ(rates.count(kPlain), 0U);
  EXPECT_NEAR(rates[0], 7200, 72);
  rig.rig.expect_pool_whole(rig.rig.balanced());
}

// A worker on a shared core: it polls for 0.2 ms, then pauses for 8. The rates are those of the
// gateway demonstration: the bearer's is below its session's.
TEST(SessionShape, RatesAreKeptWhileTheWorkerPausesForMilliseconds) {
  const List qers{shaped_qer(1, 5 * kMbps), shaped_qer(2, 5 * kMbps), shaped_qer(9, 8 * kMbps)};
  ShapeRig rig(world_of(shaped_session(qers, {1, 9}, {2, 9})));
  const auto sent_bits = [&] {
    double bits = 0;
    for (const auto& [flow, shown] : rig.flows()) {
      if (flow != 0) bits += 8.0 * static_cast<double>(shown["released_bytes"].as_int());
    }
    return bits;
  };
  const auto pass_100_ms = [&] {
    const uint64_t end_ns = rig.rig.now_ns + 100'000'000;
    while (rig.rig.now_ns < end_ns) {
      rig.rig.loop(200, 1000);
      rig.rig.loop(1, 8'000'000);
    }
  };
  pass_100_ms();
  for (int window = 0; window < 5; ++window) {
    const double bits = sent_bits();
    const uint64_t begin_ns = rig.rig.now_ns;
    pass_100_ms();
    const double may = 8.0 * kMbps * static_cast<double>(rig.rig.now_ns - begin_ns) / 1e9;
    EXPECT_GT(sent_bits() - bits, 0.98 * may - 8'000);
    EXPECT_LE(sent_bits() - bits, may + 8 * (10'000 + 1'000));
  }
}

TEST(SessionShape, BearersShareTheirSessionsRate) {
  const List qers{shaped_qer(1, 200 * kMbps), shaped_qer(9, 800 * kMbps)};
  ShapeRig rig(world_of(shaped_session(qers, {1, 9}, {9})));
  rig.rig.loop(10'000, 1000);
  std::map<int64_t, double> rates = rig.rates_mbps();
  EXPECT_NEAR(rates[kPlain], 200, 2);
  EXPECT_NEAR(rates[kSpecial], 600, 6);
  // One user gets what the other leaves unused.
  rig.module("users").command(
      "modify", Dict{{"seid", 1}, {"qers", List{Dict{{"id", 1}, {"mbr_down_bps", 50 * kMbps}}}}});
  rig.rig.loop(10'000, 1000);
  rates = rig.rates_mbps();
  EXPECT_NEAR(rates[kPlain], 50, 1);
  EXPECT_NEAR(rates[kSpecial], 750, 7.5);
  rig.rig.balanced();
}

TEST(SessionShape, AGuaranteedRateIsKeptWhileOthersFlood) {
  const Dict gbr{{"gbr_down_bps", 300 * kMbps}};
  ShapeWorld world =
      world_of(shaped_session({shaped_qer(1, 400 * kMbps, gbr), shaped_qer(2, 0)}, {2}, {1}));
  world.link = {{"rate_bps", 310 * kMbps}};
  ShapeRig rig(world);
  rig.rig.loop(10'000, 1000);
  std::map<int64_t, double> rates = rig.rates_mbps();
  EXPECT_NEAR(rates[kSpecial], 305, 5);
  EXPECT_NEAR(rates[kSpecial] + rates[kPlain], 310, 3.1);
}

TEST(SessionShape, PriorityDecidesAmongABearersSiblings) {
  const List qers{shaped_qer(1, 300 * kMbps, {{"priority", 7}}), shaped_qer(9, 400 * kMbps)};
  ShapeRig rig(world_of(shaped_session(qers, {9}, {1, 9})));
  rig.rig.loop(10'000, 1000);
  std::map<int64_t, double> rates = rig.rates_mbps();
  EXPECT_NEAR(rates[kSpecial], 300, 3);
  EXPECT_NEAR(rates[kPlain], 100, 1);
}

// 200 packets at once, as a TCP sender may send them, at a rate of one packet in 0.1 ms.
TEST(SessionShape, ABurstIsDelayedWhereAPolicerDropsIt) {
  for (const bool is_shaped : {false, true}) {
    Dict qer{{"id", 1}, {"mbr_down_bps", 80 * kMbps}, {"burst_ns", 2'000'000}};
    if (is_shaped) qer["shape"] = "down";
    ShapeWorld world = world_of(shaped_session({qer}, {}, {1}));
    world.source = {{"flows", List{to_user("10.45.0.2", 5000)}}, {"limit_pkts", 200}};
    ShapeRig rig(world);
    rig.rig.loop(15'000, 1000);
    const Snapshot early = rig.rig.balanced();
    if (is_shaped) {
      EXPECT_NEAR(static_cast<double>(early.balance.sent_pkts), 20 + 150, 3);
    }
    rig.rig.loop(10'000, 1000);
    const Snapshot snapshot = rig.rig.balanced();
    EXPECT_EQ(snapshot.balance.held_pkts, 0U);
    if (is_shaped) {
      EXPECT_EQ(snapshot.balance.dropped_pkts, 0U);
    } else {
      EXPECT_GT(snapshot.balance.dropped_pkts, 150U);
    }
  }
}

TEST(SessionShape, UplinkIsShapedToo) {
  Dict session = test_session();
  List pdrs = session["pdrs"].as_list();
  Dict up = pdrs[0].as_dict();
  up["qers"] = List{1};
  pdrs[0] = up;
  session["pdrs"] = pdrs;
  session["qers"] = List{Dict{{"id", 1}, {"shape", "up"}, {"mbr_up_bps", 800 * kMbps}}};
  ShapeWorld world = world_of(session);
  world.shape = {{"up", "link"}};
  world.source = {{"flows", List{Dict{{"tunnel", "gtpu"},
                                      {"tunnel_dst", "192.0.2.1"},
                                      {"tunnel_id", 100},
                                      {"src_ip", "10.45.0.2"}}}}};
  PipelineSpec spec = world.spec();
  spec.modules[1].kind = "gtpu_decap";
  EngineRig rig(spec, 65'536);
  const auto released_bytes = [&] {
    const Value shown = rig.engine().graph().at("link").module->show();
    return static_cast<double>(shown["flows"].as_list().at(1)["released_bytes"].as_int());
  };
  rig.loop(10'000, 1000);
  const double before = released_bytes();
  rig.loop(50'000, 1000);
  EXPECT_NEAR((released_bytes() - before) * 8 / 50'000, 800, 8);
  rig.balanced();
}

// Usage is counted behind the scheduler, so packets that it drops are not charged.
TEST(SessionShape, UsageIsWhatLeftWhereItIsCountedBehindTheScheduler) {
  ShapeWorld world = world_of(shaped_session({shaped_qer(1, 80 * kMbps)}, {}, {1}));
  world.source = {{"flows", List{to_user("10.45.0.2", 5000)}}};
  world.link = {{"limit_pkts", 50}};
  PipelineSpec spec = world.spec();
  spec.edges = {
      {"in", "0", "users"}, {"users", "0", "link"}, {"link", "0", "down"}, {"down", "0", "out"}};
  spec.flows = {{"down", {"in", "users", "link", "down", "out"}, 0}};
  EngineRig rig(spec, 65'536);
  rig.loop(20'000, 1000);
  const Snapshot snapshot = rig.balanced();
  EXPECT_GT(snapshot.balance.dropped_pkts, 1000U);
  const Value row =
      rig.engine().graph().at("users").module->command("list", Dict{{"seid", 1}})["sessions"];
  EXPECT_EQ(static_cast<uint64_t>(row.as_list().at(0)["down_pkts"].as_int()),
            snapshot.balance.sent_pkts);
}

void expect_mistake(const ShapeWorld& world, const std::string& part) {
  const std::string said = mistake_in([&] { ShapeRig rig(world); });
  EXPECT_NE(said.find(part), std::string::npos) << said;
}

TEST(SessionShape, APipelineThatCannotShapeIsRefused) {
  const Dict session = shaped_session({shaped_qer(1, 80 * kMbps)}, {1}, {1});
  ShapeWorld world = world_of(session);
  world.shape = {};
  expect_mistake(world, "nothing shapes what goes down");
  world.shape = {{"down", "lnk"}};
  expect_mistake(world, "there is no scheduler 'lnk'");
  world.shape = {{"down", "link"}, {"queue", "red"}};
  expect_mistake(world, "unknown queue");
  world.shape = {{"up", "link"}};
  expect_mistake(world, "nothing shapes what goes down");
  world = world_of(session);
  world.link = {{"discipline", "qfq"}};
  expect_mistake(world, "only a tree has room");
  world.link = {{"flow_by", "dscp"}};
  expect_mistake(world, "set flow_by: mark");
  world.link = {{"max_flows", 2}};
  expect_mistake(world, "raise max_flows");
  world.link = {{"max_nodes", 0}};
  expect_mistake(world, "raise max_nodes");
  world.link = {{"flows", List{Dict{{"flow", kSpecial}}}}};
  expect_mistake(world, "the scheduler has a flow 66 of its own");
}

TEST(SessionShape, QersThatMakeNoTreeAreRefused) {
  const Dict plain = shaped_qer(1, 80 * kMbps);
  const auto refused = [](const List& qers, const List& on_default, const List& on_special,
                          const std::string& part) {
    expect_mistake(world_of(shaped_session(qers, on_default, on_special)), part);
  };
  refused({shaped_qer(1, 80 * kMbps, {{"gbr_down_bps", 90 * kMbps}})}, {1}, {},
          "more than the maximum");
  refused({Dict{{"id", 1}, {"gbr_down_bps", kMbps}}}, {1}, {}, "a policer guarantees nothing");
  refused({Dict{{"id", 1}, {"priority", 3}}}, {1}, {}, "what is policed has no priority");
  refused({Dict{{"id", 1}, {"shape", "yes"}}}, {1}, {}, "expected none, down, up or both");
  refused({shaped_qer(1, 1000)}, {1}, {}, "session 1, qer 1");
  refused({shaped_qer(1, 0, {{"gbr_down_bps", 9'000 * kMbps}})}, {1}, {},
          "minimum rates below the link");
  // With a third rule, QERs 1 and 2 share one rule, and each has another that the other does not.
  Dict session = shaped_session({plain, shaped_qer(2, 90 * kMbps)}, {1, 2}, {1});
  List pdrs = session["pdrs"].as_list();
  Dict third = pdrs[1].as_dict();
  third["id"] = 4;
  third["qers"] = List{2};
  pdrs.emplace_back(third);
  session["pdrs"] = pdrs;
  expect_mistake(world_of(session), "shares only some of its PDRs");
}

}  // namespace session_shape_test
}  // namespace batchplane
