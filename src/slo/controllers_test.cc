// SPDX-License-Identifier: BSD-3-Clause
// controllers_test.cc - names, the controllers that ignore snapshots, and the places where buffers
// may pay.
#include "slo/controllers.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "slo/model/model.h"
#include "slo/model/plant_test_util.h"

namespace batchplane::slo {
namespace {

// in -> split -> {a -> merge, b -> merge} -> out, c behind b.
Model diamond() {
  Model model;
  for (const char* name : {"in", "split", "a", "b", "merge", "out"}) {
    model.modules.push_back({.name = name, .has_buffer = std::string(name) != "in"});
  }
  model.modules.back().is_egress = true;
  model.edges = {{0, 0, 1}, {1, 0, 2}, {1, 1, 3}, {2, 0, 4}, {3, 0, 4}, {4, 0, 5}};
  model.tasks = {{.inputs = {0}, .modules = {1, 2, 3, 4, 5}}};
  mark_controlled(model);
  return model;
}

TEST(MarkControlled, TakesBranchesAndMergersOnly) {
  const Model model = diamond();
  std::vector<std::string> controlled;
  for (const auto& module : model.modules) {
    if (module.is_controlled) controlled.push_back(module.name);
  }
  EXPECT_EQ(controlled, (std::vector<std::string>{"a", "b", "merge"}));
}

TEST(Segments, EndAtTheNextControlledModule) {
  const std::vector<Segment> segments = segments_of(diamond());
  ASSERT_EQ(segments.size(), 3U);
  EXPECT_EQ(segments[0].members, (std::vector<uint32_t>{2}));
  EXPECT_EQ(segments[2].members, (std::vector<uint32_t>{4, 5}));
}

TEST(MakeController, FixedSetsEveryControlledModuleOnce) {
  const Model model = diamond();
  Snapshot snapshot;
  snapshot.modules.resize(model.modules.size());
  snapshot.modules[3].trigger_pkts = 8;
  const auto controller = make_controller("fixed(8)", model, {});
  const Decision decision = controller->step(snapshot);
  ASSERT_EQ(decision.changes.size(), 2U);
  EXPECT_EQ(decision.changes[0].module, 2U);
  EXPECT_EQ(decision.changes[1].module, 4U);
  EXPECT_EQ(decision.changes[0].trigger_pkts, 8U);
  EXPECT_EQ(controller->name(), "fixed(8)");
}

TEST(MakeController, MaxUsesTheBatchSizeAndNullNothing) {
  const Model model = diamond();
  Snapshot snapshot;
  snapshot.modules.resize(model.modules.size());
  EXPECT_EQ(make_controller("max", model, {})->step(snapshot).changes.at(0).trigger_pkts, 32U);
  EXPECT_TRUE(make_controller("null", model, {})->step(snapshot).changes.empty());
}

TEST(MakeController, SaysWhichNamesThereAre) {
  const Model model = diamond();
  for (const char* text :
       {"", "maxx", "fixed", "fixed(", "fixed()", "fixed(-1)", "fixed(8", "fixed(8) "}) {
    try {
      make_controller(text, model, {});
      FAIL() << text;
    } catch (const ConfigError& error) {
      EXPECT_NE(error.line().find("null, max"), std::string::npos) << error.line();
    }
  }
  EXPECT_THROW(make_controller("fixed(33)", model, {}), ConfigError);
}

TEST(MakeController, AllExplainThemselvesInTheSameTerms) {
  std::vector<std::string> names = controller_names();
  std::ranges::replace(names, std::string("fixed(k)"), std::string("fixed(8)"));
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    Plant plant = tree_plant(2);
    plant.slo_ns = {60'000, 0};
    if (name == "nfvnice" || name == "wfq") {
      plant.model.tasks[0].scheduling.mode = exec::Execution::kWeightedFair;
      for (auto& module : plant.model.modules) module.is_unit = module.is_controlled;
    }
    const auto controller = make_controller(name, plant.model, {});
    for (int i = 0; i < 3; ++i) (void)controller->step(plant.period());
    const Explanation told = controller->explain();
    ASSERT_EQ(told.flows.size(), plant.model.flows.size());
    for (const FlowExplanation& flow : told.flows) {
      EXPECT_GT(flow.service_ns, 0);
      if (flow.slo_ns == 0) continue;
      EXPECT_FALSE(flow.modules.empty());
      EXPECT_NEAR(
          flow.slo_ns,
          flow.turnaround_ns + flow.bias_ns + flow.fill_ns + flow.service_ns + flow.slack_ns, 1);
    }
    ASSERT_FALSE(told.modules.empty());
    for (const ModuleExplanation& module : told.modules) {
      EXPECT_NE(module.why, "");
      EXPECT_GT(module.cost_per_batch_ns, 0);
      EXPECT_GT(module.arriving_pkts, 0);
    }
  }
}

}  // namespace
}  // namespace batchplane::slo
