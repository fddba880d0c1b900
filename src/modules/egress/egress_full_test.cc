// SPDX-License-Identifier: BSD-3-Clause
// egress_full_test.cc - which flows lose packets when the scheduler is at its total limit.
#include <gtest/gtest.h>

#include "modules/egress/egress_test_util.h"

namespace batchplane {
namespace egress_full_test {

using namespace egress_test;

// One flow floods and loses nearly everything; the others send less than their share.
PipelineSpec one_flooding(uint32_t n_workers, uint32_t room_pkts, uint32_t flood = 0) {
  List flows;
  for (uint32_t f = 0; f < kFlows; ++f) {
    flows.push_back(Dict{{"flow", f}, {"ceil_bps", f == flood ? 16'000 : 0}});
  }
  PipelineSpec spec = three_direct_senders({{"discipline", "tree"},
                                            {"rate_bps", 8'000'000'000},
                                            {"total_limit_pkts", room_pkts},
                                            {"flows", flows}},
                                           n_workers);
  for (ModuleSpec& module : spec.modules) {
    if (module.kind == "source" && module.name != nth("in", flood)) {
      module.params["rate_pps"] = 10'000;
    }
  }
  return spec;
}
std::vector<int64_t> refused(EngineRig& rig) {
  std::vector<int64_t> all;
  const Value shown = rig.engine().graph().at("egress").module->show();
  for (const Value& flow : shown["flows"].as_list()) all.push_back(flow["refused_pkts"].as_int());
  return all;
}

// Through mailboxes, and without them on a single worker.
TEST(EgressFull, AFloodThatHoldsAllTheRoomGivesWayToOthers) {
  for (const uint32_t n_workers : {3U, 1U}) {
    EngineRig rig(one_flooding(n_workers, 64), 65'536);
    for (uint32_t k = 0; k < 2000; ++k) {
      rig.loop(10, 1000);
      rig.balanced();
    }
    const std::vector<uint64_t> all = released(rig);
    const std::vector<int64_t> none = refused(rig);
    EXPECT_GT(none[0], 1000);
    for (const uint32_t f : {1U, 2U}) {
      EXPECT_GE(all[f], 199U) << f;  // of 200
      EXPECT_EQ(none[f], 0) << f;
    }
    // Drops by reason agree.
    Value rows = rig.engine().graph().at("egress").module->command("status", Dict{})["rows"];
    for (const Value& row : rows.as_list()) {
      if (row.has("flow") && row["flow"].as_int() == 0) {
        EXPECT_EQ(row["drops"]["egress_full"].as_int(), none[0]);
      }
    }
    rig.expect_pool_whole(rig.balanced());
  }
}

// An apply with a smaller limit drops from the flooding flow, too.
TEST(EgressFull, LessRoomInAnApplyIsTakenFromTheLongest) {
  PipelineSpec spec = one_flooding(1, 2000);
  for (ModuleSpec& module : spec.modules) {
    if (module.name == "egress") module.params["rate_bps"] = 8'000;
  }
  EngineRig rig(spec, 65'536);
  rig.loop(2000, 1000);
  const auto backlogs = [&] {
    std::vector<int64_t> all;
    const Value shown = rig.engine().graph().at("egress").module->show();
    for (const Value& flow : shown["flows"].as_list()) all.push_back(flow["backlog_pkts"].as_int());
    return all;
  };
  const std::vector<int64_t> before = backlogs();
  ASSERT_GT(before[0], 500);
  ASSERT_GT(before[1] + before[2], 30);
  const Snapshot held = rig.balanced();
  for (ModuleSpec& module : spec.modules) {
    if (module.name == "egress") module.params["total_limit_pkts"] = 100;
  }
  rig.engine().apply(rig.build(spec));
  const std::vector<int64_t> after = backlogs();
  EXPECT_EQ(after[0] + after[1] + after[2], 100);
  EXPECT_EQ(after[1], before[1]);
  EXPECT_EQ(after[2], before[2]);
  const Snapshot now = rig.balanced();
  EXPECT_EQ(now.balance.dropped_pkts - held.balance.dropped_pkts,
            held.balance.held_pkts - now.balance.held_pkts);
  rig.loop(1000, 1000);
  rig.expect_pool_whole(rig.balanced());
}

// A deleted flow that holds all the room gives way, too; packets sent to it afterwards belong to
// flow 0.
TEST(EgressFull, ADeletedFlowGivesWayToOthers) {
  EngineRig rig(one_flooding(1, 64, 2), 65'536);
  Module& egress = *rig.engine().graph().at("egress").module;
  rig.loop(2000, 1000);
  egress.command("delete", Dict{{"flow", 2}});
  const int64_t before = refused(rig)[0];
  for (uint32_t k = 0; k < 200; ++k) {
    rig.loop(100, 1000);
    rig.balanced();
  }
  const std::vector<int64_t> none = refused(rig);
  ASSERT_EQ(none.size(), 2U);
  EXPECT_GT(none[0], before + 1000);
  EXPECT_EQ(none[1], 0);
  EXPECT_GE(released(rig)[1], 219U);  // of 220
  rig.expect_pool_whole(rig.balanced());
}

}  // namespace egress_full_test
}  // namespace batchplane
