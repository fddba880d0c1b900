// SPDX-License-Identifier: BSD-3-Clause
// control_loop_test.cc - controllers on a whole engine in virtual time: chosen, stepped, switched, explained;
// the same input gives the same decisions.
#include "app/control/control_loop.h"

#include <gtest/gtest.h>

#include "app/control/fork_test_util.h"
#include "app/wire/json_value.h"
#include "engine_rig.h"
#include "telemetry/telemetry.h"

namespace batchplane::app {
namespace control_loop_test {

constexpr int kLoopsAPeriod = 200;

ControlChoice choice_of(const std::string& name) {
  ControlChoice choice;
  choice.name = name;
  choice.costs = {{"s", {20, 5}}, {"a0", {1000, 10}}, {"a1", {1000, 10}}, {"out", {10, 5}}};
  choice.costs_origin = "a test";
  return choice;
}

struct Rig {
  explicit Rig(uint64_t slo_ns) : engine(fork(slo_ns)), control(engine.engine()) {}
  void periods(int n) {
    for (int i = 0; i < n; ++i) {
      engine.loop(kLoopsAPeriod, kLoopNs);
      control.step();
    }
  }
  uint32_t trigger_pkts(const std::string& name) {
    return engine.engine().graph().at(name).node->queue->trigger_pkts;
  }
  uint64_t age_limit_ns(const std::string& name) {
    return engine.engine().graph().at(name).node->queue->age_limit_ns;
  }
  Value flows() {
    return telemetry::flows_value(engine.balanced(), engine.engine().graph().flow_paths);
  }
  Value slo(size_t flow) { return control.show_slo(flows()).as_list().at(flow); }

  EngineRig engine;
  ControlLoop control;
};

TEST(ControlLoop, OptimalFillsBatchesWhereTheSloAllowsIt) {
  Rig rig(1'000'000);
  rig.control.choose(choice_of("optimal"));
  rig.periods(10);
  EXPECT_EQ(rig.trigger_pkts("a0"), 32U);
  EXPECT_EQ(rig.trigger_pkts("a1"), 32U);
  EXPECT_LT(rig.age_limit_ns("a0"), 1'000'000U) << "limits bound what the trigger may hold";
  const Value row = rig.slo(0);
  EXPECT_EQ(row["state"].as_string(), "met") << to_json(row);
  EXPECT_EQ(row["late_pkts"].as_int(), 0);
  EXPECT_EQ(row["periods"].as_int(), 10);
  EXPECT_EQ(row["violated_periods"].as_int(), 0);
  EXPECT_GT(row["headroom_ns"].as_double(), 0);
}

TEST(ControlLoop, PacketsFromAQueueCameInOnce) {
  PipelineSpec spec;
  spec.workers = {{"w0", -1}, {"w1", -1}};
  spec.modules = {{"in", "source", {{"limit_pkts", 320}}, 0, 0, "w0"},
                  {"q", "queue", {}, 0, 0, "w1"},
                  {"out", "sink", {}}};
  spec.edges = {{"in", "0", "q"}, {"q", "0", "out"}};
  spec.flows = {{"all", {"in", "q", "out"}, 1'000'000}};
  EngineRig engine(spec);
  ControlLoop control(engine.engine());
  control.choose({.name = "null"});
  engine.loop(40);
  control.step();
  const Value periods = control.show_periods()["periods"];
  EXPECT_EQ(periods.as_list().back()["in_pkts"].as_int(), 320);
  EXPECT_EQ(engine.balanced().balance.sent_pkts, 320U);
}

// Like the modules' costs they stay until others come, and go with them.
TEST(ControlLoop, CostsOfHopsBelongToTheirProfile) {
  Rig rig(50'000);
  ControlChoice measured = choice_of("optimal");
  measured.hop = HopCosts{.send_per_pkt_ns = 7, .take_per_pkt_ns = 8};
  rig.control.choose(measured);
  ControlChoice again;
  again.name = "max";
  rig.control.choose(again);
  ASSERT_TRUE(rig.control.choice().hop.has_value());
  EXPECT_EQ(rig.control.choice().hop->send_per_pkt_ns, 7);
  rig.control.choose(choice_of("max"));
  EXPECT_FALSE(rig.control.choice().hop.has_value()) << "of an older profile, which has none";
}

TEST(ControlLoop, TheSameCountsGiveTheSameDecisions) {
  const auto run = [] {
    Rig rig(60'000);
    rig.control.choose(choice_of("optimal"));
    rig.periods(20);
    return to_json(rig.control.explain("")) + to_json(rig.slo(1));
  };
  EXPECT_EQ(run(), run());
}

TEST(ControlLoop, AnSloBelowWhatTheModulesCostIsToldAsInherent) {
  Rig rig(500);
  rig.control.choose(choice_of("optimal"));
  rig.periods(5);
  const Value row = rig.slo(0);
  EXPECT_EQ(row["state"].as_string(), "inherent") << to_json(row);
  EXPECT_NE(row["hint"].as_string(), "");
}

TEST(ControlLoop, PeriodsWithTooManyLatePacketsAreCounted) {
  Rig rig(7'000);
  rig.control.choose(choice_of("max"));
  rig.periods(1);  // its decision is now in force: every other batch waits for a loop
  EXPECT_EQ(rig.slo(0)["violated_periods"].as_int(), 0);
  rig.periods(9);
  const Value row = rig.slo(0);
  EXPECT_EQ(row["state"].as_string(), "violating") << to_json(row);
  EXPECT_EQ(row["state_since"].as_string(), "violating");
  EXPECT_EQ(row["violated_periods"].as_int(), 9);
  EXPECT_NEAR(row["late_ratio"].as_double(), 0.45, 0.01);
  EXPECT_LT(row["headroom_ns"].as_double(), 0);
  EXPECT_EQ(rig.slo(1)["violated_periods"].as_int(), 9);
  EXPECT_EQ(row["quiet_periods"].as_int(), 10);
  EXPECT_GT(row["period_delay_mean_ns"].as_double(), 5'000);
  const Value all = rig.control.show_control()["any_flow"];
  EXPECT_EQ(all["periods"].as_int(), 10);
  EXPECT_EQ(all["violated_periods"].as_int(), 9) << "both flows are late in the same ones";
  EXPECT_EQ(all["quiet_periods"].as_int(), 10);
  EXPECT_EQ(all["violated_quiet_periods"].as_int(), 9);
  rig.engine.engine().set_slo("f0", 20'000);
  rig.control.slo_changed("f0");
  rig.periods(3);
  EXPECT_EQ(rig.slo(0)["state"].as_string(), "met");
  EXPECT_EQ(rig.slo(0)["state_since"].as_string(), "met");
  EXPECT_EQ(rig.slo(0)["periods"].as_int(), 2) << "that of the change belongs to neither promise";
}

TEST(ControlLoop, PercentilesAndWorstCountTheSameTime) {
  Rig rig(20'000);
  rig.control.choose(choice_of("max"));  // every other batch waits for a loop
  rig.periods(20);
  const Value full = rig.slo(0);
  ASSERT_FALSE(full["p99_ns"].is_null()) << to_json(full);
  EXPECT_LE(full["p99_ns"].as_double(), full["delay_max_ns"].as_double());
  rig.control.choose(choice_of("null"));
  rig.periods(2);  // held packets leave
  rig.engine.engine().set_slo("f0", 30'000);
  rig.control.slo_changed("f0");
  rig.periods(20);
  const Value row = rig.slo(0);
  ASSERT_FALSE(row["p99_ns"].is_null()) << to_json(row);
  EXPECT_LT(row["delay_max_ns"].as_double(), full["p99_ns"].as_double());
  EXPECT_LE(row["p99_ns"].as_double(), row["delay_max_ns"].as_double());
  EXPECT_LE(row["p50_ns"].as_double(), row["p99_ns"].as_double());
}

TEST(ControlLoop, SwitchingLosesNothingAndTakesBackAgeLimits) {
  Rig rig(1'000'000);
  rig.engine.engine().set_buffers({}, {{"a0", 77'000}});
  const uint64_t stranding_ns = rig.engine.engine().graph().spec.engine.stranding_limit_ns;
  // Null last: in this test time passes per loop, so holding other flows' batches would seem to save nothing.
  for (const char* name : {"optimal", "max", "full", "onoff", "fixed(8)", "feasdir", "null"}) {
    rig.control.choose(choice_of(name));
    rig.periods(4);
    rig.engine.balanced();
  }
  rig.control.choose(choice_of("optimal"));
  rig.periods(4);
  EXPECT_NE(rig.age_limit_ns("a1"), stranding_ns);
  rig.control.choose(choice_of("max"));
  EXPECT_EQ(rig.age_limit_ns("a1"), stranding_ns) << "as the pipeline says";
  rig.periods(2);
  EXPECT_EQ(rig.trigger_pkts("a1"), 32U);
  rig.control.choose(choice_of("none"));
  EXPECT_FALSE(rig.control.is_on());
  EXPECT_EQ(rig.trigger_pkts("a0"), 0U) << "as before the first controller";
  EXPECT_EQ(rig.age_limit_ns("a0"), 77'000U);
  rig.periods(1);
  rig.engine.balanced();
}

TEST(ControlLoop, AnUnknownControllerChangesNothingAndTheErrorNamesTheKnown) {
  Rig rig(1'000'000);
  rig.control.choose(choice_of("max"));
  rig.periods(2);
  try {
    rig.control.choose(choice_of("optimall"));
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_NE(error.line().find("feasdir"), std::string::npos) << error.line();
    EXPECT_NE(error.line().find("or none"), std::string::npos) << error.line();
  }
  EXPECT_EQ(rig.control.choice().name, "max");
  ControlChoice bad = choice_of("optimal");
  bad.settings = Dict{{"tolerence", 0.1}};
  EXPECT_THROW(rig.control.choose(bad), ConfigError);
  bad.settings = Dict{{"percentile", 1.5}};
  EXPECT_THROW(rig.control.choose(bad), ConfigError);
  EXPECT_EQ(rig.trigger_pkts("a0"), 32U);
}

TEST(ControlLoop, ExplainsFlowsModulesAndDecisions) {
  Rig rig(1'000'000);
  EXPECT_THROW((void)rig.control.explain(""), ConfigError) << "no controller is on";
  for (const char* name : {"optimal", "full", "max", "onoff", "feasdir", "null"}) {
    rig.control.choose(choice_of(name));
    rig.periods(6);
    const Value flow = rig.control.explain("f0");
    ASSERT_EQ(flow["flows"].as_list().size(), 1U);
    const Value row = flow["flows"].as_list()[0];
    for (const char* term : {"turnaround_ns", "fill_ns", "service_ns", "slack_ns"}) {
      EXPECT_TRUE(row[term].is_number()) << name << " " << term;
    }
    for (const char* term : {"flow", "state", "slo_ns", "measured_ns", "bias_ns", "hint"}) {
      EXPECT_TRUE(row.has(term)) << name << " " << term;
    }
    const Value all = rig.control.explain("");
    for (const Value& told : all["modules"].as_list()) {
      EXPECT_NE(told["why"].as_string(), "") << name << " " << told["module"].as_string();
    }
    const Value module = rig.control.explain("a1");
    ASSERT_EQ(module["modules"].as_list().size(), 1U);
    EXPECT_EQ(module["modules"].as_list()[0]["trigger_pkts"].as_int(), rig.trigger_pkts("a1"));
    const Value split = rig.control.explain("s");
    EXPECT_NE(split["modules"].as_list()[0]["why"].as_string(), "") << "why it has no buffer";
  }
  const List decisions = rig.control.show_control()["decisions"].as_list();
  ASSERT_FALSE(decisions.empty());
  EXPECT_NE(decisions[0]["changes"].as_list()[0]["reason"].as_string(), "");
  EXPECT_LE(decisions.size(), ControlLog::kDecisionsKept);
  EXPECT_THROW((void)rig.control.explain("a11"), ConfigError);
}

TEST(ControlLoop, ControlContinuesOnAnotherGraph) {
  Rig rig(1'000'000);
  rig.control.choose(choice_of("max"));
  rig.periods(3);
  PipelineSpec next = fork(1'000'000);
  next.modules.push_back({"a2", "counter", {}});
  next.modules[1].params = {{"gates", 3}};
  next.edges.push_back({"s", "2", "a2"});
  next.edges.push_back({"a2", "0", "out"});
  rig.engine.engine().apply(rig.engine.build(next));
  rig.control.graph_changed();
  rig.periods(2);
  EXPECT_EQ(rig.trigger_pkts("a2"), 32U);
  rig.control.choose(choice_of("none"));
  EXPECT_EQ(rig.trigger_pkts("a2"), 0U);
  rig.engine.balanced();
}

TEST(ControlLoop, WhatWasBeforeItOutlivesAMove) {
  PipelineSpec spec = fork(1'000'000);
  spec.workers = {{"w0", -1}, {"w1", -1}};
  std::ranges::find(spec.modules, "a0", &ModuleSpec::name)->trigger_pkts = 3;
  EngineRig engine(spec, 16384);
  ControlLoop control(engine.engine());
  control.choose(choice_of("max"));
  const auto periods = [&](int n) {
    for (int i = 0; i < n; ++i) {
      engine.loop(kLoopsAPeriod, kLoopNs);
      control.step();
    }
  };
  const auto trigger_pkts = [&](const std::string& name) {
    return engine.engine().graph().at(name).node->queue->wanted_trigger_pkts();
  };
  periods(3);
  EXPECT_EQ(trigger_pkts("a0"), 32U);
  (void)engine.engine().move({{"a1", "w1"}});
  control.parts_moved();
  periods(3);
  EXPECT_EQ(trigger_pkts("a0"), 32U);
  EXPECT_EQ(
      control
          .show_slo(telemetry::flows_value(engine.balanced(), engine.engine().graph().flow_paths))
          .as_list()[0]["periods"]
          .as_int(),
      6)
      << "those before the move count";
  control.choose(choice_of("none"));
  EXPECT_EQ(trigger_pkts("a0"), 3U) << "as the pipeline has it";
  EXPECT_EQ(trigger_pkts("a1"), 0U);
  engine.balanced();
}

// A fully loaded worker gives a part away: the loop names it, and the caller moves it.
TEST(ControlLoop, TellsWhichPartsAreToMove) {
  PipelineSpec spec = fork(1'000'000);
  spec.workers = {{"w0", -1}, {"w1", -1}};
  EngineRig engine(spec, 16384);
  ControlLoop control(engine.engine());
  ControlChoice choice = choice_of("max");
  choice.settings = Dict{{"decompose", "balance"}, {"master_periods", 2}};
  control.choose(choice);
  std::vector<PartMove> moves;
  for (int i = 0; i < 2; ++i) {
    engine.loop(kLoopsAPeriod, kLoopNs);
    control.step();
    for (PartMove& move : control.take_moves()) moves.push_back(std::move(move));
  }
  ASSERT_FALSE(moves.empty());
  EXPECT_EQ(moves[0].worker, "w1");
  EXPECT_TRUE(control.take_moves().empty()) << "told once";
  EXPECT_FALSE(engine.engine().move(moves).modules.empty());
  control.parts_moved();
  engine.loop(kLoopsAPeriod, kLoopNs);
  control.step();
  engine.balanced();
}

}  // namespace control_loop_test
}  // namespace batchplane::app
