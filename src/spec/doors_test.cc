// SPDX-License-Identifier: BSD-3-Clause
// doors_test.cc - a queue that several workers fill has a door for each of them except the first.
#include "spec/doors.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace batchplane {
namespace doors_test {

Kinds kinds() {
  Kinds known;
  known.modules["queue"] = {.shape = Shape::kQueue};
  return known;
}

// Inputs on two workers, through a module each, into one queue on the third.
PipelineSpec joined() {
  PipelineSpec spec;
  spec.workers = {{"w0", -1}, {"w1", -1}, {"w2", -1}};
  spec.modules = {{"a", "source", {}}, {"b", "source", {}}, {"ma", "null", {}},
                  {"mb", "null", {}},  {"q", "queue", {}},  {"out", "sink", {}}};
  spec.modules[1].worker = "w1";
  spec.modules[4].worker = "w2";
  spec.modules[4].trigger_pkts = 4;
  spec.edges = {
      {"a", "0", "ma"}, {"ma", "0", "q"}, {"b", "0", "mb"}, {"mb", "0", "q"}, {"q", "0", "out"}};
  spec.flows = {
      {"fa", {"a", "q", "out"}, 0}, {"fb", {"b", "q", "out"}, 0}, {"short", {"b", "out"}, 0}};
  return spec;
}

std::vector<std::string> names(const PipelineSpec& spec) {
  std::vector<std::string> all;
  for (const ModuleSpec& module : spec.modules) all.push_back(module.name);
  return all;
}
std::vector<std::string> edges(const PipelineSpec& spec) {
  std::vector<std::string> all;
  for (const EdgeSpec& edge : spec.edges)
    all.push_back(edge.from + ":" + edge.gate + " " + edge.to);
  return all;
}

TEST(Doors, AreAddedForEachFurtherWorker) {
  PipelineSpec spec = joined();
  add_doors(spec, kinds());
  EXPECT_EQ(names(spec), (std::vector<std::string>{"a", "b", "ma", "mb", "q", "out", "q@w1"}));
  EXPECT_EQ(edges(spec), (std::vector<std::string>{"a:0 ma", "ma:0 q", "b:0 mb", "mb:0 q@w1",
                                                   "q:0 out", "q@w1:0 out"}));
  EXPECT_EQ(spec.modules.back().door_of, "q");
  EXPECT_EQ(spec.modules.back().worker, "w2");
  EXPECT_EQ(spec.modules.back().trigger_pkts, 4U);
  EXPECT_EQ(spec.flows[0].path, (std::vector<std::string>{"a", "q", "out"}));
  EXPECT_EQ(spec.flows[1].path, (std::vector<std::string>{"b", "q@w1", "out"}));
  EXPECT_EQ(spec.flows[2].path, (std::vector<std::string>{"b", "out"}));
}

// Two ways lead from the first module to the queue, one of them through a module on another worker.
TEST(Doors, PathsGoInWhereTheirGateLeads) {
  PipelineSpec spec = joined();
  spec.edges.push_back({"ma", "1", "r"});
  spec.edges.push_back({"r", "0", "mb"});
  spec.modules.push_back({"r", "queue", {}});
  spec.modules.back().worker = "w1";
  spec.flows = {{"direct", {"a", "ma:0", "q", "out"}, 0},
                {"round", {"a", "ma:1", "q", "out"}, 0},
                {"whichever", {"a", "ma", "q", "out"}, 0}};
  add_doors(spec, kinds());
  EXPECT_EQ(spec.flows[0].path[2], "q");
  EXPECT_EQ(spec.flows[1].path[2], "q@w1");
  EXPECT_EQ(spec.flows[2].path[2], "q");
}

TEST(Doors, AreTakenAwayAgain) {
  PipelineSpec spec = joined();
  add_doors(spec, kinds());
  const PipelineSpec written = without_doors(spec);
  EXPECT_EQ(names(written), names(joined()));
  EXPECT_EQ(edges(written), edges(joined()));
  EXPECT_EQ(written.flows[1].path, joined().flows[1].path);
}

TEST(Doors, OneWorkerNeedsNone) {
  PipelineSpec spec = joined();
  spec.modules[1].worker = "w0";
  add_doors(spec, kinds());
  EXPECT_EQ(names(spec), names(joined()));
}

// Inputs and queues lead into the queue without a module between them.
TEST(Doors, KnowTheWorkerOfAnInputAndOfAQueue) {
  PipelineSpec spec = joined();
  spec.edges = {{"a", "0", "q"}, {"b", "0", "q0"}, {"q0", "0", "q"}, {"q", "0", "out"}};
  spec.modules[2] = {"q0", "queue", {}};
  spec.modules[2].worker = "w2";
  spec.modules.erase(spec.modules.begin() + 3);
  spec.flows = {{"fb", {"b", "q", "out"}, 0}};
  add_doors(spec, kinds());
  EXPECT_EQ(edges(spec),
            (std::vector<std::string>{"a:0 q", "b:0 q0", "q0:0 q@w2", "q:0 out", "q@w2:0 out"}));
  EXPECT_EQ(spec.flows[0].path, (std::vector<std::string>{"b", "q@w2", "out"}));
}

// A queue's dropped packets continue in the one task that fills it.
TEST(Doors, AQueueWithADropGateHasNone) {
  PipelineSpec spec = joined();
  spec.edges.push_back({"q", "drop", "out"});
  const auto before = edges(spec);
  add_doors(spec, kinds());
  EXPECT_EQ(edges(spec), before);
}

TEST(Doors, MistakesAreLeftToTheChecks) {
  PipelineSpec spec = joined();
  spec.edges.push_back({"nowhere", "0", "q"});
  spec.edges.push_back({"ma", "1", "nobody"});
  spec.modules[4].worker = "w9";
  add_doors(spec, kinds());
  EXPECT_EQ(spec.modules.back().name, "q@w1");
}

}  // namespace doors_test
}  // namespace batchplane
