// SPDX-License-Identifier: BSD-3-Clause
// placement_loop_test.cc - the placer in a whole engine, on virtual time: plans reach stages, events are obeyed.
#include "app/control/placement_loop.h"

#include <gtest/gtest.h>

#include <atomic>

#include "spec/stages.h"

namespace batchplane::app {
namespace placement_loop_test {

// Digests on a device that is slow to begin, or on the worker. 32 packets come every `step_ns`.
PipelineSpec pipeline(const Dict& faults = {}) {
  PipelineSpec spec;
  spec.modules = {{"in", "source", {}}, {"d", "digest", {}}, {"out", "sink", {}}};
  spec.modules[1].device = Dict{{"on", List{"inline", "gpu"}},
                                {"batch_pkts", 32},
                                {"max_batch_pkts", 1024},
                                {"backpressure", true}};
  spec.edges = {{"in", "0", "d"}, {"d", "0", "out"}};
  spec.flows = {{"f", {"in", "d", "out"}, 4'000'000}};
  spec.devices = {{"gpu",
                   "simulated",
                   {{"threads", 0},
                    {"idle_w", 5.0},
                    {"active_w", 50.0},
                    {"laws", Dict{{"digest", Dict{{"batch_ns", 20'000}, {"pkt_ns", 10}}}}},
                    {"faults", faults}}}};
  spec.placement = Dict{{"policy", "latency"},
                        {"inline_w", 20},
                        {"laws", Dict{{"digest", Dict{{"batch_ns", 100}, {"pkt_ns", 50}}}}}};
  return spec;
}

struct Rig {
  explicit Rig(PipelineSpec spec) {
    std::vector<ConfigError> errors;
    Mistakes mistakes{errors, spec.source_map};
    add_stages(spec, module_kind_facts(), mistakes);
    auto env = std::make_unique<Environment>();
    env->quiescence = quiescence.get();
    offload::add_devices(spec, *env, nullptr, mistakes);
    if (!errors.empty()) throw errors.front();
    auto graph = build_graph(spec, std::move(env));
    static std::atomic<uint32_t> next{0};
    const auto n_pkts = static_cast<uint32_t>(Engine::min_pool_pkts(*graph)) + 4096;
    auto pool = std::make_unique<PacketPool>("placement_test" + std::to_string(next++), n_pkts);
    engine = std::make_unique<Engine>(std::move(graph), std::move(pool), quiescence);
    engine->workers()[0]->use_virtual_clock(&now_ns);
    loop = std::make_unique<PlacementLoop>(*engine);
    loop->choose(spec.placement);
  }
  void run(uint64_t ms) {
    for (uint64_t i = 0; i < ms; ++i) {
      for (uint32_t k = 0; k < 10; ++k) {
        now_ns += 100'000;
        engine->workers()[0]->loop_once();
      }
      loop->step(now_ns);
    }
  }
  Value stage() { return engine->graph().at("d").module->show()["stage"]; }
  std::string on() { return stage()["on"].as_string(); }
  std::string reason() { return loop->show()["reason"].as_string(); }

  uint64_t now_ns = 1'000'000'000;
  std::shared_ptr<Quiescence> quiescence = std::make_shared<Quiescence>();
  std::unique_ptr<Engine> engine;
  std::unique_ptr<PlacementLoop> loop;
};

TEST(PlacementLoop, PutsPlansIntoForce) {
  Rig rig(pipeline());
  rig.run(250);
  EXPECT_EQ(rig.on(), "inline");  // the device takes 20 us to begin
  // A burst of 32 each other loop, 10 loops a millisecond, and a tenth for what may come on top.
  const double demand_pps = rig.loop->show()["apps"]["d"]["demand_pps"].as_double();
  EXPECT_NEAR(demand_pps, 320'000 * 1.1, 20'000);
  EXPECT_EQ(rig.loop->show()["apps"]["d"]["budget_ns"].as_double(), 2'000'000);  // half of the SLO
  EXPECT_GT(rig.stage()["age_limit_ns"].as_int(), 0);
}

TEST(PlacementLoop, ObeysAPolicyAtOnce) {
  Rig rig(pipeline());
  rig.run(210);
  rig.loop->edit(Dict{{"what", "placement"}, {"policy", "throughput"}});
  rig.run(20);  // not at the end of the period
  EXPECT_EQ(rig.reason(), "policy");
  EXPECT_EQ(rig.loop->show()["choice"]["policy"].as_string(), "throughput");
  rig.loop->edit(Dict{{"what", "placement"}, {"module", "d"}, {"policy", "power"}});
  rig.run(20);
  EXPECT_EQ(rig.loop->show()["apps"]["d"]["policy"].as_string(), "power");
}

TEST(PlacementLoop, LeavesADeviceThatIsGone) {
  PipelineSpec spec = pipeline({{"fail_after_jobs", 40}});
  Dict placement = spec.placement.as_dict();
  placement["inline_share"] = 0.0001;  // the worker has no time for it
  spec.placement = placement;
  Rig rig(spec);
  rig.run(120);
  EXPECT_EQ(rig.on(), "gpu");
  rig.run(2'000);
  EXPECT_FALSE(rig.loop->show()["plan"]["d"].has("gpu"));
  EXPECT_LT(rig.loop->show()["outcome"]["served"].as_double(), 1);
  EXPECT_TRUE(rig.engine->snapshot(true).balance.is_exact());
}

TEST(PlacementLoop, TakesEditsOfWhatItDecidesBy) {
  Rig rig(pipeline());
  rig.run(250);
  ASSERT_EQ(rig.on(), "inline");
  rig.loop->edit(Dict{{"what", "placement"}, {"inline_share", 0.0001}});
  rig.run(250);
  EXPECT_EQ(rig.on(), "gpu");
  rig.loop->edit(Dict{{"what", "placement"}, {"module", "d"}, {"value", 3}});
  EXPECT_EQ(rig.loop->show()["apps"]["d"]["value"].as_double(), 3);
  EXPECT_EQ(rig.loop->saved()["apps"]["d"]["value"].as_double(), 3);
}

// After an apply, before the new graph's first period has ended.
TEST(PlacementLoop, HasNoPlanToShowBeforeItsFirstDecision) {
  Rig rig(pipeline());
  rig.run(250);
  EXPECT_TRUE(rig.loop->show().has("plan"));
  rig.loop->choose(pipeline().placement);
  EXPECT_FALSE(rig.loop->show().has("plan"));
  EXPECT_TRUE(rig.loop->show()["is_on"].as_bool());
  rig.run(250);
  EXPECT_TRUE(rig.loop->show().has("plan"));
}

// The thread draws nothing, so that only its own law can keep packets away from it.
TEST(PlacementLoop, BeginsWithTheLawOfAThreadThatWasMeasured) {
  const auto goes_there = [](const Dict& law) {
    PipelineSpec spec = pipeline();
    spec.devices = {{"cpu", "cores", {{"threads", 1}}}};
    spec.modules[1].device = Dict{{"on", List{"inline", "cpu"}}, {"max_batch_pkts", 1024}};
    const Dict on_worker{{"batch_ns", 100}, {"pkt_ns", 50}};
    spec.placement = Dict{{"policy", "power"},
                          {"inline_w", 20},
                          {"laws", Dict{{"digest", on_worker}, {"digest@cpu", law}}}};
    Rig rig(spec);
    while (!rig.loop->show().has("plan")) rig.run(50);
    return rig.loop->show()["plan"]["d"].has("cpu");
  };
  EXPECT_TRUE(goes_there({{"batch_ns", 700}, {"pkt_ns", 60}}));
  EXPECT_FALSE(goes_there({{"batch_ns", 1'000'000'000}}));
}

TEST(PlacementLoop, SavesWhatItWasTold) {
  Rig rig(pipeline());
  rig.loop->edit(Dict{{"what", "placement"}, {"watt_cap", 30}});
  rig.loop->edit(Dict{{"what", "placement"}, {"module", "d"}, {"budget_ns", 100'000}});
  const Value saved = rig.loop->saved();
  EXPECT_EQ(saved["watt_cap"].as_double(), 30);
  EXPECT_EQ(saved["apps"]["d"]["budget_ns"].as_int(), 100'000);
  EXPECT_EQ(saved_placement(placement_choice_from(saved)), saved);
}

TEST(PlacementLoop, RefusesWhatCannotBe) {
  Rig rig(pipeline());
  const auto refusal = [](const std::function<void()>& act) {
    try {
      act();
    } catch (const ConfigError& error) {
      return error.line();
    }
    return std::string();
  };
  const auto edit = [&](Dict given) {
    given["what"] = "placement";
    return refusal([&] { rig.loop->edit(given); });
  };
  EXPECT_NE(edit({{"polcy", "power"}}).find("'polcy' is unknown"), std::string::npos);
  EXPECT_NE(edit({{"policy", "fast"}}).find("throughput, latency or power"), std::string::npos);
  EXPECT_NE(edit({{"module", "out"}, {"value", 2}}).find("'out' has no device"), std::string::npos);
  EXPECT_NE(edit({{"watt_cap", -1}}).find("expected a number"), std::string::npos);
  EXPECT_EQ(rig.loop->show()["choice"]["watt_cap"].as_double(), 0);
  const Value none = Dict{{"apps", Dict{{"dd", Dict{}}}}};
  const std::string line = refusal([&] { PlacementLoop::check(none, rig.engine->graph()); });
  EXPECT_NE(line.find("placement.apps.dd: 'dd' has no device"), std::string::npos) << line;
  rig.loop->choose(Value());
  EXPECT_NE(edit({{"policy", "power"}}).find("nobody places"), std::string::npos);
}

}  // namespace placement_loop_test
}  // namespace batchplane::app
