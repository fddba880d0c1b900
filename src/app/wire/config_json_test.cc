// SPDX-License-Identifier: BSD-3-Clause
// config_json_test.cc - pipelines from and to JSON: round trip, and every kind of mistake, all at once.
#include "spec/config_json.h"

#include <gtest/gtest.h>

#include "app/wire/json_value.h"
#include "app/wire/messages.h"
#include "base/rng.h"

namespace batchplane::app {
namespace {

const char* const kFull = R"({
  "version": 1, "name": "full",
  "engine": {"batch_pkts": 64, "pool_pkts": 5000, "idle": "hold", "stranding_limit_ns": 7,
             "sample_one_run_in": 3, "seed": 9,
             "execution": {"mode": "wfq", "schedule_by": "count", "backpressure": "early_drop",
                           "queue_pkts": 200, "high_watermark_percent": 70,
                           "low_watermark_percent": 30, "queueing_time_threshold_ns": 100000,
                           "input_weight": 4}},
  "workers": [{"name": "w0", "core": 1},
              {"name": "w1", "execution": {"mode": "run_to_completion"}}],
  "ports": {"p0": {"kind": "ring", "params": {"size_pkts": 64}}},
  "interfaces": [{"name": "lan", "port": "p0", "mac": "02:00:00:00:00:01", "mtu_bytes": 1400,
                  "addresses": ["10.0.0.1/24"]}],
  "modules": {"in": {"kind": "port_in", "params": {"port": "p0"}, "worker": "w0",
                     "poll_pkts": 9},
              "ttl": {"kind": "ttl", "trigger_pkts": 8, "age_limit_ns": 50, "weight": 12,
                      "queue_pkts": 300},
              "out": {"kind": "sink", "age_limit_ns": null}},
  "edges": [{"from": "in", "to": "ttl"}, {"from": "ttl", "gate": 0, "to": "out"},
            {"from": "ttl", "gate": "drop", "to": "out"}],
  "flows": [{"name": "f0", "path": ["in", "ttl", "out"], "delay_slo_ns": 1000}],
  "generators": [{"name": "g0", "port": "p0", "core": 0, "params": {"rate_pps": 1.5}}],
  "source_map": {"modules.ttl": "x.yaml:12"}
})";

struct Parsed {
  PipelineSpec spec;
  std::vector<ConfigError> errors;
};

Parsed parse(const std::string& text) {
  Parsed parsed;
  parsed.spec = spec_from_value(parse_json(text, "test"), parsed.errors);
  return parsed;
}

// The lines of all mistakes, for comparison.
std::string lines(const Parsed& parsed) {
  std::string text;
  for (const ConfigError& error : parsed.errors)
    text += error_line(error, parsed.spec.source_map) + "\n";
  return text;
}

std::string mistakes_in_module(const std::string& module) {
  return lines(parse(R"({"version":1,"modules":{"a":)" + module + "}}"));
}

TEST(ConfigJson, RefusesBadScheduling) {
  const auto of_engine = [](const std::string& execution) {
    return lines(parse(R"({"version":1,"modules":{},"engine":{"execution":)" + execution + "}}"));
  };
  EXPECT_EQ(of_engine(R"({"mode":"fair"})"),
            "engine.execution.mode: 'fair' is unknown (run_to_completion or wfq)\n");
  EXPECT_EQ(of_engine(R"({"backpressure":"yes"})"),
            "engine.execution.backpressure: 'yes' is unknown (off, on or early_drop)\n");
  EXPECT_EQ(of_engine(R"({"input_weight":0})"),
            "engine.execution.input_weight: 0 is out of range (1 to 1024)\n");
  EXPECT_EQ(of_engine(R"({"queue_pkts":63})"),
            "engine.execution.queue_pkts: a queue of 63 packets has no room for two batches "
            "(64 at least (engine.batch_pkts is 32))\n");
  EXPECT_EQ(of_engine(R"({"high_watermark_percent":20})"),
            "engine.execution.low_watermark_percent: the low watermark is above the high one "
            "(give one below high_watermark_percent)\n");
  EXPECT_EQ(lines(parse(R"({"version":1,"modules":{},"engine":{"run_order":"deadline",
                           "execution":{"mode":"wfq"}}})")),
            "engine.run_order: under execution: wfq units take turns by weight "
            "(run_order: depth, or execution: run_to_completion)\n");
  EXPECT_EQ(lines(parse(R"({"version":1,"modules":{},"engine":{"run_order":"deadline"}})")), "");
  EXPECT_EQ(mistakes_in_module(R"({"kind":"ttl","weight":0})"),
            "modules.a.weight: 0 is out of range (1 to 1024)\n");
  EXPECT_EQ(mistakes_in_module(R"({"kind":"ttl","weight":1025})"),
            "modules.a.weight: 1025 is out of range (1 to 1024)\n");
  for (const char* pkts : {"0", "257"}) {
    EXPECT_EQ(mistakes_in_module(std::string(R"({"kind":"source","poll_pkts":)") + pkts + "}"),
              std::string("modules.a.poll_pkts: ") + pkts + " is out of range (1 to 256)\n");
    EXPECT_EQ(
        mistakes_in_module(std::string(R"({"kind":"ttl","in_queue":{"poll_pkts":)") + pkts + "}}"),
        std::string("modules.a.in_queue.poll_pkts: ") + pkts + " is out of range (1 to 256)\n");
  }
}

TEST(ConfigJson, ReadsEverything) {
  const Parsed parsed = parse(kFull);
  EXPECT_EQ(lines(parsed), "");
  const PipelineSpec& spec = parsed.spec;
  EXPECT_EQ(spec.engine.batch_pkts, 64U);
  EXPECT_TRUE(spec.engine.is_idle_hold);
  const exec::Scheduling& how = spec.engine.execution;
  EXPECT_TRUE(how.is_weighted_fair());
  EXPECT_EQ(how.by, exec::ScheduleBy::kCount);
  EXPECT_EQ(how.backpressure, exec::Backpressure::kEarlyDrop);
  EXPECT_EQ(how.queue_pkts, 200U);
  EXPECT_EQ(how.high_watermark_percent, 70U);
  EXPECT_EQ(how.low_watermark_percent, 30U);
  EXPECT_EQ(how.queueing_time_threshold_ns, 100'000U);
  EXPECT_EQ(how.input_weight, 4U);
  // A worker inherits the engine's settings for those that it does not set.
  EXPECT_FALSE(spec.scheduling_of("w1").is_weighted_fair());
  EXPECT_EQ(spec.scheduling_of("w1").queue_pkts, 200U);
  EXPECT_EQ(spec.scheduling_of("w0"), how);
  EXPECT_EQ(spec.workers[1].core, -1);
  ASSERT_EQ(spec.modules.size(), 3U);
  EXPECT_EQ(spec.modules[0].poll_pkts, 9U);
  EXPECT_EQ(spec.modules[2].name, "ttl");
  EXPECT_EQ(spec.modules[2].age_limit_ns, 50U);
  EXPECT_EQ(spec.modules[1].age_limit_ns, 0U);
  EXPECT_EQ(spec.edges[0].gate, "0");
  EXPECT_EQ(spec.edges[2].gate, "drop");
  EXPECT_EQ(spec.generators[0].params.at("rate_pps").as_double(), 1.5);
}

TEST(ConfigJson, RoundTripLosesNothing) {
  const Value once = spec_to_value(parse(kFull).spec);
  std::vector<ConfigError> errors;
  const Value twice = spec_to_value(spec_from_value(parse_json(to_json(once), "again"), errors));
  EXPECT_TRUE(errors.empty());
  EXPECT_EQ(once, twice);
  EXPECT_EQ(once["modules"]["ttl"]["trigger_pkts"].as_int(), 8);
  EXPECT_TRUE(once["modules"]["out"]["age_limit_ns"].is_null());
  EXPECT_EQ(once["edges"].as_list()[1]["gate"].as_int(), 0);
}

TEST(ConfigJson, NamesEveryMistakeAtOnce) {
  const Parsed parsed = parse(R"({"version": 2, "naem": "x",
    "engine": {"batch_pkts": 0, "idle": "maybe"},
    "modules": {"a": {"knd": "ttl", "trigger_pkts": -1}},
    "edges": [{"from": "a"}, 7],
    "flows": [{"name": "other", "path": ["a", 3]}]})");
  const std::string all = lines(parsed);
  for (const char* part :
       {"version: ", "did you mean 'name'?", "engine.batch_pkts: 0 is out of range (1 to 256)",
        "engine.idle: 'maybe' is no idle mode", "modules.a: 'kind' is missing",
        "did you mean 'kind'?", "modules.a.trigger_pkts: -1 is out of range",
        "edges[0]: 'to' is missing", "edges[1]: expected a mapping, found an integer",
        "flows[0].path[1]: expected a string, found an integer"}) {
    EXPECT_NE(all.find(part), std::string::npos) << part << "\n in\n" << all;
  }
}

TEST(ConfigJson, RefusesWrongTypesAndRanges) {
  EXPECT_NE(mistakes_in_module("[]"), "");
  EXPECT_NE(mistakes_in_module(R"({"kind": 3})"), "");
  EXPECT_NE(mistakes_in_module(R"({"kind": ""})"), "");
  EXPECT_NE(mistakes_in_module(R"({"kind": "ttl", "params": []})"), "");
  EXPECT_NE(mistakes_in_module(R"({"kind": "ttl", "trigger_pkts": 257})"), "");
  EXPECT_NE(mistakes_in_module(R"({"kind": "ttl", "trigger_pkts": 1.5})"), "");
  EXPECT_NE(mistakes_in_module(R"({"kind": "ttl", "age_limit_ns": 0})"), "");
  EXPECT_NE(mistakes_in_module(R"({"kind": "ttl", "worker": 1})"), "");
  EXPECT_EQ(mistakes_in_module(R"({"kind": "ttl", "age_limit_ns": null})"), "");
}

TEST(ConfigJson, RefusesNamesThatStandTwice) {
  const std::string all = lines(parse(R"({"version": 1, "modules": {},
    "flows": [{"name": "f"}, {"name": "f"}], "workers": [{"name": "w"}, {"name": "w"}],
    "interfaces": [{"name": "i"}, {"name": "i"}]})"));
  EXPECT_NE(all.find("workers[1]: the name 'w' is used twice"), std::string::npos) << all;
  EXPECT_NE(all.find("interfaces[1]"), std::string::npos);
}

TEST(ConfigJson, PutsTheLineOfTheUsersFileInFront) {
  const std::string all = lines(parse(R"({"version": 1,
    "modules": {"ttl": {"kind": "ttl", "triger_pkts": 3}},
    "source_map": {"modules.ttl": "l.yaml:12", "modules.ttl.triger_pkts": "l.yaml:13"}})"));
  EXPECT_EQ(all,
            "l.yaml:13: modules.ttl.triger_pkts: unknown key 'triger_pkts' (did you mean "
            "'trigger_pkts'?)\n");
}

TEST(ConfigJson, TakesTheLineOfWhatEncloses) {
  const std::string all = lines(parse(R"({"version": 1, "modules": {"a": {"kind": 1}},
    "source_map": {"modules.a": "l.yaml:5"}})"));
  EXPECT_EQ(all.substr(0, 9), "l.yaml:5:");
}

TEST(ConfigJson, NeverFailsOnMutatedPipelines) {
  const std::string good = kFull;
  Rng rng(11);
  uint32_t with_mistakes = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string text = good;
    text[rng.below(static_cast<uint32_t>(text.size()))] = static_cast<char>(32 + rng.below(95));
    const auto thrown = errors_of([&] { with_mistakes += parse(text).errors.empty() ? 0 : 1; });
    with_mistakes += thrown.empty() ? 0 : 1;
  }
  EXPECT_GT(with_mistakes, 1000U);
}

}  // namespace
}  // namespace batchplane::app
