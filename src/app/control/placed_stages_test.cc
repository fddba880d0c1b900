// SPDX-License-Identifier: BSD-3-Clause
// placed_stages_test.cc - the placer in a whole engine on virtual time: plans reach stages, and events are
// handled.
#include "app/control/placed_stages.h"

#include <gtest/gtest.h>

#include <atomic>

#include "app/control/control_loop.h"
#include "placement/choosers.h"
#include "placement/loop.h"
#include "placement/random_problems.h"
#include "spec/stages.h"

namespace batchplane::app {
namespace placed_stages_test {

// Digests on a device that is slow to start a batch, or on the worker. 32 packets arrive every `step_ns`.
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
    loop = std::make_unique<placement::Loop>(
        [this] { return std::make_unique<PlacedStages>(engine->graph()); }, [] { return 0; });
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
  std::unique_ptr<placement::Loop> loop;
};

TEST(PlacedStages, PutsPlansIntoForce) {
  Rig rig(pipeline());
  rig.run(250);
  EXPECT_EQ(rig.on(), "inline");  // the device takes 20 us to start
  // A burst of 32 every other loop, 10 loops per millisecond, plus a tenth as a margin.
  const double demand_pps = rig.loop->show()["apps"]["d"]["demand_pps"].as_double();
  EXPECT_NEAR(demand_pps, 320'000 * 1.1, 20'000);
  EXPECT_EQ(rig.loop->show()["apps"]["d"]["budget_ns"].as_double(), 2'000'000);  // half of the SLO
  EXPECT_GT(rig.stage()["age_limit_ns"].as_int(), 0);
}

// Without a policy, `optimal` decides batches and age limits; afterwards they are the pipeline's again.
TEST(PlacedStages, OptimalDecidesBatchesThatNobodyPlaces) {
  PipelineSpec spec = pipeline();
  spec.placement = {};
  Dict device = spec.modules[1].device.as_dict();
  device["on"] = List{"gpu"};
  device["batch_pkts"] = 4;
  device["age_limit_ns"] = 5'000;
  spec.modules[1].device = device;
  Rig rig(spec);
  ControlLoop control(*rig.engine);
  control.choose({.name = "optimal"});
  for (int i = 0; i < 30; ++i) {
    rig.run(10);
    control.step();
  }
  EXPECT_EQ(rig.stage()["batch_pkts"].as_int(), 1024);
  const int64_t limit_ns = rig.stage()["age_limit_ns"].as_int();
  EXPECT_GT(limit_ns, 100'000) << "the SLO is 4 ms";
  EXPECT_LT(limit_ns, 4'000'000);
  const Value row = control.explain("d")["modules"].as_list().at(0);
  EXPECT_EQ(row["trigger_pkts"].as_int(), 1024);
  EXPECT_EQ(row["age_limit_ns"].as_int(), limit_ns);
  EXPECT_EQ(row["last_reason"].as_string(), "device");
  control.choose({.name = "none"});
  EXPECT_EQ(rig.stage()["batch_pkts"].as_int(), 4);
  EXPECT_EQ(rig.stage()["age_limit_ns"].as_int(), 5'000);
}

TEST(PlacedStages, OptimalLeavesBatchesToPlacement) {
  Rig rig(pipeline());
  ControlLoop control(*rig.engine);
  control.choose({.name = "optimal"});
  for (int i = 0; i < 30; ++i) {
    rig.run(10);
    control.step();
  }
  EXPECT_TRUE(control.explain("")["decisions"].as_list().empty());
  EXPECT_EQ(control.explain("d")["modules"].as_list().at(0)["why"].as_string(),
            "placement decides");
}

TEST(PlacedStages, ObeysAPolicyAtOnce) {
  Rig rig(pipeline());
  rig.run(210);
  rig.loop->edit(Dict{{"what", "placement"}, {"policy", "throughput"}});
  rig.run(20);  // before the end of the period
  EXPECT_EQ(rig.reason(), "policy");
  EXPECT_EQ(rig.loop->show()["choice"]["policy"].as_string(), "throughput");
  rig.loop->edit(Dict{{"what", "placement"}, {"module", "d"}, {"policy", "power"}});
  rig.run(20);
  EXPECT_EQ(rig.loop->show()["apps"]["d"]["policy"].as_string(), "power");
}

TEST(PlacedStages, LeavesADeviceThatIsGone) {
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

TEST(PlacedStages, TakesEditsOfWhatItDecidesBy) {
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

// After an apply, before the end of the new graph's first period.
TEST(PlacedStages, HasNoPlanToShowBeforeItsFirstDecision) {
  Rig rig(pipeline());
  rig.run(250);
  EXPECT_TRUE(rig.loop->show().has("plan"));
  rig.loop->choose(pipeline().placement);
  EXPECT_FALSE(rig.loop->show().has("plan"));
  EXPECT_TRUE(rig.loop->show()["is_on"].as_bool());
  rig.run(250);
  EXPECT_TRUE(rig.loop->show().has("plan"));
}

// The thread draws no power, so only its own law can keep packets away from it.
TEST(PlacedStages, BeginsWithTheLawOfAThreadThatWasMeasured) {
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
  const auto table = [](double ns) {
    return Dict{{"batch_pkts", List{1, 1024}},
                {"pkt_bytes", List{60}},
                {"ns", List{List{ns}, List{100 * ns}}}};
  };
  EXPECT_TRUE(goes_there({{"batch_ns", 1'000'000'000}, {"table", table(700)}}));
  EXPECT_FALSE(goes_there({{"batch_ns", 700}, {"table", table(5'000'000)}}));
}

// Two digests that run faster on a fast device than on a slow one, unless they slow each other down there.
PipelineSpec two_digests(double factor) {
  PipelineSpec spec = pipeline();
  const Dict device{{"on", List{"fast", "slow"}}, {"max_batch_pkts", 64}, {"backpressure", true}};
  spec.modules = {{"in", "source", {}}, {"one", "digest", {}}, {"two", "digest", {}}};
  spec.modules.push_back({"out", "sink", {}});
  spec.modules[1].device = spec.modules[2].device = device;
  spec.edges = {{"in", "0", "one"}, {"one", "0", "two"}, {"two", "0", "out"}};
  spec.flows = {{"f", {"in", "one", "two", "out"}, 4'000'000}};
  const auto simulated = [](const char* name, double batch_ns, double pkt_ns) {
    const Dict laws{{"digest", Dict{{"batch_ns", batch_ns}, {"pkt_ns", pkt_ns}}}};
    return DeviceSpec{name, "simulated", {{"threads", 0}, {"laws", laws}}};
  };
  spec.devices = {simulated("fast", 6'000, 200), simulated("slow", 20'000, 800)};
  Dict placement{{"policy", "latency"}};
  if (factor > 1) {
    placement["slowdown"] = List{Dict{{"kind", "digest"},
                                      {"on", "fast"},
                                      {"beside", "digest"},
                                      {"on_other", "fast"},
                                      {"factor", factor}}};
  }
  spec.placement = placement;
  return spec;
}

// The first decision, made before anything was learnt.
struct First {
  explicit First(double factor) : rig(two_digests(factor)) {
    while (!rig.loop->show().has("plan")) rig.run(10);
  }
  [[nodiscard]] const placement::Problem& problem() const { return rig.loop->placer()->problem(); }
  [[nodiscard]] const placement::Plan& plan() const { return rig.loop->placer()->decision().plan; }
  Rig rig;
};

TEST(PlacedStages, KeepsApartWhatWasMeasuredToSlowEachOther) {
  const First with(1.5);
  const First without(1);
  placement::Problem truth = without.problem();
  ASSERT_EQ(truth.devices[0].name, "fast");
  truth.slowdown[truth.slot(0, 0, 1, 0)] = truth.slowdown[truth.slot(1, 0, 0, 0)] = 1.5;
  const auto true_score = [&](const First& first) {
    return placement::score(placement::evaluate(truth, first.plan()));
  };
  const double best = placement::best_of_all(truth);
  EXPECT_LE(true_score(with), 1.01 * best);
  EXPECT_GT(true_score(without), 1.1 * best);
  // Without knowledge of the slow-down the plan is optimal by its own model.
  EXPECT_LE(placement::score(placement::evaluate(without.problem(), without.plan())),
            1.01 * placement::best_of_all(without.problem()));
  const placement::PlantSpec plant{.truth = truth, .duration_ns = 300'000'000};
  const auto delay_sum_ns = [&](const First& first) {
    double sum = 0;
    const auto chooser = placement::make_chooser("placer", plant, first.problem(), {});
    for (const auto& period : placement::run_plant(plant, *chooser)) {
      for (const auto& app : period.apps) sum += app.delay_sum_ns;
    }
    return sum;
  };
  EXPECT_LT(delay_sum_ns(with), 0.9 * delay_sum_ns(without));
}

TEST(PlacedStages, BeginsAnewWhereAnApplyBringsOtherSlowdowns) {
  First first(1.5);
  first.rig.loop->choose(two_digests(2).placement);
  EXPECT_EQ(std::ranges::max(first.problem().slowdown), 2);
  first.rig.loop->edit(Dict{{"what", "placement"}, {"inline_w", 3}});  // laws are read again
  EXPECT_EQ(std::ranges::max(first.problem().slowdown), 2);
}

TEST(PlacedStages, SavesWhatItWasTold) {
  Rig rig(pipeline());
  rig.loop->edit(Dict{{"what", "placement"}, {"watt_cap", 30}});
  rig.loop->edit(Dict{{"what", "placement"}, {"module", "d"}, {"budget_ns", 100'000}});
  const Dict row{{"kind", "digest"},
                 {"on", "gpu"},
                 {"beside", "dpi"},
                 {"on_other", "inline"},
                 {"factor", 1.5}};
  rig.loop->edit(Dict{{"what", "placement"}, {"slowdown", List{row}}, {"laws_origin", "a test"}});
  const Value saved = rig.loop->saved();
  EXPECT_EQ(saved["slowdown"], List{row});
  EXPECT_FALSE(saved.has("laws_origin"));
  EXPECT_EQ(rig.loop->show()["choice"]["laws_origin"].as_string(), "a test");
  EXPECT_EQ(saved["watt_cap"].as_double(), 30);
  EXPECT_EQ(saved["apps"]["d"]["budget_ns"].as_int(), 100'000);
  EXPECT_EQ(placement::choice_value(placement::choice_from(saved)), saved);
}

TEST(PlacedStages, RefusesWhatCannotBe) {
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
  const auto check = [&](const Value& given) {
    const Graph& graph = rig.engine->graph();
    return refusal(
        [&] { placement::Loop::check(given, PlacedStages(graph), declared_devices(graph)); });
  };
  const std::string line = check(none);
  EXPECT_NE(line.find("placement.apps.dd: 'dd' has no device"), std::string::npos) << line;
  const auto slowed = [&](Dict row) { return check(Dict{{"slowdown", List{std::move(row)}}}); };
  const std::string on_none = slowed({{"on", "inline"}, {"on_other", "gqu"}});
  EXPECT_NE(on_none.find("placement.slowdown: there is no device 'gqu'"), std::string::npos);
  EXPECT_NE(slowed({{"factor", 0.5}}).find("slowdown[0].factor: expected a number from 1 to 100"),
            std::string::npos);
  EXPECT_NE(slowed({{"with", "x"}}).find("'with' is unknown"), std::string::npos);
  rig.loop->choose(Value());
  EXPECT_NE(edit({{"policy", "power"}}).find("nobody places"), std::string::npos);
}

}  // namespace placed_stages_test
}  // namespace batchplane::app
