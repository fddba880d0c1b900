// SPDX-License-Identifier: BSD-3-Clause
// control_decide_test.cc - a controller in another program: gets periods, and answers well, badly, late, or
// no longer.
#include <gtest/gtest.h>

#include "app/control/control_loop.h"
#include "app/control/fork_test_util.h"
#include "app/wire/json_value.h"
#include "engine_rig.h"
#include "telemetry/telemetry.h"

namespace batchplane::app {
namespace control_decide_test {

constexpr uint64_t kMe = 7;
constexpr uint64_t kOther = 8;

// a1 is on another worker, behind a queue.
PipelineSpec with_queue() {
  PipelineSpec spec = fork(1'000'000);
  spec.workers = {{"w0", -1}, {"w1", -1}};
  spec.modules.push_back({"q", "queue", {{"size_pkts", 256}, {"backpressure", true}}, 0, 0, "w1"});
  spec.modules.push_back({"out1", "sink", {}});
  spec.edges = {{"in", "0", "s"},   {"s", "0", "a0"}, {"s", "1", "q"},
                {"a0", "0", "out"}, {"q", "0", "a1"}, {"a1", "0", "out1"}};
  spec.flows[1].path = {"in", "s", "q", "a1", "out1"};
  return spec;
}

struct Rig {
  explicit Rig(uint64_t slo_ns = 1'000'000) : Rig(fork(slo_ns)) {}
  explicit Rig(const PipelineSpec& spec) : engine(spec), control(engine.engine()) {
    ControlChoice choice;
    choice.name = kRemoteController;
    choice.label = "mine.py";
    choice.costs = {{"s", {20, 5}}, {"a0", {1000, 10}}, {"a1", {1000, 10}}, {"out", {10, 5}}};
    control.choose(choice);
  }
  void periods(int n) {
    for (int i = 0; i < n; ++i) {
      engine.loop(200, kLoopNs);
      control.step();
    }
  }
  Value decide(const std::string& args, uint64_t client = kMe) {
    return control.decide(client, parse_json(args, "test"));
  }
  // Answers the period handed out last with these changes.
  Value answer(const std::string& changes) {
    const auto number = std::to_string(control.hand_period(kMe, 0)["number"].as_int());
    return decide(R"({"number":)" + number + R"(,"changes":)" + changes + "}");
  }
  std::string refusal(const std::string& changes) {
    try {
      answer(changes);
    } catch (const ConfigError& error) {
      return error.line();
    }
    return "";
  }
  uint32_t trigger_pkts(const std::string& name) {
    return engine.engine().graph().at(name).node->queue->trigger_pkts;
  }
  uint64_t age_limit_ns(const std::string& name) {
    return engine.engine().graph().at(name).node->queue->age_limit_ns;
  }
  List events() { return control.show_control()["events"].as_list(); }

  EngineRig engine;
  ControlLoop control;
};

TEST(ControlDecide, AProgramIsHandedEachPeriodOnceAndItsDecisionHolds) {
  Rig rig;
  EXPECT_TRUE(rig.control.hand_period(kMe, 0).is_null()) << "before the first period ends";
  rig.periods(1);
  const Value first = rig.control.hand_period(kMe, 0);
  EXPECT_EQ(first["number"].as_int(), 1);
  EXPECT_EQ(first["modules"]["pkts"].as_list().size(), 5U);
  EXPECT_EQ(first["modules"]["pkts"].as_list()[2].as_int(), 200 * 16);
  EXPECT_EQ(first["flows"]["slo_ns"].as_list()[0].as_int(), 1'000'000);
  EXPECT_TRUE(first["flows"]["p99_ns"].as_list()[0].is_int());
  EXPECT_TRUE(rig.control.hand_period(kMe, 1).is_null());
  EXPECT_EQ(rig.decide(R"({"number":1,"changes":[{"module":"a0","trigger_pkts":32},
                                                {"module":3,"trigger_pkts":8}]})")["changes"]
                .as_int(),
            2);
  EXPECT_EQ(rig.trigger_pkts("a0"), 32U);
  EXPECT_EQ(rig.trigger_pkts("a1"), 8U);
  rig.periods(3);
  EXPECT_EQ(rig.trigger_pkts("a0"), 32U) << "the last good decision stays";
  EXPECT_EQ(rig.control.hand_period(kMe, 1)["number"].as_int(), 4) << "the latest";
  rig.engine.balanced();
}

TEST(ControlDecide, AgesAreLimitedWithoutTheProgram) {
  Rig rig(60'000);
  const uint64_t stranding_ns = rig.engine.engine().graph().spec.engine.stranding_limit_ns;
  rig.periods(1);
  rig.answer(R"([{"module":"a0","trigger_pkts":32},
                 {"module":"a1","trigger_pkts":32,"age_limit_ns":777}])");
  rig.periods(3);
  EXPECT_LT(rig.age_limit_ns("a0"), 60'000U) << "so that the promise holds whatever comes";
  EXPECT_EQ(rig.age_limit_ns("a1"), 777U) << "what the program chose is its own";
  ControlChoice none;
  rig.control.choose(none);
  EXPECT_EQ(rig.age_limit_ns("a0"), stranding_ns);
  EXPECT_EQ(rig.trigger_pkts("a0"), 0U);
}

TEST(ControlDecide, TriggersAreTheProgramsAlone) {
  Rig rig;
  ControlChoice choice = rig.control.choice();
  choice.costs = {{"a0", {1, 100}}};  // batches gain nothing
  rig.control.choose(choice);
  rig.periods(1);
  rig.answer(R"([{"module":"a0","trigger_pkts":32}])");
  rig.periods(3);
  EXPECT_EQ(rig.trigger_pkts("a0"), 32U);
  EXPECT_LT(rig.age_limit_ns("a0"), 1'000'000U);
}

TEST(ControlDecide, NonsenseIsRefusedReportedAndChangesNothing) {
  Rig rig;
  rig.periods(1);
  rig.answer(R"([{"module":"a0","trigger_pkts":16}])");
  const std::pair<const char*, const char*> cases[] = {
      {R"([{"module":"a9","trigger_pkts":1}])", "no module 'a9'"},
      {R"([{"module":9,"trigger_pkts":1}])", "no module"},
      {R"([{"module":"in","trigger_pkts":1}])", "has no buffer"},
      {R"([{"module":"a0","trigger_pkts":33}])", "0 to 32"},
      {R"([{"module":"a0","trigger_pkts":1.5}])", "no whole number"},
      {R"([{"module":"a0"}])", "no whole number"},
      {R"([{"module":"a0","trigger_pkts":1,"age_limit_ns":-1}])", "age_limit_ns"},
      {R"([{"module":"a0","trigger_pkts":1},{"module":2,"trigger_pkts":2}])", "changed twice"},
      {R"([3])", "a change is an object"},
      {R"({"a0":3})", "a list of changes"},
  };
  for (const auto& [changes, told] : cases) {
    rig.periods(1);
    EXPECT_NE(rig.refusal(changes).find(told), std::string::npos)
        << changes << ": " << rig.refusal(changes);
    EXPECT_EQ(rig.trigger_pkts("a0"), 16U) << changes;
    const Value event = rig.events().back();
    EXPECT_NE(event["message"].as_string().find("last good decision"), std::string::npos);
    EXPECT_GT(event["period"].as_int(), 1);
  }
}

TEST(ControlDecide, PollsOfTasksAreDecidedAndTakenBack) {
  Rig rig;
  rig.engine.engine().change_polls({{0, 24}});
  const auto decide = [&](const std::string& polls) {
    rig.periods(1);
    const auto number = std::to_string(rig.control.hand_period(kMe, 0)["number"].as_int());
    rig.decide(R"({"number":)" + number + R"(,"changes":[],"polls":)" + polls + "}");
  };
  decide(R"([{"task":0,"poll_pkts":4}])");
  decide(R"([{"task":0,"poll_pkts":8}])");
  rig.periods(1);
  const Value tasks = rig.control.hand_period(kMe, 0)["tasks"];
  EXPECT_EQ(tasks["poll_pkts"].as_list()[0].as_int(), 8);
  EXPECT_EQ(tasks["in_pkts"].as_list()[0].as_int(), 200 * 8);
  for (const char* wrong :
       {R"([{"task":0,"poll_pkts":0}])", R"([{"task":0,"poll_pkts":33}])",
        R"([{"task":1,"poll_pkts":4}])", R"([{"task":0}])", R"([4])", R"({"task":0})",
        R"([{"task":0,"poll_pkts":4},{"task":0,"poll_pkts":5}])"}) {
    EXPECT_THROW(decide(wrong), ConfigError) << wrong;
    EXPECT_EQ(rig.engine.engine().poll_pkts(0), 8U) << wrong;
  }
  rig.control.choose({});
  EXPECT_EQ(rig.engine.engine().poll_pkts(0), 24U) << "as before the program";
}

TEST(ControlDecide, CreditsOfQueuesAreDecidedAndTakenBack) {
  Rig rig(with_queue());
  const uint32_t q = 5;
  const auto decide = [&](const std::string& more) {
    rig.periods(1);
    const auto number = std::to_string(rig.control.hand_period(kMe, 0)["number"].as_int());
    rig.decide(R"({"number":)" + number + R"(,"changes":[{"module":"a0","trigger_pkts":8}],)" +
               more + "}");
  };
  const auto told_pkts = [&] {
    rig.periods(1);
    const List inputs = model_value(rig.control.model())["inputs"].as_list();
    const Value pkts = rig.control.hand_period(kMe, 0)["inputs"]["credit_pkts"];
    for (size_t i = 0; i < inputs.size(); ++i) {
      const int64_t credit_pkts = pkts.as_list()[i].as_int();
      if (inputs[i]["module"].as_int() == q) return credit_pkts;
      EXPECT_EQ(credit_pkts, 0) << "no queue";
    }
    return int64_t{-1};
  };
  EXPECT_EQ(told_pkts(), 256);
  decide(R"("credits":[{"module":"q","credit_pkts":64}])");
  EXPECT_EQ(told_pkts(), 64);
  decide(R"("credits":[{"module":5,"credit_pkts":96}])");
  EXPECT_EQ(told_pkts(), 96);
  rig.decide(R"({"number":1,"changes":[{"module":"a0","trigger_pkts":16}]})");
  const std::pair<const char*, const char*> wrong[] = {
      {R"([{"module":"qq","credit_pkts":64}])", "there is no module 'qq'"},
      {R"([{"module":"a0","credit_pkts":64}])", "'a0' is no queue"},
      {R"([{"module":"in","credit_pkts":64}])", "'in' is no queue"},
      {R"([{"module":"q","credit_pkts":257}])", "32 to 256"},
      {R"([{"module":"q","credit_pkts":31}])", "32 to 256"},
      {R"([{"module":"q"}])", "no credit of a queue"},
      {R"([{"module":"q","credit_pkts":64},{"module":5,"credit_pkts":65}])", "changed twice"},
      {R"({"q":64})", "credits are a list"},
  };
  for (const auto& [credits, told] : wrong) {
    const std::string line = mistake_in(
        [&] { decide(R"("polls":[{"task":0,"poll_pkts":4}],"credits":)" + std::string(credits)); });
    EXPECT_NE(line.find(told), std::string::npos) << credits << ": " << line;
    EXPECT_EQ(rig.engine.engine().credit_pkts(q), 96U) << credits;
    EXPECT_EQ(rig.trigger_pkts("a0"), 16U) << credits;
    EXPECT_EQ(rig.engine.engine().poll_pkts(0), 32U) << credits;
  }
  // Neither is a credit given beside a mistake elsewhere.
  EXPECT_NE(mistake_in([&] {
              decide(R"("credits":[{"module":"q","credit_pkts":64}],"polls":[{"task":9}])");
            }),
            "none");
  EXPECT_EQ(rig.engine.engine().credit_pkts(q), 96U);
  rig.control.choose({});
  EXPECT_EQ(rig.engine.engine().credit_pkts(q), 256U) << "as before the program";
  rig.engine.balanced();
}

TEST(ControlDecide, CreditsAndPollsAreAmongTheLastDecisions) {
  Rig rig(with_queue());
  for (int i = 0; i < 3; ++i) {
    rig.periods(1);
    const auto number = std::to_string(rig.control.hand_period(kMe, 0)["number"].as_int());
    const std::string decision = R"({"number":)" + number +
                                 R"(,"changes":[],"credits":[{"module":"q","credit_pkts":64}],)" +
                                 R"("polls":[{"task":0,"poll_pkts":4}]})";
    rig.decide(decision);
    rig.decide(decision);  // within the same period
  }
  const List decisions = rig.control.show_control()["decisions"].as_list();
  ASSERT_EQ(decisions.size(), 1U) << "the others repeat it";
  EXPECT_EQ(decisions[0]["changes"].as_list().size(), 0U);
  EXPECT_EQ(decisions[0]["credits"],
            Value(List{Dict{{"module", "q"}, {"from_pkts", 256}, {"to_pkts", 64}}}));
  EXPECT_EQ(
      decisions[0]["polls"],
      Value(List{Dict{{"task", 0}, {"inputs", List{"in"}}, {"from_pkts", 32}, {"to_pkts", 4}}}));
  const List of_queue = rig.control.explain("q")["decisions"].as_list();
  ASSERT_EQ(of_queue.size(), 1U);
  EXPECT_EQ(of_queue[0]["credits"].as_list().size(), 1U);
  EXPECT_EQ(of_queue[0]["polls"].as_list().size(), 0U);
  EXPECT_TRUE(rig.control.explain("a0")["decisions"].as_list().empty());
}

TEST(ControlDecide, FaultsAreEventsWithTheirPeriod) {
  Rig rig;
  for (int i = 0; i < 3; ++i) {
    rig.periods(1);
    const auto number = std::to_string(rig.control.hand_period(kMe, 0)["number"].as_int());
    rig.decide(R"({"fault":"mine.py: ZeroDivisionError: oh","number":)" + number + "}");
  }
  ASSERT_EQ(rig.events().size(), 1U) << "the same mistake is counted";
  EXPECT_EQ(rig.events()[0]["times"].as_int(), 3);
  EXPECT_EQ(rig.events()[0]["period"].as_int(), 3);
  EXPECT_EQ(rig.control.show_control()["failed_steps"].as_int(), 3);
}

TEST(ControlDecide, AProgramThatLeavesOrDoesNotAnswerIsReportedAndReplaceable) {
  Rig rig;
  rig.periods(1);
  rig.answer(R"([{"module":"a0","trigger_pkts":24}])");
  EXPECT_THROW((void)rig.control.hand_period(kOther, 0), ConfigError) << "the seat is taken";
  EXPECT_TRUE(rig.control.show_control()["has_program"].as_bool());
  rig.control.client_gone(kOther);
  EXPECT_TRUE(rig.events().empty());
  rig.control.client_gone(kMe);
  EXPECT_FALSE(rig.control.show_control()["has_program"].as_bool());
  ASSERT_EQ(rig.events().size(), 1U);
  EXPECT_NE(rig.events()[0]["message"].as_string().find("mine.py has gone"), std::string::npos);
  rig.periods(3);
  EXPECT_EQ(rig.trigger_pkts("a0"), 24U);
  EXPECT_EQ(rig.control.hand_period(kOther, 0)["number"].as_int(), 4);
  EXPECT_THROW(rig.decide(R"({"number":1,"changes":[]})"), ConfigError) << "it has lost its seat";
}

TEST(ControlDecide, OnlyTheClientThatChoseTheControllerDecides) {
  Rig rig;
  ControlChoice choice = rig.control.choice();
  choice.client = kMe;
  rig.control.choose(choice);
  EXPECT_THROW((void)rig.control.hand_period(kOther, 0), ConfigError);
  choice.client = kOther;
  choice.label = "other.py";
  EXPECT_THROW(rig.control.check(choice), ConfigError);
  EXPECT_EQ(rig.control.show_control()["label"].as_string(), "mine.py");
  rig.control.client_gone(kMe);
  EXPECT_TRUE(rig.events().empty()) << "it never decided anything";
  rig.control.check(choice);
  rig.control.choose(choice);
  EXPECT_THROW((void)rig.control.hand_period(kMe, 0), ConfigError);
  choice.name = "max";
  rig.control.check(choice);  // a controller that needs no costs accepts their absence
}

TEST(ControlDecide, AMissingAnswerIsReportedOnce) {
  Rig rig;
  ControlChoice choice = rig.control.choice();
  choice.answer_limit_ns = 1;
  rig.control.choose(choice);
  rig.periods(1);
  (void)rig.control.hand_period(kMe, 0);
  rig.periods(5);
  ASSERT_EQ(rig.events().size(), 1U);
  EXPECT_EQ(rig.events()[0]["times"].as_int(), 1);
  EXPECT_EQ(rig.events()[0]["period"].as_int(), 1);
  EXPECT_NE(rig.events()[0]["message"].as_string().find("has not answered"), std::string::npos);
}

TEST(ControlDecide, AnotherControllerOrGraphEndsWhatWasHandedOut) {
  Rig rig;
  rig.periods(1);
  const Value period = rig.control.hand_period(kMe, 0);
  EXPECT_EQ(period["graph"].as_int(), 0);
  rig.control.graph_changed();
  EXPECT_THROW(rig.decide(R"({"number":1,"changes":[{"module":"a0","trigger_pkts":4}]})"),
               ConfigError);
  EXPECT_EQ(rig.trigger_pkts("a0"), 0U);
  rig.periods(1);
  EXPECT_EQ(rig.control.hand_period(kMe, 1)["graph"].as_int(), 1);
  ControlChoice choice = rig.control.choice();
  choice.name = "max";
  rig.control.choose(choice);
  EXPECT_THROW((void)rig.control.hand_period(kMe, 1), ConfigError);
  EXPECT_THROW(rig.decide(R"({"number":2,"changes":[]})"), ConfigError);
}

}  // namespace control_decide_test
}  // namespace batchplane::app
