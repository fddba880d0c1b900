// SPDX-License-Identifier: BSD-3-Clause
// egress_test.cc - the scheduler within an engine: shares, live changes, and all packets accounted
// for.
#include <gtest/gtest.h>

#include <thread>

#include "modules/egress/egress_test_util.h"

namespace batchplane {
namespace egress_test {

Dict eight_to_one(const std::string& discipline) {
  List flows{Dict{{"flow", 0}, {"weight", 8}}, Dict{{"flow", 1}}, Dict{{"flow", 2}}};
  return {{"discipline", discipline}, {"flows", flows}, {"rate_bps", 8'000'000'000}};
}

TEST(Egress, GivesEachFlowItsShareOfTheLink) {
  for (const char* discipline : {"drr", "wf2q_plus", "qfq", "qfq_plus"}) {
    EngineRig rig(three_senders(eight_to_one(discipline)), 65'536);
    rig.loop(5'000, 1000);
    const std::vector<uint64_t> before = released(rig);
    const uint64_t from_ns = rig.now_ns;
    rig.loop(25'000, 1000);
    const std::vector<uint64_t> after = released(rig);
    // 1000-byte packets at one byte per nanosecond.
    const double total = static_cast<double>(rig.now_ns - from_ns) / 1000;
    EXPECT_NEAR(static_cast<double>(after[0] - before[0]) / total, 0.8, 0.005) << discipline;
    EXPECT_NEAR(static_cast<double>(after[1] - before[1]) / total, 0.1, 0.005) << discipline;
    EXPECT_NEAR(static_cast<double>(after[2] - before[2]) / total, 0.1, 0.005) << discipline;
    const Snapshot snapshot = rig.balanced();
    EXPECT_GT(snapshot.balance.dropped_pkts, 0U);
    rig.expect_pool_whole(snapshot);
  }
}

TEST(Egress, FlowsOfConnectionsNeedNoEntry) {
  const List flows{Dict{{"flow", 3}, {"weight", 5}}};
  EngineRig rig(three_direct_senders({{"flow_by", "hash"}, {"hash_flows", 8}, {"flows", flows}}),
                65'536);
  const Value shown = rig.engine().graph().at("egress").module->show();
  ASSERT_EQ(shown["flows"].as_list().size(), 8U);
  for (const Value& flow : shown["flows"].as_list()) {
    EXPECT_EQ(flow["weight"].as_int(), flow["flow"].as_int() == 3 ? 5 : 1);
  }
  rig.loop(10, 1000);
  rig.balanced();
}

TEST(Egress, TimesAreForTheCalendarAlone) {
  for (const char* key : {"delay_us", "jitter_us", "rate_bps"}) {
    Dict params = eight_to_one("drr");
    params["flows"] = List{Dict{{"flow", 1}, {key, 100'000}}};
    const std::string told =
        mistake_in([&] { EngineRig rig(three_direct_senders(params), 131'072); });
    EXPECT_NE(told.find(std::string("flows[0].") + key), std::string::npos) << told;
    EXPECT_NE(told.find("discipline: calendar"), std::string::npos) << told;
  }
}

// Packets are held for the delay of their flow, and none are lost.
TEST(Egress, HoldsPacketsForTheTimeOfTheirFlow) {
  Dict params = eight_to_one("calendar");
  params["rate_bps"] = 0;
  params["limit_pkts"] = 20'000;
  params["total_limit_pkts"] = 50'000;
  params["flows"] = List{Dict{{"flow", 0}, {"delay_us", 300}}, Dict{{"flow", 1}},
                         Dict{{"flow", 2}, {"delay_us", 100}, {"jitter_us", 50}}};
  EngineRig rig(three_direct_senders(params), 131'072);
  rig.loop(90, 1000);
  const std::vector<uint64_t> early = released(rig);
  EXPECT_EQ(early[0], 0U);
  EXPECT_GT(early[1], 1000U);
  EXPECT_EQ(early[2], 0U);
  rig.loop(100, 1000);
  const std::vector<uint64_t> later = released(rig);
  EXPECT_EQ(later[0], 0U);
  EXPECT_GT(later[2], 500U);
  rig.loop(150, 1000);
  EXPECT_GT(released(rig)[0], 100U);
  Module& egress = *rig.engine().graph().at("egress").module;
  egress.command("replace", Dict{{"flow", 0}, {"limit_pkts", 20'000}});
  rig.loop(20, 1000);
  rig.engine().apply(rig.build(three_direct_senders(params)));
  rig.loop(20, 1000);
  rig.expect_pool_whole(rig.balanced());
}

TEST(Egress, FifoGivesWhatIsSent) {
  EngineRig rig(three_senders(eight_to_one("fifo")), 65'536);
  rig.loop(100'000, 1000);
  const std::vector<uint64_t> all = released(rig);
  EXPECT_GT(all[1], all[0] / 3);
  rig.balanced();
}

TEST(Egress, WorksOnTheOnlyWorker) {
  EngineRig rig(three_senders(eight_to_one("qfq_plus"), 1), 65'536);
  rig.loop(50'000, 1000);
  const std::vector<uint64_t> all = released(rig);
  EXPECT_NEAR(static_cast<double>(all[0]), 8 * static_cast<double>(all[1]), 2000);
  rig.expect_pool_whole(rig.balanced());
}

TEST(Egress, IsAccountedForAtEveryMoment) {
  EngineRig rig(three_senders(eight_to_one("qfq")), 65'536);
  for (uint32_t k = 0; k < 300; ++k) {
    rig.loop(7, 1000);
    rig.balanced();
  }
}

TEST(Egress, TakesFromSeveralWorkersThroughDoors) {
  EngineRig rig(three_direct_senders(eight_to_one("qfq")), 65'536);
  const Graph& graph = rig.engine().graph();
  EXPECT_EQ(graph.instances[graph.index.at("egress@w1")].door_of, graph.index.at("egress"));
  EXPECT_EQ(graph.flow_paths[1], (std::vector<std::string>{"in1", "mark1", "egress@w1", "out"}));
  for (uint32_t k = 0; k < 300; ++k) {
    rig.loop(7, 1000);
    rig.balanced();
  }
  rig.loop(100'000, 1000);
  const std::vector<uint64_t> all = released(rig);
  EXPECT_NEAR(static_cast<double>(all[0]), 8 * static_cast<double>(all[1]), 2000);
  EXPECT_NEAR(static_cast<double>(all[2]), static_cast<double>(all[1]), 300);
  // The engine attributes packets to flows by the door they came through.
  const Snapshot snapshot = rig.balanced();
  for (uint32_t f = 0; f < kFlows; ++f) EXPECT_EQ(snapshot.flows[f].total.pkts, all[f]) << f;
  EXPECT_EQ(snapshot.flows[kFlows].total.pkts, 0U);
  rig.expect_pool_whole(snapshot);
}

// The threads of w0 and w1 send; whichever of them finds w2 free runs the scheduler and the modules
// behind it.
TEST(Egress, IsRunByWhicheverWorkerHasTime) {
  const uint64_t pkts_each = 30'000;
  PipelineSpec spec = three_direct_senders({{"rate_bps", 0}, {"mailbox_pkts", 256}});
  spec.workers[2].is_shared = true;
  for (ModuleSpec& module : spec.modules) {
    if (module.kind == "source") module.params["limit_pkts"] = pkts_each;
  }
  EngineRig rig(spec, 65'536);
  rig.engine().start();
  for (uint32_t round = 0; rig.balanced().balance.in_pkts < kFlows * pkts_each; ++round) {
    if (round < 20) rig.engine().apply(rig.build(spec));
    std::this_thread::yield();
  }
  rig.engine().stop(true);
  const Snapshot end = rig.balanced();
  EXPECT_EQ(end.balance.in_pkts, kFlows * pkts_each);
  EXPECT_EQ(end.balance.held_pkts, 0U);
  EXPECT_EQ(end.workers[2].stats.loops > 0, true);
  EXPECT_GT(end.balance.sent_pkts, 0U);
  rig.expect_pool_whole(end);
}

// The scheduler is followed by a queue to another worker that takes nothing for a while.
TEST(Egress, KeepsSharesWhileWhatFollowsIsFull) {
  PipelineSpec spec = three_direct_senders(eight_to_one("qfq"));
  spec.workers.push_back({"w3", -1});
  spec.modules.push_back({"tx", "queue", {{"size_pkts", 64}, {"backpressure", true}}});
  spec.modules.back().worker = "w3";
  for (EdgeSpec& edge : spec.edges) {
    if (edge.to == "out") edge.to = "tx";
  }
  spec.edges.push_back({"tx", "0", "out"});
  for (ModuleSpec& module : spec.modules) {
    if (module.kind == "egress") {
      module.params["rate_bps"] = 0;
      module.params["limit_pkts"] = 100;
    }
  }
  EngineRig rig(spec, 65'536);
  for (uint32_t k = 0; k < 2000; ++k) {
    rig.now_ns += 1000;
    for (size_t w = 0; w < 3; ++w) rig.worker(w).loop_once();
    if (k % 10 == 0) rig.worker(3).loop_once();
    if (k % 50 == 0) rig.balanced();
  }
  const Snapshot snapshot = rig.balanced();
  const auto& drops = snapshot.modules[rig.engine().graph().index.at("egress@w1")].drops;
  for (size_t r = 0; r < drops.size(); ++r) {
    if (drop_reasons()[r].name == "mailbox_full") {
      EXPECT_EQ(drops[r], 0U) << "mailboxes are emptied all the time";
    }
  }
  const std::vector<uint64_t> all = released(rig);
  EXPECT_NEAR(static_cast<double>(all[0]), 8 * static_cast<double>(all[1]), 300);
  rig.expect_pool_whole(snapshot);
}

TEST(Egress, ADoorThatIsClosedByAnApplyLosesNothing) {
  EngineRig rig(three_direct_senders(eight_to_one("drr")), 131'072);
  rig.loop(50, 1000);
  const uint64_t held = rig.balanced().balance.held_pkts;
  EXPECT_GT(held, 0U);
  const uint64_t dropped = rig.balanced().balance.dropped_pkts;
  // All senders move to one worker, so one mailbox disappears.
  PipelineSpec spec = three_direct_senders(eight_to_one("drr"), 3);
  spec = without_doors(spec);
  for (ModuleSpec& module : spec.modules) {
    if (module.kind == "source") module.worker = "w0";
  }
  add_doors(spec, module_kind_facts());
  EXPECT_EQ(
      std::ranges::count_if(spec.modules, [](const auto& m) { return m.name == "egress@w1"; }), 0);
  rig.engine().apply(rig.build(spec));
  const Snapshot after = rig.balanced();
  EXPECT_EQ(after.balance.held_pkts, held);
  EXPECT_EQ(after.balance.dropped_pkts, dropped);
  rig.loop(100, 1000);
  rig.expect_pool_whole(rig.balanced());
  // And back to two.
  rig.engine().apply(rig.build(three_direct_senders(eight_to_one("drr"))));
  rig.loop(20'000, 1000);
  rig.expect_pool_whole(rig.balanced());
}

TEST(Egress, GivesUpWhatASmallerSchedulerRefuses) {
  EngineRig rig(three_direct_senders(eight_to_one("qfq_plus")), 131'072);
  rig.loop(20'000, 1000);
  const Snapshot before = rig.balanced();
  Dict shorter = eight_to_one("drr");
  shorter["limit_pkts"] = 10;
  rig.engine().apply(rig.build(three_direct_senders(shorter)));
  const Snapshot after = rig.balanced();
  EXPECT_LE(after.balance.held_pkts, 30U + 2 * 1024U);
  EXPECT_EQ(after.balance.dropped_pkts - before.balance.dropped_pkts,
            before.balance.held_pkts - after.balance.held_pkts);
  rig.expect_pool_whole(after);
}

TEST(Egress, ChangesAllFlowsOfACommandOrNone) {
  EngineRig rig(three_direct_senders(eight_to_one("qfq")), 65'536);
  Module& egress = *rig.engine().graph().at("egress").module;
  EXPECT_THROW(egress.command("add", List{Dict{{"flow", 7}}, Dict{{"flow", 2}}}), ConfigError);
  EXPECT_THROW(egress.command("delete", List{Dict{{"flow", 2}}, Dict{{"flow", 9}}}), ConfigError);
  EXPECT_THROW(egress.command("add", List{Dict{{"flow", 7}}, Dict{{"flow", 7}}}), ConfigError);
  EXPECT_EQ(egress.show()["flows"].as_list().size(), 3U);
  // Adds a thousand flows at once, deletes them and adds them again while they are leaving.
  List many;
  for (uint32_t f = 3; f < 1000; ++f) many.push_back(Dict{{"flow", f}});
  for (uint32_t round = 0; round < 3; ++round) {
    egress.command("add", many);
    rig.loop(10, 1000);
    egress.command("delete", many);
    rig.loop(1, 1000);
  }
  rig.loop(2000, 1000);
  EXPECT_EQ(egress.show()["flows"].as_list().size(), 3U);
  rig.expect_pool_whole(rig.balanced());
}

TEST(Egress, RefusesMoreWeightThanItsSchedulerTakes) {
  Dict params = eight_to_one("qfq");
  params["max_flows"] = 4096;
  EngineRig rig(three_direct_senders(params), 65'536);
  Module& egress = *rig.engine().graph().at("egress").module;
  List half;
  List rest;
  for (uint32_t f = 3; f < 1027; ++f) half.push_back(Dict{{"flow", f}, {"weight", 65'536}});
  for (uint32_t f = 1027; f < 2051; ++f) rest.push_back(Dict{{"flow", f}, {"weight", 65'536}});
  egress.command("add", half);
  EXPECT_THROW(egress.command("add", rest), ConfigError);
  EXPECT_THROW(egress.command("replace", List{Dict{{"flow", 1}, {"weight", 65'537}}}), ConfigError);
  egress.command("replace", Dict{{"flow", 3}, {"weight", 1}});
  egress.command("add", Dict{{"flow", 1027}, {"weight", 65'000}});
  rig.loop(100, 1000);
  rig.balanced();
}

TEST(Egress, ChangesWeightsAndRateWhileBacklogged) {
  EngineRig rig(three_senders(eight_to_one("qfq_plus")), 65'536);
  rig.loop(20'000, 1000);
  Module& egress = *rig.engine().graph().at("egress").module;
  egress.command("replace", Dict{{"flow", 0}, {"weight", 1}});
  egress.command("set", Dict{{"rate_bps", 4'000'000'000}});
  rig.loop(100, 1000);
  const std::vector<uint64_t> before = released(rig);
  rig.loop(90'000, 1000);
  const std::vector<uint64_t> after = released(rig);
  for (uint32_t f = 0; f < kFlows; ++f) {
    EXPECT_NEAR(static_cast<double>(after[f] - before[f]), 15'000, 100) << f;
  }
  rig.balanced();
}

TEST(Egress, LetsADeletedFlowsPacketsOut) {
  EngineRig rig(three_senders(eight_to_one("qfq_plus")), 65'536);
  rig.loop(20'000, 1000);
  Module& egress = *rig.engine().graph().at("egress").module;
  egress.command("delete", Dict{{"flow", 2}});
  rig.loop(100'000, 1000);
  const Snapshot snapshot = rig.balanced();
  rig.expect_pool_whole(snapshot);
  // Its packets belong to flow 0 now, and its number can be reused.
  egress.command("add", Dict{{"flow", 2}, {"weight", 5}});
  rig.loop(1000, 1000);
  rig.balanced();
  EXPECT_THROW(egress.command("add", Dict{{"flow", 2}}), ConfigError);
  EXPECT_THROW(egress.command("delete", Dict{{"flow", 0}}), ConfigError);
  EXPECT_THROW(egress.command("replace", Dict{{"flow", 9}}), ConfigError);
  EXPECT_THROW(egress.command("replace", Dict{{"flow", 1}, {"weight", 0}}), ConfigError);
  EXPECT_THROW(egress.command("set", Dict{{"rate_bps", 7'999}}), ConfigError);
}

TEST(Egress, CarriesEverythingOverAnApply) {
  EngineRig rig(three_senders(eight_to_one("qfq_plus")), 131'072);
  rig.loop(20'000, 1000);
  // The same discipline: its packets stay in place and in order.
  rig.engine().apply(rig.build(three_senders(eight_to_one("qfq_plus"))));
  rig.loop(100, 1000);
  rig.expect_pool_whole(rig.balanced());
  // Another discipline and a smaller limit: packets that do not fit are counted.
  Dict smaller = eight_to_one("drr");
  smaller["total_limit_pkts"] = 100;
  rig.engine().apply(rig.build(three_senders(smaller)));
  rig.loop(100, 1000);
  rig.expect_pool_whole(rig.balanced());
  rig.loop(20'000, 1000);
  rig.expect_pool_whole(rig.balanced());
}

TEST(Egress, SaysWhatIsWrongWithItsFlows) {
  const auto mistake_of = [](List flows) {
    try {
      EngineRig rig(three_senders({{"flows", std::move(flows)}}));
    } catch (const ConfigErrors& errors) {
      return errors.errors.front().line();
    }
    return std::string();
  };
  EXPECT_NE(mistake_of({Dict{{"flow", 1}}, Dict{{"flow", 1}}}).find("there twice"),
            std::string::npos);
  EXPECT_NE(mistake_of({Dict{{"flow", 5000}}}).find("0 to 1023"), std::string::npos);
  EXPECT_NE(mistake_of({Dict{{"flow", 1}, {"weight", 0}}}).find("weight"), std::string::npos);
  EXPECT_NE(mistake_of({Dict{{"weight", 1}}}).find("'flow' is missing"), std::string::npos);
}

}  // namespace egress_test
}  // namespace batchplane
