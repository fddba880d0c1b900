// SPDX-License-Identifier: BSD-3-Clause
// parts_test.cc - a part on another worker has a queue before it, and one behind it where it leads back.
#include "spec/parts.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace batchplane {
namespace parts_test {

Kinds kinds() {
  Kinds known;
  known.modules["queue"] = {.shape = Shape::kQueue};
  known.modules["source"] = {.shape = Shape::kInput};
  return known;
}

// in -> split, which leads to a -> ea and b -> eb; both drop into bad.
PipelineSpec forked() {
  PipelineSpec spec;
  spec.workers = {{"w0", -1}, {"w1", -1}, {"w2", -1}};
  for (const char* name : {"in", "split", "a", "ea", "b", "eb", "bad"}) {
    spec.modules.push_back({name, std::string(name) == "in" ? "source" : "null", {}});
  }
  spec.edges = {{"in", "0", "split"}, {"split", "0", "a"},  {"split", "1", "b"}, {"a", "0", "ea"},
                {"b", "0", "eb"},     {"a", "drop", "bad"}, {"b", "drop", "bad"}};
  spec.flows = {{"fa", {"in", "split:0", "a", "ea"}, 0}, {"fb", {"in", "split", "b", "eb"}, 0}};
  return spec;
}

ModuleSpec& at(PipelineSpec& spec, const std::string& name) {
  return *std::ranges::find(spec.modules, name, &ModuleSpec::name);
}
std::vector<std::string> queues(const PipelineSpec& spec) {
  std::vector<std::string> all;
  for (const ModuleSpec& module : spec.modules) {
    if (!module.leads_to.empty()) all.push_back(module.name + " " + module.worker);
  }
  return all;
}
bool has_edge(const PipelineSpec& spec, const std::string& from, const std::string& gate,
              const std::string& to) {
  return std::ranges::any_of(spec.edges, [&](const EdgeSpec& edge) {
    return edge.from == from && edge.gate == gate && edge.to == to;
  });
}

TEST(Parts, ModuleGoesWithWhatOnlyItFeedsAndWhatIsSharedStays) {
  PipelineSpec spec = forked();
  at(spec, "a").worker = "w1";
  add_parts(spec, kinds());
  EXPECT_EQ(queues(spec), (std::vector<std::string>{"a/in w1", "bad/in w0"}));
  EXPECT_TRUE(has_edge(spec, "split", "0", "a/in"));
  EXPECT_TRUE(has_edge(spec, "a/in", "0", "a"));
  EXPECT_TRUE(has_edge(spec, "a", "0", "ea"));
  EXPECT_TRUE(has_edge(spec, "a", "drop", "bad/in"));
  EXPECT_TRUE(has_edge(spec, "b", "drop", "bad"));
  EXPECT_EQ(spec.flows[0].path, (std::vector<std::string>{"in", "split:0", "a/in", "a", "ea"}));
  EXPECT_EQ(spec.flows[1].path, (std::vector<std::string>{"in", "split", "b", "eb"}));
}

TEST(Parts, WhatTwoPartsOnOneWorkerFeedGoesAlong) {
  PipelineSpec spec = forked();
  at(spec, "a").worker = "w1";
  at(spec, "b").worker = "w1";
  add_parts(spec, kinds());
  EXPECT_EQ(queues(spec), (std::vector<std::string>{"a/in w1", "b/in w1"}));
  EXPECT_TRUE(has_edge(spec, "b", "drop", "bad"));
}

TEST(Parts, WhatTwoPartsOnTwoWorkersFeedStays) {
  PipelineSpec spec = forked();
  at(spec, "a").worker = "w1";
  at(spec, "b").worker = "w2";
  add_parts(spec, kinds());
  EXPECT_EQ(queues(spec), (std::vector<std::string>{"a/in w1", "b/in w2", "bad/in w0"}));
}

TEST(Parts, AreTakenAwayAgain) {
  PipelineSpec spec = forked();
  at(spec, "a").worker = "w1";
  at(spec, "a").in_queue = Dict{{"backpressure", false}, {"size_pkts", 64}};
  PipelineSpec made = spec;
  add_parts(made, kinds());
  EXPECT_FALSE(at(made, "a/in").params.at("backpressure").as_bool());
  EXPECT_EQ(at(made, "a/in").params.at("size_pkts").as_int(), 64);
  const PipelineSpec back = without_parts(made);
  ASSERT_EQ(back.modules.size(), spec.modules.size());
  ASSERT_EQ(back.edges.size(), spec.edges.size());
  for (size_t e = 0; e < spec.edges.size(); ++e) {
    EXPECT_EQ(back.edges[e].from, spec.edges[e].from);
    EXPECT_EQ(back.edges[e].to, spec.edges[e].to);
  }
  EXPECT_EQ(back.flows[0].path, spec.flows[0].path);
}

TEST(Parts, ALimitOfPollsLeavesTheCreditAsItIs) {
  PipelineSpec spec = forked();
  at(spec, "a").worker = "w1";
  at(spec, "a").in_queue = Dict{{"poll_pkts", 8}};
  add_parts(spec, kinds());
  EXPECT_EQ(at(spec, "a/in").poll_pkts, 8U);
  EXPECT_EQ(at(spec, "a/in").params.at("credit_pkts").as_int(), 64);
}

// As `save` does: what was set live is there again when the pipeline is.
TEST(Parts, WhatIsSetOnTheirQueuesIsWrittenDown) {
  PipelineSpec spec = forked();
  at(spec, "a").worker = "w1";
  at(spec, "b").worker = "w2";
  at(spec, "b").in_queue = Dict{{"size_pkts", 128}};
  add_parts(spec, kinds());
  const auto again = [&] {
    PipelineSpec next = spec;
    note_in_queues(next);
    next = without_parts(next);
    add_parts(next, kinds());
    return next;
  };
  const auto credit_pkts = [](PipelineSpec& of, const std::string& queue) {
    return at(of, queue).params.at("credit_pkts").as_int();
  };
  PipelineSpec same = again();
  EXPECT_TRUE(at(same, "a").in_queue.is_null()) << "nothing was set";
  EXPECT_EQ(at(same, "b").in_queue, Value(Dict{{"size_pkts", 128}}));
  at(spec, "a/in").params["credit_pkts"] = 40;
  at(spec, "b/in").poll_pkts = 3;
  PipelineSpec next = again();
  EXPECT_EQ(credit_pkts(next, "a/in"), 40);
  EXPECT_EQ(at(next, "a/in").params.at("size_pkts").as_int(), 256);
  EXPECT_EQ(at(next, "a/in").poll_pkts, 0U);
  EXPECT_FALSE(at(next, "b/in").params.contains("credit_pkts")) << "as many as it holds";
  EXPECT_EQ(at(next, "b/in").poll_pkts, 3U);
  EXPECT_FALSE(at(next, "b/in").params.contains("poll_pkts"));
  EXPECT_TRUE(at(next, "bad").in_queue.is_null());
  at(next, "b/in").poll_pkts = 32;
  spec = next;
  next = again();
  EXPECT_EQ(at(next, "b/in").poll_pkts, 32U) << "set back";
}

TEST(Parts, WorkerOfTheInputIsNoPart) {
  PipelineSpec spec = forked();
  at(spec, "in").worker = "w1";
  at(spec, "a").worker = "w1";
  add_parts(spec, kinds());
  EXPECT_EQ(queues(spec), (std::vector<std::string>{}));
}

// One input of a task names its worker; the other one follows.
TEST(Parts, InputsOfOneTaskHaveOneWorker) {
  PipelineSpec spec = forked();
  spec.modules.push_back({"also", "source", {}});
  spec.edges.push_back({"also", "0", "split"});
  at(spec, "also").worker = "w2";
  at(spec, "a").worker = "w1";
  add_parts(spec, kinds());
  EXPECT_EQ(queues(spec), (std::vector<std::string>{"a/in w1", "bad/in w2"}));
}

TEST(Parts, MovesOfAnInputTakeTheTaskAlong) {
  PipelineSpec spec = forked();
  spec.modules.push_back({"also", "source", {}});
  spec.edges.push_back({"also", "0", "split"});
  const PipelineSpec moved = with_moves(spec, {{"also", "w1"}, {"a", "w2"}}, kinds());
  EXPECT_EQ(std::ranges::find(moved.modules, "in", &ModuleSpec::name)->worker, "w1");
  EXPECT_EQ(queues(moved), (std::vector<std::string>{"a/in w2", "bad/in w1"}));
  const PipelineSpec back = with_moves(moved, {{"in", "w0"}, {"a", "w1"}}, kinds());
  EXPECT_EQ(queues(back), (std::vector<std::string>{"a/in w1", "bad/in w0"}));
  EXPECT_EQ(std::ranges::find(back.modules, "also", &ModuleSpec::name)->worker, "");
}

TEST(Parts, QueuesTakeFromAnyWorker) {
  PipelineSpec spec = forked();
  at(spec, "bad").kind = "queue";
  spec.modules.push_back({"end", "null", {}});
  spec.edges.push_back({"bad", "0", "end"});
  at(spec, "bad").worker = "w2";
  at(spec, "a").worker = "w1";
  add_parts(spec, kinds());
  EXPECT_EQ(queues(spec), (std::vector<std::string>{"a/in w1"}));
}

}  // namespace parts_test
}  // namespace batchplane
