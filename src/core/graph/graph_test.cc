// SPDX-License-Identifier: BSD-3-Clause
// graph_test.cc - every mistake that build_graph refuses, with its message.
#include "core/graph/graph.h"

#include <gtest/gtest.h>

#include "ports/ring_port.h"

namespace batchplane {
namespace {

PipelineSpec small() {
  PipelineSpec spec;
  spec.modules = {{"in", "source", {}}, {"a", "null", {}}, {"out", "sink", {}}};
  spec.edges = {{"in", "0", "a"}, {"a", "0", "out"}};
  return spec;
}

std::string lines(const PipelineSpec& spec) {
  try {
    build_graph(spec, std::make_unique<Environment>());
  } catch (const ConfigErrors& mistakes) {
    std::string all;
    for (const ConfigError& mistake : mistakes.errors) all += mistake.line() + "\n";
    return all;
  }
  return "";
}

void expect_mistake(const PipelineSpec& spec, const std::string& part) {
  const std::string all = lines(spec);
  EXPECT_NE(all.find(part), std::string::npos) << "found only: " << all;
}

TEST(BuildGraph, TakesAPlainPipeline) { EXPECT_EQ(lines(small()), ""); }

TEST(BuildGraph, NamesUnknownKindsAndWhatWasMeant) {
  PipelineSpec spec = small();
  spec.modules[1].kind = "nul";
  expect_mistake(spec, "modules.a.kind: unknown kind 'nul' (did you mean 'null'?)");
  spec.modules[1].kind = "zzzzzzzzzz";
  expect_mistake(spec, "unknown kind 'zzzzzzzzzz' (`batchplane modules` lists the kinds)");
}

TEST(BuildGraph, ReportsAllMistakesAtOnceWithTheirPlaces) {
  PipelineSpec spec = small();
  spec.source_map["modules.a"] = "x.yaml:7";
  spec.modules[1].params = {{"colour", 3}};
  spec.modules[2].kind = "zink";
  spec.modules.push_back({"in", "source", {}});
  expect_mistake(spec, "modules.a.params.colour (x.yaml:7): unknown parameter 'colour'");
  expect_mistake(spec, "unknown kind 'zink' (did you mean 'sink'?)");
  expect_mistake(spec, "there are two modules of this name");
}

TEST(BuildGraph, ChecksTriggersAndBatchSize) {
  PipelineSpec spec = small();
  spec.modules[1].trigger_pkts = 33;
  expect_mistake(spec, "trigger 33 is more than a batch (at most engine.batch_pkts = 32)");
  spec = small();
  spec.modules[0].trigger_pkts = 4;
  expect_mistake(spec, "a source has no buffer (set the trigger at a module after it)");
  spec = small();
  for (const uint32_t batch_pkts : {0U, 257U}) {
    spec.engine.batch_pkts = batch_pkts;
    expect_mistake(
        spec, "engine.batch_pkts: batch size " + std::to_string(batch_pkts) + " is out of range");
  }
}

TEST(BuildGraph, ChecksPollLimits) {
  PipelineSpec spec = small();
  spec.modules[0].poll_pkts = 33;
  expect_mistake(spec,
                 "modules.in.poll_pkts: a poll of 33 is more than a batch (at most "
                 "engine.batch_pkts = 32)");
  spec = small();
  spec.modules[1].poll_pkts = 4;
  expect_mistake(spec,
                 "modules.a.poll_pkts: a null is not polled (set poll_pkts at the input or "
                 "queue that brings its packets)");
}

TEST(BuildGraph, ChecksEdges) {
  PipelineSpec spec = small();
  spec.edges.push_back({"a", "0", "out"});
  expect_mistake(spec, "edges[2]: 'a' is joined to 'out' twice (remove one)");
  spec.modules.push_back({"out2", "sink", {}});
  spec.edges[2] = {"a", "0", "out2"};
  expect_mistake(spec, "gate 0 of 'a' leads to both 'out' and 'out2'");
  spec.modules.pop_back();
  spec.edges[2] = {"a", "1", "out"};
  expect_mistake(spec, "'a' (null) has no gate 1 (it has gate 0: a -> ...)");
  spec.edges[2] = {"a", "left", "out"};
  expect_mistake(spec, "'a' (null) has no gate 'left'");
  spec.edges[2] = {"b", "0", "out"};
  expect_mistake(spec, "there is no module 'b'");
  spec.edges[2] = {"out", "0", "a"};
  expect_mistake(spec, "'out' (sink) ends the path: nothing comes after it");
  spec.edges[2] = {"a", "drop", "in"};
  expect_mistake(spec, "'in' (source) is an input: nothing can lead to it");
  spec.edges[2] = {"in", "drop", "out"};
  expect_mistake(spec, "'in' (source) is an input: it drops nothing");
  spec.edges.pop_back();
  spec.modules.push_back({"s", "split", {{"gates", 2}}});
  spec.edges[1] = {"a", "0", "s"};
  spec.edges.push_back({"s", "65535", "out"});
  expect_mistake(spec, "gate 65535 is out of range 0 .. 65534");
}

TEST(BuildGraph, FindsDeadWaysCyclesAndWhatNothingReaches) {
  PipelineSpec spec = small();
  spec.edges.pop_back();
  expect_mistake(spec, "nothing comes after 'a': its packets are dropped");
  spec = small();
  spec.edges[1] = {"a", "0", "b"};
  spec.modules.push_back({"b", "split", {{"gates", 2}}});
  spec.edges.push_back({"b", "0", "out"});
  spec.edges.push_back({"b", "1", "a"});
  expect_mistake(spec,
                 "edges[3]: the graph has a cycle: a -> b -> a (tasks are acyclic; put a queue "
                 "module into the loop)");
  spec = small();
  spec.modules.push_back({"lost", "null", {}});
  spec.edges.push_back({"lost", "0", "out"});
  expect_mistake(spec, "modules.lost: no packet can reach 'lost'");
  spec = small();
  spec.modules.push_back({"x", "null", {}});
  spec.modules.push_back({"y", "sink", {}});
  spec.edges.push_back({"x", "0", "y"});
  expect_mistake(spec, "no packet can reach 'x'");
  expect_mistake(spec, "no packet can reach 'y'");
}

TEST(BuildGraph, ChecksWorkers) {
  PipelineSpec spec = small();
  spec.workers = {{"w0", -1}, {"w1", -1}};
  spec.modules[0].worker = "w7";
  expect_mistake(spec, "modules.in.worker: there is no worker 'w7'");
  spec.modules[0].worker = "w0";
  spec.modules.push_back({"in2", "source", {}});
  spec.modules.back().worker = "w1";
  spec.edges.push_back({"in2", "0", "a"});
  expect_mistake(spec, "inputs of one task are given to workers 'w0' and 'w1'");
  spec = small();
  spec.modules[0].worker = "w0";
  EXPECT_EQ(lines(spec), "") << "the one worker that there is without any declared";
}

std::string lines_with_ports(const PipelineSpec& spec) {
  auto env = std::make_unique<Environment>();
  for (const char* name : {"p", "q"}) env->ports[name] = std::make_shared<RingPort>(64, false);
  try {
    build_graph(spec, std::move(env));
  } catch (const ConfigErrors& mistakes) {
    std::string all;
    for (const ConfigError& mistake : mistakes.errors) all += mistake.line() + "\n";
    return all;
  }
  return "";
}

// Two inputs and two ends, each on a worker of its own.
PipelineSpec two_tasks(const char* in, const char* in2, const char* out, const char* out2) {
  PipelineSpec spec;
  spec.workers = {{"w0", -1}, {"w1", -1}};
  spec.modules = {{"in", "port_in", {{"port", in}}},
                  {"out", "port_out", {{"port", out}}},
                  {"in2", "port_in", {{"port", in2}}},
                  {"out2", "port_out", {{"port", out2}}}};
  spec.modules[0].worker = "w0";
  spec.modules[2].worker = "w1";
  spec.edges = {{"in", "0", "out"}, {"in2", "0", "out2"}};
  return spec;
}

TEST(BuildGraph, GivesEachEndOfAPortToOneWorker) {
  EXPECT_EQ(lines_with_ports(two_tasks("p", "q", "q", "p")), "");
  EXPECT_EQ(lines_with_ports(two_tasks("p", "p", "p", "q")),
            "modules.in2: port 'p' is polled by 'in' on worker w0 and by 'in2' on worker w1 (one "
            "worker polls a port: put both on one, or hand packets on by a queue)\n");
  EXPECT_EQ(lines_with_ports(two_tasks("p", "q", "p", "p")),
            "modules.out2: port 'p' is sent into by 'out' on worker w0 and by 'out2' on worker w1 "
            "(one worker sends into a port: put both on one, or join them by a queue)\n");
  PipelineSpec spec = two_tasks("p", "p", "p", "p");
  spec.modules[2].worker = "w0";
  EXPECT_EQ(lines_with_ports(spec), "") << "one thread has them all";
}

// in -> s -> {a, b} -> out
PipelineSpec diamond() {
  PipelineSpec spec;
  spec.modules = {{"in", "source", {}},
                  {"s", "split", {{"gates", 2}}},
                  {"a", "null", {}},
                  {"b", "null", {}},
                  {"out", "sink", {}}};
  spec.edges = {
      {"in", "0", "s"}, {"s", "0", "a"}, {"s", "1", "b"}, {"a", "0", "out"}, {"b", "0", "out"}};
  return spec;
}

TEST(BuildGraph, CompletesPathsThatHaveOneWayOnly) {
  PipelineSpec spec = diamond();
  spec.flows = {{"f", {"in", "a", "out"}, 0}, {"g", {"in", "s:1", "out"}, 0}};
  const auto graph = build_graph(spec, std::make_unique<Environment>());
  EXPECT_EQ(graph->flow_paths[0], (std::vector<std::string>{"in", "s", "a", "out"}));
  EXPECT_EQ(graph->flow_paths[1], (std::vector<std::string>{"in", "s", "b", "out"}));
}

TEST(BuildGraph, FollowsPaths) {
  PipelineSpec spec = diamond();
  spec.flows = {{"f", {"in", "s", "a", "out"}, 0}, {"g", {"in", "s:1", "b", "out"}, 0}};
  const auto graph = build_graph(spec, std::make_unique<Environment>());
  EXPECT_EQ(graph->flow_paths[0], (std::vector<std::string>{"in", "s", "a", "out"}));
  EXPECT_EQ(graph->flow_paths[1], (std::vector<std::string>{"in", "s", "b", "out"}));
  EXPECT_EQ(graph->flow_names, (std::vector<std::string>{"f", "g", "other"}));
}

TEST(Stagger, SpreadsFirstReleasesOverTheTrigger) {
  EXPECT_EQ(stagger(0, 3), 0U);
  for (const uint32_t q : {1U, 2U, 7U, 32U, 256U}) {
    std::vector<uint32_t> seen(q + 1);
    for (uint32_t position = 0; position < 1024; ++position) {
      const uint32_t first = stagger(q, position);
      ASSERT_GE(first, 1U);
      ASSERT_LE(first, q);
      ++seen[first];
    }
    for (uint32_t first = 1; first <= q; ++first)
      EXPECT_NEAR(seen[first], 1024.0 / q, 1.01) << "of " << q;
  }
  EXPECT_EQ(stagger(32, 0), 32U);
  EXPECT_EQ(stagger(32, 1), 16U);
}

}  // namespace
}  // namespace batchplane
