// SPDX-License-Identifier: BSD-3-Clause
// path_automaton_test.cc - states that reach a node, the effect of gates, and the flow at each end.
#include "exec/path_automaton.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "core/graph/graph.h"

namespace batchplane::exec {
namespace {

using Flow = PathAutomaton::Flow;
using FlowSet = PathAutomaton::FlowSet;

// 0 -> 1 -> {2, 3} -> 4: node 1 splits, everything leaves at node 4.
const std::vector<PathEdge> kDiamond = {{0, 0, 1}, {1, 0, 2}, {1, 1, 3}, {2, 0, 4}, {3, 0, 4}};
const Flow kByTwo{0, 4, {{0, 0}, {1, 0}, {2, 0}}};
const Flow kByThree{0, 4, {{0, 0}, {1, 1}, {3, 0}}};

TEST(PathAutomaton, BranchesAreStaticAndWhereTheyMeetIsNot) {
  const PathAutomaton paths(5, kDiamond, {0}, {kByTwo, kByThree});
  for (const uint32_t node : {0U, 1U, 2U, 3U}) EXPECT_TRUE(paths.is_static(node)) << node;
  EXPECT_FALSE(paths.is_static(4));
  EXPECT_EQ(paths.flows_of(paths.entry_state(0)), (FlowSet{0, 1}));
  EXPECT_EQ(paths.flows_of(*paths.states_at(2).begin()), FlowSet{0});
  EXPECT_EQ(paths.flows_of(*paths.states_at(3).begin()), FlowSet{1});
  EXPECT_EQ(paths.states_at(4).size(), 2U);
  EXPECT_TRUE(paths.indistinct().empty());
}

TEST(PathAutomaton, FlowsAreToldApartAtTheEnd) {
  const PathAutomaton paths(5, kDiamond, {0}, {kByTwo, kByThree});
  const auto entry = paths.entry_state(0);
  const auto at_one = paths.next(0, 0, entry);
  EXPECT_EQ(at_one, entry) << "a gate that all flows cross narrows nothing";
  EXPECT_EQ(paths.flow_at(4, paths.next(2, 0, paths.next(1, 0, at_one))), 0U);
  EXPECT_EQ(paths.flow_at(4, paths.next(3, 0, paths.next(1, 1, at_one))), 1U);
}

TEST(PathAutomaton, WhatNoFlowDeclaresIsOther) {
  const PathAutomaton paths(5, kDiamond, {0}, {kByTwo});
  const auto elsewhere = paths.next(1, 1, paths.entry_state(0));
  EXPECT_TRUE(paths.flows_of(elsewhere).empty());
  EXPECT_EQ(paths.flow_at(4, paths.next(3, 0, elsewhere)), 1U) << "one past the declared";
  const PathAutomaton none(5, kDiamond, {0}, {});
  EXPECT_EQ(none.n_states(), 1U);
  EXPECT_TRUE(none.is_static(4));
  EXPECT_EQ(none.flow_at(4, none.entry_state(0)), 0U);
}

TEST(PathAutomaton, AFlowEndsAtItsOwnEndOnly) {
  // 0 -> 1 splits to the ends 2 and 3.
  const PathAutomaton paths(4, {{0, 0, 1}, {1, 0, 2}, {1, 1, 3}}, {0}, {{0, 2, {{0, 0}, {1, 0}}}});
  const auto state = paths.next(1, 0, paths.entry_state(0));
  EXPECT_EQ(paths.flow_at(2, state), 0U);
  EXPECT_EQ(paths.flow_at(3, state), 1U);
}

TEST(PathAutomaton, EntriesBringTheirOwnFlowsIntoASharedPart) {
  // Inputs 0 and 1 lead to 2, which leads to 3; nothing reaches 4.
  const std::vector<PathEdge> edges = {{0, 0, 2}, {1, 0, 2}, {2, 0, 3}};
  const PathAutomaton paths(5, edges, {0, 1}, {{0, 3, {{0, 0}, {2, 0}}}, {1, 3, {{1, 0}, {2, 0}}}});
  EXPECT_EQ(paths.states_at(2).size(), 2U);
  for (const auto state : paths.states_at(2)) EXPECT_EQ(paths.next(2, 0, state), state);
  EXPECT_EQ(paths.flow_at(3, paths.entry_state(0)), 0U);
  EXPECT_EQ(paths.flow_at(3, paths.entry_state(1)), 1U);
  EXPECT_TRUE(paths.states_at(4).empty());
}

TEST(PathAutomaton, DropGatesAreGatesLikeAnyOther) {
  const std::vector<PathEdge> edges = {{0, 0, 1}, {1, 0, 2}, {1, kDropGate, 3}, {3, 0, 2}};
  const Flow plain{0, 2, {{0, 0}, {1, 0}}};
  const Flow mended{0, 2, {{0, 0}, {1, kDropGate}, {3, 0}}};
  const PathAutomaton paths(4, edges, {0}, {plain, mended});
  const auto dropped = paths.next(1, kDropGate, paths.entry_state(0));
  EXPECT_EQ(paths.flow_at(2, paths.next(3, 0, dropped)), 1U);
  EXPECT_EQ(paths.flow_at(2, paths.next(1, 0, paths.entry_state(0))), 0U);
}

TEST(PathAutomaton, NamesFlowsThatNoGateTellsApart) {
  const PathAutomaton paths(5, kDiamond, {0}, {kByTwo, kByThree, kByTwo});
  EXPECT_EQ(paths.indistinct(), (std::vector<std::pair<uint32_t, uint32_t>>{{0, 2}}));
}

TEST(PathAutomaton, RefusesMoreStatesThanAPacketCanCarry) {
  // Each of 17 splitters in a row halves the set of possible flows: 2^17 states at the end.
  constexpr uint32_t kSplitters = 17;
  std::vector<PathEdge> edges;
  std::vector<Flow> flows;
  for (uint32_t s = 0; s < kSplitters; ++s) {
    for (const uint32_t gate : {0U, 1U}) {
      edges.push_back({s, gate, s + 1});
      Flow flow{0, kSplitters, {{s, gate}}};
      for (uint32_t other = 0; other < kSplitters; ++other) {
        if (other != s) flow.gates.insert({{other, 0}, {other, 1}});
      }
      flows.push_back(flow);
    }
  }
  EXPECT_THROW(PathAutomaton(kSplitters + 1, edges, {0}, flows), ConfigError);
}

// Path operations of a task: none where one state arrives, a constant where one state leaves, a map where
// several states pass a gate that narrows them.
class PathOps : public testing::Test {
 protected:
  // in -> s -> {a, b} -> m -> t -> {x, y}; t splits again.
  static PipelineSpec spec() {
    PipelineSpec spec;
    spec.modules = {
        {"in", "source", {}}, {"s", "split", {{"gates", 2}}}, {"a", "null", {}}, {"b", "null", {}},
        {"m", "merge", {}},   {"t", "split", {{"gates", 2}}}, {"x", "sink", {}}, {"y", "sink", {}}};
    spec.edges = {{"in", "0", "s"}, {"s", "0", "a"}, {"s", "1", "b"}, {"a", "0", "m"},
                  {"b", "0", "m"},  {"m", "0", "t"}, {"t", "0", "x"}, {"t", "1", "y"}};
    return spec;
  }
  static FlowSpec flow(const char* name, const char* branch, const char* end) {
    return {name, {"in", "s", branch, "m", "t", end}, 0};
  }
  static std::unique_ptr<Graph> build(const PipelineSpec& spec) {
    return build_graph(spec, std::make_unique<Environment>());
  }
  static const ExecNode& node(const Graph& graph, const char* name) { return *graph.at(name).node; }
};

TEST_F(PathOps, NothingIsWrittenWhereOneFlowIsDeclaredOrNone) {
  PipelineSpec one_way = spec();
  const auto none = build(one_way);
  for (const char* name : {"s", "a", "b", "m", "t"}) {
    EXPECT_FALSE(node(*none, name).has_path_ops) << name;
  }
}

TEST_F(PathOps, ConstantsOnEdgesIntoTheMeetingPointAndMapsBehindIt) {
  PipelineSpec declared = spec();
  declared.flows = {flow("ax", "a", "x"), flow("ay", "a", "y"), flow("by", "b", "y")};
  const auto graph = build(declared);
  EXPECT_FALSE(node(*graph, "s").has_path_ops) << "a and b are static";
  const exec::PathOp& from_a = node(*graph, "a").path_ops[0];
  const exec::PathOp& from_b = node(*graph, "b").path_ops[0];
  EXPECT_EQ(graph->paths->flows_of(from_a.constant), (FlowSet{0, 1}));
  EXPECT_EQ(graph->paths->flows_of(from_b.constant), FlowSet{2});
  EXPECT_EQ(from_a.map, nullptr);
  EXPECT_FALSE(node(*graph, "m").has_path_ops) << "its gate narrows nothing";
  const exec::PathOp& to_x = node(*graph, "t").path_ops[0];
  ASSERT_NE(to_x.map, nullptr);
  EXPECT_EQ(graph->paths->flows_of(to_x.map[from_a.constant]), FlowSet{0});
  EXPECT_TRUE(graph->paths->flows_of(to_x.map[from_b.constant]).empty());
  const Module& x = *graph->at("x").module;
  const Module& y = *graph->at("y").module;
  ASSERT_FALSE(x.has_static_flow());
  EXPECT_EQ(x.flow_of(to_x.map[from_a.constant]), 0U);
  EXPECT_EQ(x.flow_of(to_x.map[from_b.constant]), 3U) << "other";
  const exec::PathOp& to_y = node(*graph, "t").path_ops[1];
  ASSERT_NE(to_y.map, nullptr);
  EXPECT_EQ(y.flow_of(to_y.map[from_a.constant]), 1U);
  EXPECT_EQ(y.flow_of(to_y.map[from_b.constant]), 2U);
}

TEST_F(PathOps, AStaticEndKnowsItsFlow) {
  PipelineSpec declared = spec();
  declared.edges[4] = {"b", "0", "y"};  // only a leads to m
  declared.edges[7] = {"t", "1", "x"};
  declared.flows = {{"a", {"in", "s", "a", "m", "t:0", "x"}, 0}, {"b", {"in", "s", "b", "y"}, 0}};
  const auto graph = build(declared);
  ASSERT_TRUE(graph->at("y").module->has_static_flow());
  EXPECT_EQ(graph->at("y").module->static_flow(), 1U);
  EXPECT_FALSE(graph->at("x").module->has_static_flow()) << "t:1 leads there too, as other";
}

}  // namespace
}  // namespace batchplane::exec
