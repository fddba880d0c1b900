// SPDX-License-Identifier: BSD-3-Clause
// requests_test.cc - every command against a small pipeline in this process, on the test's clock.
#include "app/runtime/requests.h"

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "app/plan/environment_build.h"
#include "app/plan/memory_plan.h"
#include "app/wire/json_value.h"
#include "app/wire/messages.h"
#include "base/cost_law_value.h"
#include "spec/config_json.h"

namespace batchplane::app {
namespace {

const char* const kPipeline = R"({
  "version": 1, "name": "small",
  "modules": {"in": {"kind": "source", "params": {"burst_pkts": 8}},
              "ttl": {"kind": "ttl"}, "out": {"kind": "sink"}},
  "edges": [{"from": "in", "to": "ttl"}, {"from": "ttl", "to": "out"}],
  "flows": [{"name": "f", "path": ["in", "ttl", "out"], "delay_slo_ns": 1000000}],
  "source_map": {"modules.ttl": "small.yaml:4"}
})";

PipelineSpec spec_of(const std::string& text, uint32_t n_workers = 1) {
  std::vector<ConfigError> errors;
  PipelineSpec spec = spec_from_value(parse_json(text, "test"), errors);
  EXPECT_TRUE(errors.empty());
  for (uint32_t w = 0; w < n_workers; ++w) spec.workers.push_back({"w" + std::to_string(w), -1});
  return spec;
}

class RequestsTest : public testing::Test {
 protected:
  explicit RequestsTest(uint32_t n_workers = 1) {
    const PipelineSpec spec = spec_of(kPipeline, n_workers);
    auto quiescence = std::make_shared<Quiescence>();
    std::vector<ConfigError> errors;
    auto env = build_environment(spec, PortsAre::kReal, {}, errors);
    env->quiescence = quiescence.get();
    auto graph = build_graph(spec, std::move(env));
    static int pools = 0;
    auto pool =
        std::make_unique<PacketPool>("requests_" + std::to_string(pools++), pool_pkts_for(*graph),
                                     data_bytes_needed(spec, *graph->env));
    auto engine = std::make_unique<Engine>(std::move(graph), std::move(pool), quiescence);
    engine_ = engine.get();
    worker_ = engine->workers().front().get();
    for (const auto& each : engine_->workers()) each->use_virtual_clock(&now_ns_);
    CorePlan cores = plan_cores("");
    runtime_ = std::make_unique<Runtime>(
        Runtime::Parts{"small", cores, Dict{{"memory", "of a test"}}, quiescence, std::move(engine),
                       std::make_unique<GeneratorSet>(cores.control_core), SnapshotCache(0, 0)});
  }

  void loop(int times = 1) {
    for (int i = 0; i < times; ++i) {
      now_ns_ += 1000;
      for (const auto& each : engine_->workers()) each->loop_once();
    }
  }
  // The answer to a request, without its envelope.
  Value answer(const std::string& cmd, const std::string& args = "{}") {
    Value id;
    const Request request =
        parse_request(R"({"v":1,"id":5,"cmd":")" + cmd + R"(","args":)" + args + "}", id);
    return parse_json(answer_request(request, *runtime_, bulk_), "answer");
  }
  Value result(const std::string& cmd, const std::string& args = "{}") {
    const Value all = answer(cmd, args);
    EXPECT_TRUE(all["ok"].as_bool()) << to_json(all);
    return all["result"];
  }
  std::string refusal(const std::string& cmd, const std::string& args = "{}") {
    const Value all = answer(cmd, args);
    EXPECT_FALSE(all["ok"].as_bool()) << to_json(all);
    return to_json(all["errors"]);
  }
  // The row called `name` in a list of dicts.
  static Value row(const Value& list, const std::string& key, const std::string& name) {
    for (const Value& one : list.as_list()) {
      if (one[key] == Value(name)) return one;
    }
    ADD_FAILURE() << "no " << name;
    return {};
  }

  uint64_t now_ns_ = 1'000'000'000;
  Engine* engine_ = nullptr;
  Worker* worker_ = nullptr;
  std::unique_ptr<Runtime> runtime_;
  BulkEdits bulk_;
};

TEST_F(RequestsTest, HelloSaysWhoItIs) {
  const Value hello = result("hello");
  EXPECT_EQ(hello["version"].as_int(), 1);
  EXPECT_EQ(hello["pipeline"].as_string(), "small");
  EXPECT_EQ(hello["facts"]["memory"].as_string(), "of a test");
}

TEST_F(RequestsTest, CountsAddUp) {
  loop(10);
  const Value runtime = result("show", R"({"what":"runtime"})");
  EXPECT_EQ(runtime["balance"]["in_pkts"].as_int(), 80);
  EXPECT_TRUE(runtime["balance"]["is_exact"].as_bool());
  const Value ttl = row(runtime["modules"], "name", "ttl");
  EXPECT_EQ(ttl["pkts"].as_int(), 80);
  EXPECT_EQ(ttl["batches"].as_int(), 10);
  EXPECT_EQ(ttl["batch_mean_pkts"].as_double(), 8.0);
}

TEST_F(RequestsTest, EverythingCanBeShown) {
  loop(200);
  const Value all = result("show", R"({"what":"all"})");
  for (const char* what :
       {"runtime", "buffers", "flows", "drops", "ports", "tables", "graph", "generators"}) {
    EXPECT_TRUE(all.has(what)) << what;
    EXPECT_EQ(result("show", std::string(R"({"what":")") + what + "\"}").type_name(),
              all[what].type_name());
  }
  const Value flow = row(all["flows"], "name", "f");
  EXPECT_EQ(all["flows"].as_list().back()["name"].as_string(), "other");
  EXPECT_EQ(flow["slo_buckets"].as_list().size(), 32U);
  EXPECT_TRUE(flow["percentiles_ns"].has("p99.9"));
  EXPECT_EQ(all["graph"]["edges"].as_list().size(), 2U);
}

TEST_F(RequestsTest, TriggersAndAgeLimitsAreSetLive) {
  EXPECT_EQ(result("set", R"({"what":"trigger","module":"ttl","trigger_pkts":32})"), Value(Dict{}));
  result("set", R"({"what":"age_limit","module":"ttl","age_limit_ns":50000})");
  const Value buffers = result("show", R"({"what":"buffers"})")["buffers"];
  EXPECT_EQ(row(buffers, "module", "ttl")["trigger_pkts"].as_int(), 32);
  EXPECT_EQ(row(buffers, "module", "ttl")["age_limit_ns"].as_int(), 50'000);
  const Value saved = result("save");
  EXPECT_EQ(saved["modules"]["ttl"]["trigger_pkts"].as_int(), 32);
}

TEST_F(RequestsTest, ManyChangesAreMadeAllOrNone) {
  const std::string why = refusal("set", R"({"what":"many","sets":[
      {"what":"trigger","module":"ttl","trigger_pkts":16},
      {"what":"trigger","module":"tll","trigger_pkts":16}]})");
  EXPECT_NE(why.find("did you mean 'ttl'"), std::string::npos) << why;
  const std::string flow = refusal("set", R"({"what":"many","sets":[
      {"what":"trigger","module":"ttl","trigger_pkts":16},
      {"what":"slo","flow":"g","delay_slo_ns":5}]})");
  EXPECT_NE(flow.find("no flow 'g'"), std::string::npos) << flow;
  EXPECT_EQ(result("save")["modules"]["ttl"]["trigger_pkts"].as_int(), 0);
  result("set", R"({"what":"many","sets":[
      {"what":"trigger","module":"ttl","trigger_pkts":16},
      {"what":"slo","flow":"f","delay_slo_ns":5}, {"what":"idle","mode":"hold"}]})");
  const Value saved = result("save");
  EXPECT_EQ(saved["modules"]["ttl"]["trigger_pkts"].as_int(), 16);
  EXPECT_EQ(saved["flows"].as_list()[0]["delay_slo_ns"].as_int(), 5);
  EXPECT_EQ(saved["engine"]["idle"].as_string(), "hold");
}

TEST_F(RequestsTest, RefusesWhatCannotBeSet) {
  EXPECT_NE(refusal("set", R"({"what":"triger"})").find("did you mean 'trigger'"),
            std::string::npos);
  EXPECT_NE(refusal("set", R"({"what":"trigger","module":"ttl","trigger_pkts":257})"), "");
  EXPECT_NE(refusal("set", R"({"what":"trigger","module":"ttl"})"), "");
  EXPECT_NE(refusal("set", R"({"what":"trigger","module":"in","trigger_pkts":3})"), "");
  EXPECT_NE(refusal("set", R"({"what":"idle","mode":"maybe"})"), "");
  EXPECT_NE(refusal("set", R"({"what":"trigger","module":"ttl","trigger_pkts":3,"x":1})"), "");
  EXPECT_NE(refusal("set", R"({"what":"generator","name":"g"})"), "");
  EXPECT_NE(refusal("set", R"({"what":"many","sets":7})"), "");
}

TEST_F(RequestsTest, UnknownNamesComeWithTheNearest) {
  EXPECT_NE(refusal("shwo").find("did you mean 'show'"), std::string::npos);
  EXPECT_NE(refusal("show", R"({"what":"flwos"})").find("did you mean 'flows'"), std::string::npos);
  EXPECT_NE(refusal("module", R"({"module":"tt","verb":"list"})").find("did you mean 'ttl'"),
            std::string::npos);
  EXPECT_NE(refusal("module", R"({"module":"ttl","verb":"list"})").find("no command"),
            std::string::npos);
  EXPECT_NE(refusal("show", "{}"), "");
}

TEST_F(RequestsTest, ModuleCommandsReachTheModule) {
  loop();
  result("module", R"({"module":"in","verb":"off"})");
  loop(5);
  EXPECT_EQ(result("show", R"({"what":"runtime"})")["balance"]["in_pkts"].as_int(), 8);
}

TEST_F(RequestsTest, WhatWasSavedStartsTheSamePipeline) {
  result("set", R"({"what":"trigger","module":"ttl","trigger_pkts":4})");
  const Value saved = result("save");
  const Value checked = result("check", R"({"pipeline":)" + to_json(saved) + "}");
  EXPECT_TRUE(checked["errors"].as_list().empty()) << to_json(checked);
  EXPECT_GT(checked["plan"]["pool_pkts"].as_int(), 0);
  const Value applied = result("apply", R"({"pipeline":)" + to_json(saved) + R"(,"dry_run":true})");
  EXPECT_EQ(applied["difference"]["added"].as_list().size(), 0U);
  EXPECT_FALSE(applied["applied"].as_bool());
}

TEST_F(RequestsTest, TheControllerIsSavedWithWhatWasAskedOfIt) {
  EXPECT_FALSE(result("save").has("controller"));
  result("set", R"({"what":"controller","name":"optimal","period_ns":5000000,
      "settings":{"tolerance":0.1},"costs":{"ttl":{"cost_per_batch_ns":20,"cost_per_pkt_ns":4}},
      "costs_origin":"paper, given","costs_file":"paper"})");
  const Value saved = result("save");
  EXPECT_EQ(saved["controller"], parse_json(R"({"name":"optimal","period_ns":5000000,
      "settings":{"tolerance":0.1},"costs_file":"paper"})",
                                            "expected"));
  result("set", R"({"what":"controller","name":"none"})");
  EXPECT_FALSE(result("save").has("controller"));
  // The running controller stays when a pipeline names none; otherwise the pipeline's runs.
  const Value applied = result("apply", R"({"pipeline":)" + to_json(saved) + "}");
  EXPECT_EQ(applied["difference"]["controller"],
            parse_json(R"({"from":"none","to":"optimal"})", "expected"));
  EXPECT_EQ(result("show", R"({"what":"control"})")["period_ns"].as_int(), 5'000'000);
  EXPECT_EQ(result("save")["controller"], saved["controller"]);
  const Value again = result("apply", R"({"pipeline":)" + to_json(saved) + "}");
  EXPECT_TRUE(again["difference"]["controller"].is_null()) << to_json(again);
  result("apply", std::string(R"({"pipeline":)") + to_json(parse_json(kPipeline, "first")) + "}");
  EXPECT_EQ(result("save")["controller"], saved["controller"]);
}

TEST_F(RequestsTest, CheckTellsAControllerThatCannotBe) {
  const auto mistake = [&](const char* controller) {
    Dict next = parse_json(kPipeline, "next").as_dict();
    next["controller"] = parse_json(controller, "controller");
    const Value checked = result("check", R"({"pipeline":)" + to_json(next) + "}");
    if (checked["errors"].as_list().size() != 1) return to_json(checked);
    const Value& error = checked["errors"].as_list()[0];
    return error["where"].as_string() + ": " + error["message"].as_string() + "; " +
           error["fix"].as_string();
  };
  EXPECT_NE(mistake(R"({"name":"best"})").find("optimal"), std::string::npos);
  EXPECT_TRUE(mistake(R"({"name":"best"})").starts_with("controller: "));
  EXPECT_TRUE(
      mistake(R"({"name":"max","settings":{"tolerence":1}})").starts_with("controller.settings: "))
      << mistake(R"({"name":"max","settings":{"tolerence":1}})");
  EXPECT_TRUE(mistake(R"({"name":"max","period_ns":5})").starts_with("controller.period_ns: "));
  EXPECT_TRUE(mistake(R"({"name":"max","period":5})").starts_with("controller"));
  EXPECT_TRUE(mistake(R"({"name":"remote"})").starts_with("controller: a program"));
}

TEST_F(RequestsTest, ApplyTellsWhatChangesOfALiveTrigger) {
  result("set", R"({"what":"trigger","module":"ttl","trigger_pkts":4})");
  const Value applied = result("apply", std::string(R"({"dry_run":true,"pipeline":)") +
                                            to_json(parse_json(kPipeline, "first")) + "}");
  const Value& difference = applied["difference"];
  EXPECT_EQ(difference["changed"], parse_json(R"(["ttl"])", "expected")) << to_json(applied);
  EXPECT_EQ(difference["kept"].as_list().size(), 2U);
}

TEST_F(RequestsTest, CheckNamesMistakesWithTheirLines) {
  std::string bad = kPipeline;
  bad.replace(bad.find(R"("kind": "ttl")"), 13, R"("kind": "tll")");
  const Value checked = result("check", R"({"pipeline":)" + to_json(parse_json(bad, "bad")) + "}");
  ASSERT_FALSE(checked["errors"].as_list().empty());
  EXPECT_EQ(checked["errors"].as_list()[0]["where"].as_string(), "modules.ttl.kind (small.yaml:4)");
}

TEST_F(RequestsTest, ApplySwapsTheGraphAndKeepsTheCounts) {
  loop(10);
  Dict next = parse_json(kPipeline, "next").as_dict();
  Dict modules = next["modules"].as_dict();
  modules["count"] = Dict{{"kind", "counter"}};
  next["modules"] = modules;
  next["edges"] = parse_json(R"([{"from":"in","to":"ttl"},{"from":"ttl","to":"count"},
                                 {"from":"count","to":"out"}])",
                             "edges");
  next["flows"] = parse_json(R"([{"name":"f","path":["in","ttl","count","out"]}])", "flows");
  const Value applied = result("apply", R"({"pipeline":)" + to_json(next) + "}");
  EXPECT_TRUE(applied["applied"].as_bool());
  EXPECT_EQ(applied["difference"]["added"].as_list().front().as_string(), "count");
  loop(10);
  const Value runtime = result("show", R"({"what":"runtime"})");
  EXPECT_EQ(runtime["balance"]["in_pkts"].as_int(), 160);
  EXPECT_TRUE(runtime["balance"]["is_exact"].as_bool());
  EXPECT_EQ(row(runtime["modules"], "name", "count")["pkts"].as_int(), 80);
}

TEST_F(RequestsTest, AnApplyWithAMistakeChangesNothing) {
  std::string bad = kPipeline;
  bad.replace(bad.find(R"("to": "out")"), 11, R"("to": "ouy")");
  const std::string why =
      refusal("apply", R"({"pipeline":)" + to_json(parse_json(bad, "bad")) + "}");
  EXPECT_NE(why.find("no module 'ouy'"), std::string::npos) << why;
  loop(3);
  EXPECT_EQ(result("show", R"({"what":"runtime"})")["balance"]["sent_pkts"].as_int(), 24);
}

TEST_F(RequestsTest, TraceRefusesABadFilter) {
  const std::string why = refusal("trace", R"({"filter":"udp adn port 5","timeout_ns":1})");
  EXPECT_NE(why.find("is no filter"), std::string::npos) << why;
  EXPECT_NE(refusal("trace", R"({"count":0})"), "");
  EXPECT_NE(refusal("trace", R"({"count":128})"), "");
}

TEST_F(RequestsTest, BulkEditsNeedTheirToken) {
  EXPECT_NE(refusal("bulk", R"({"phase":"begin","module":"nobody","verb":"add"})"), "");
  const Value begun = result("bulk", R"({"phase":"begin","module":"ttl","verb":"add"})");
  const std::string token = begun["token"].as_string();
  EXPECT_EQ(result("bulk", R"({"phase":"append","items":[1,2],"token":")" + token + "\"}")["count"]
                .as_int(),
            2);
  EXPECT_EQ(result("bulk", R"({"phase":"append","items":[3],"token":")" + token + "\"}")["count"]
                .as_int(),
            3);
  result("bulk", R"({"phase":"abort","token":")" + token + "\"}");
  EXPECT_NE(refusal("bulk", R"({"phase":"commit","token":")" + token + "\"}"), "");
  EXPECT_NE(refusal("bulk", R"({"phase":"halt"})"), "");
}

TEST_F(RequestsTest, TheLastReportAddsUpWithPacketsHeld) {
  result("set", R"({"what":"trigger","module":"ttl","trigger_pkts":30})");
  result("set", R"({"what":"idle","mode":"hold"})");
  loop(3);
  EXPECT_GT(row(result("show", R"({"what":"buffers"})")["buffers"], "module", "ttl")["held_pkts"]
                .as_int(),
            0);
  result("module", R"({"module":"in","verb":"off"})");
  const Value report = runtime_->stop();
  EXPECT_TRUE(runtime_->is_balanced());
  EXPECT_EQ(report["balance"]["sent_pkts"].as_int(), 24);
  EXPECT_EQ(report["balance"]["held_pkts"].as_int(), 0);
  EXPECT_EQ(report["pool"]["free_pkts"].as_int(), report["pool"]["size_pkts"].as_int());
}

class TwoWorkersTest : public RequestsTest {
 protected:
  TwoWorkersTest() : RequestsTest(2) {}
};

TEST_F(TwoWorkersTest, APartIsMovedAndSavedWhereItRuns) {
  loop(3);
  const Value moved = result("move", R"({"parts":[{"module":"out","worker":"w1"}]})");
  ASSERT_EQ(moved["moved"].as_list().size(), 1U);
  EXPECT_EQ(moved["moved"].as_list()[0]["module"].as_string(), "out");
  EXPECT_EQ(moved["moved"].as_list()[0]["to"].as_string(), "w1");
  loop(20);
  const Value saved = result("save");
  EXPECT_EQ(saved["modules"]["out"]["worker"].as_string(), "w1");
  EXPECT_FALSE(saved["modules"].has("out/in")) << "nobody has written that";
  // The saved pipeline equals the running one.
  const Value applied = result("apply", R"({"pipeline":)" + to_json(saved) + R"(,"dry_run":true})");
  EXPECT_TRUE(applied["difference"]["moved"].as_list().empty());
  EXPECT_TRUE(applied["difference"]["added"].as_list().empty());
  const Value back = result("move", R"({"parts":[{"module":"out","worker":"w0"}]})");
  EXPECT_EQ(back["moved"].as_list().size(), 1U);
  EXPECT_FALSE(result("save")["modules"]["out"].has("worker"));
  loop(20);
  EXPECT_TRUE(result("show", R"({"what":"runtime"})")["balance"]["is_exact"].as_bool());
}

TEST_F(TwoWorkersTest, MovesThatCannotBeAreRefused) {
  EXPECT_NE(
      refusal("move", R"({"parts":[{"module":"ouy","worker":"w1"}]})").find("did you mean 'out'"),
      std::string::npos);
  EXPECT_NE(refusal("move", R"({"parts":[{"module":"out","worker":"w7"}]})").find("no worker 'w7'"),
            std::string::npos);
  refusal("move", R"({"parts":[]})");
  refusal("move", R"({"parts":[7]})");
  refusal("move");
  // All or none.
  refusal("move", R"({"parts":[{"module":"out","worker":"w1"},{"module":"ouy","worker":"w1"}]})");
  EXPECT_FALSE(result("save")["modules"]["out"].has("worker"));
}

TEST(ParseRequest, RefusesInvalidRequests) {
  for (const char* line :
       {"", "7", "[]", "{}", R"({"v":2,"cmd":"hello"})", R"({"v":1})", R"({"v":1,"cmd":3})",
        R"({"v":1,"cmd":"hello","args":[]})", R"({"v":1,"cmd":"hello","extra":1})", "{\"v\":1"}) {
    Value id;
    EXPECT_THROW((void)parse_request(line, id), ConfigError) << line;
  }
}

TEST(ParseRequest, KnowsTheIdEvenOfABadOne) {
  Value id;
  EXPECT_THROW((void)parse_request(R"({"v":9,"id":"x","cmd":"hello"})", id), ConfigError);
  EXPECT_EQ(id.as_string(), "x");
}

TEST_F(RequestsTest, CostsGivenAsTablesKeepTheirShape) {
  result("set", R"({"what":"controller","name":"optimal","costs":{
      "ttl":{"cost_per_batch_ns":30,"cost_per_pkt_ns":4,"table_ns":[40,40,40,40,90],
             "table_pkts":[1,2,4,8,9]},
      "out":"ttl", "in":{"table_ns":[12,14,16]}}})");
  const Value costs = result("show", R"({"what":"costs"})")["costs"];
  for (const char* name : {"ttl", "out"}) {
    const CostLaw law = cost_law_from(row(costs, "module", name), name);
    EXPECT_EQ(law, CostLaw({{1, 40}, {2, 40}, {4, 40}, {8, 40}, {9, 90}}, {30, 4})) << name;
  }
  EXPECT_NEAR(row(costs, "module", "in")["cost_per_batch_ns"].as_double(), 10, 1e-9)
      << "a table without a line gets one";
  const std::string alias = refusal("set", R"({"what":"controller","name":"max",
      "costs":{"ttl":"out"}})");
  EXPECT_NE(alias.find("no cost is given for 'out'"), std::string::npos) << alias;
}

TEST_F(RequestsTest, CostsOfHopsAreTwoTimes) {
  const auto with = [](const std::string& hop) {
    return R"({"what":"controller","name":"max","hop_costs":)" + hop + "}";
  };
  result("set", with(R"({"hop_send_per_pkt_ns":12,"hop_take_per_pkt_ns":0})"));
  EXPECT_NE(refusal("set", with(R"({"hop_send_per_pkt_ns":-1})")).find("expected a cost in ns"),
            std::string::npos);
  EXPECT_NE(refusal("set", with(R"({"send":1})")).find("unknown cost"), std::string::npos);
  EXPECT_NE(refusal("set", with("[1]")).find("hop_costs"), std::string::npos);
}

TEST_F(RequestsTest, AControllerIsChosenSteppedAndExplained) {
  EXPECT_EQ(result("show", R"({"what":"control"})")["controller"].as_string(), "none");
  EXPECT_NE(refusal("explain").find("no controller is on"), std::string::npos);
  result("set", R"({"what":"controller","name":"optimal","period_ns":1000000,
                    "settings":{"tolerance":0.1},
                    "costs":{"ttl":{"cost_per_batch_ns":30,"cost_per_pkt_ns":4}},
                    "costs_origin":"a test"})");
  for (int i = 0; i < 3; ++i) {
    loop(200);
    runtime_->step_control();
  }
  const Value control = result("show", R"({"what":"control"})");
  EXPECT_EQ(control["controller"].as_string(), "optimal");
  EXPECT_EQ(control["steps"].as_int(), 3);
  EXPECT_EQ(control["failed_steps"].as_int(), 0);
  EXPECT_EQ(control["costs"].as_string(), "a test");
  EXPECT_EQ(control["tolerance"].as_double(), 0.1);
  EXPECT_GT(control["step_ns"]["median"].as_int(), 0);
  const Value slo = row(result("show", R"({"what":"slo"})"), "flow", "f");
  EXPECT_EQ(slo["slo_ns"].as_int(), 1'000'000);
  EXPECT_EQ(slo["pkts"].as_int(), 3 * 200 * 8);
  EXPECT_EQ(slo["state"].as_string(), "met");
  EXPECT_EQ(row(result("explain", R"({"name":"f"})")["flows"], "flow", "f")["slo_ns"].as_double(),
            1e6);
  result("set", R"({"what":"slo","flow":"f","delay_slo_ns":2000000})");
  EXPECT_EQ(row(result("show", R"({"what":"slo"})"), "flow", "f")["pkts"].as_int(), 0)
      << "of the new promise nothing is known yet";
  result("set", R"({"what":"controller","name":"none"})");
  EXPECT_EQ(result("show", R"({"what":"control"})")["controller"].as_string(), "none");
}

TEST_F(RequestsTest, ABadControllerChangesNothing) {
  const std::string unknown = refusal("set", R"({"what":"many","sets":[
      {"what":"trigger","module":"ttl","trigger_pkts":16},
      {"what":"controller","name":"best"}]})");
  for (const char* name : {"no controller 'best'", "optimal", "onoff", "fixed(k)", "none"}) {
    EXPECT_NE(unknown.find(name), std::string::npos) << unknown;
  }
  const Value buffers = result("show", R"({"what":"buffers"})")["buffers"];
  EXPECT_EQ(row(buffers, "module", "ttl")["trigger_pkts"].as_int(), 0);
  const std::string period =
      refusal("set", R"({"what":"controller","name":"max","period_ns":999})");
  EXPECT_NE(period.find("period_ns"), std::string::npos) << period;
  const std::string cost = refusal("set", R"({"what":"controller","name":"max",
      "costs":{"ttl":{"cost_per_batch_ns":-1,"cost_per_pkt_ns":4}}})");
  EXPECT_NE(cost.find("'cost_per_batch_ns' is -1"), std::string::npos) << cost;
  result("set", R"({"what":"controller","name":"max"})");
  const std::string flow = refusal("explain", R"({"name":"tll"})");
  EXPECT_NE(flow.find("did you mean 'ttl'"), std::string::npos) << flow;
}

TEST_F(RequestsTest, LanesAnswerEveryRequestOfAnyKind) {
  std::mutex mutex;
  std::condition_variable something;
  std::vector<std::string> answers;
  bool is_stop = false;
  Requests requests(
      *runtime_,
      [&](ControlSocket::ClientId, std::string line) {
        const std::lock_guard lock(mutex);
        answers.push_back(std::move(line));
        something.notify_all();
      },
      [&](ControlSocket::ClientId, const Value&) {
        const std::lock_guard lock(mutex);
        is_stop = true;
        something.notify_all();
      });
  for (const char* line : {R"({"v":1,"id":1,"cmd":"hello"})", R"({"v":1,"id":2,"cmd":"save"})",
                           R"({"v":1,"id":3,"cmd":"trace","args":{"timeout_ns":1000}})", "nonsense",
                           R"({"v":1,"id":4,"cmd":"show","args":{"what":"tables"}})",
                           R"({"v":1,"id":5,"cmd":"stop"})"}) {
    requests.take(1, line);
  }
  std::unique_lock lock(mutex);
  EXPECT_TRUE(something.wait_for(lock, std::chrono::seconds(20),
                                 [&] { return is_stop && answers.size() == 5; }));
}

}  // namespace
}  // namespace batchplane::app
