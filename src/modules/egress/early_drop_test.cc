// SPDX-License-Identifier: BSD-3-Clause
// early_drop_test.cc - a flood is dropped before it costs work, and nothing else is.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "modules/egress/egress_test_util.h"

namespace batchplane {
namespace early_drop_test {

using namespace egress_test;

constexpr uint32_t kFlood = 0;

// in -> mark -> early_drop -> counter -> egress, for each flow; the first one floods.
PipelineSpec one_flooding(uint32_t n_workers) {
  List flows;
  for (uint32_t f = 0; f < kFlows; ++f) flows.push_back(Dict{{"flow", f}, {"limit_pkts", 64}});
  PipelineSpec spec =
      three_direct_senders({{"rate_bps", 800'000'000}, {"flows", flows}}, n_workers);
  for (uint32_t f = 0; f < kFlows; ++f) {
    spec.modules.push_back({nth("early", f), "early_drop", {{"scheduler", "egress"}}});
    spec.modules.push_back({nth("work", f), "counter", {}});
    const auto edge = std::ranges::find(spec.edges, nth("mark", f), &EdgeSpec::from);
    const std::string way_in = std::exchange(edge->to, nth("early", f));
    spec.edges.push_back({nth("early", f), "0", nth("work", f)});
    spec.edges.push_back({nth("work", f), "0", way_in});
    auto& path = spec.flows[f].path;
    const auto mark = std::ranges::find(path, nth("mark", f));
    path.insert(mark + 1, {nth("early", f), nth("work", f)});
  }
  for (ModuleSpec& module : spec.modules) {
    if (module.kind == "source" && module.name != nth("in", kFlood)) {
      module.params["rate_pps"] = 20'000;
    }
  }
  return spec;
}

uint64_t pkts_at(const Snapshot& now, const std::string& name) {
  return std::ranges::find(now.modules, name, &ModuleSnapshot::name)->pkts;
}
uint64_t dropped_at(const Snapshot& now, const std::string& name) {
  const auto& drops = std::ranges::find(now.modules, name, &ModuleSnapshot::name)->drops;
  return std::accumulate(drops.begin(), drops.end(), uint64_t{0});
}

// With mailboxes, and on a single worker.
TEST(EarlyDrop, AFloodCostsNothingFurtherOn) {
  for (const uint32_t n_workers : {3U, 1U}) {
    EngineRig rig(one_flooding(n_workers), 65'536);
    for (uint32_t k = 0; k < 1000; ++k) {
      rig.loop(10, 1000);
      rig.balanced();
    }
    const Snapshot now = rig.balanced();
    const uint64_t came = pkts_at(now, "early0");
    EXPECT_GT(came, 5'000U);
    EXPECT_GT(dropped_at(now, "early0"), came * 4 / 5);
    EXPECT_EQ(pkts_at(now, "work0"), came - dropped_at(now, "early0"));
    const Value shown = rig.engine().graph().at("egress").module->show();
    EXPECT_GE(shown["flows"].as_list()[kFlood]["refused_pkts"].as_int(),
              static_cast<int64_t>(dropped_at(now, "early0")))
        << "they count as refused by the scheduler";
    for (const uint32_t f : {1U, 2U}) {
      EXPECT_EQ(dropped_at(now, nth("early", f)), 0U) << f;
      EXPECT_GE(released(rig)[f], 190U) << f;  // of 200
    }
    rig.expect_pool_whole(now);
  }
}

TEST(EarlyDrop, LetsPacketsThroughAgainOnceThereIsRoom) {
  EngineRig rig(one_flooding(1), 65'536);
  rig.loop(5000, 1000);
  Module& egress = *rig.engine().graph().at("egress").module;
  egress.command("set", Dict{{"rate_bps", 0}});
  rig.loop(100, 1000);
  const Snapshot before = rig.balanced();
  rig.loop(1000, 1000);
  const Snapshot now = rig.balanced();
  const uint64_t came = pkts_at(now, "early0") - pkts_at(before, "early0");
  const uint64_t passed = pkts_at(now, "work0") - pkts_at(before, "work0");
  EXPECT_GT(came, 1'000U);
  EXPECT_EQ(passed, came);
}

TEST(EarlyDrop, AnApplyKeepsIt) {
  const PipelineSpec spec = one_flooding(1);
  EngineRig rig(spec, 65'536);
  rig.loop(5000, 1000);
  rig.engine().apply(rig.build(spec));
  const Snapshot before = rig.balanced();
  rig.loop(5000, 1000);
  const Snapshot now = rig.balanced();
  EXPECT_GT(dropped_at(now, "early0"), dropped_at(before, "early0") + 1'000);
  rig.expect_pool_whole(now);
}

TEST(EarlyDrop, NamesASchedulerThatIsNotThere) {
  PipelineSpec spec = one_flooding(1);
  for (ModuleSpec& module : spec.modules) {
    if (module.name == "early1") module.params["scheduler"] = "work1";
  }
  try {
    EngineRig rig(spec);
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_EQ(std::string(error.what()), "there is no scheduler 'work1'");
    EXPECT_NE(error.where().find("early1"), std::string::npos) << error.where();
  }
}

}  // namespace early_drop_test
}  // namespace batchplane
