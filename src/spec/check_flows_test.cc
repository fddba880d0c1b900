// SPDX-License-Identifier: BSD-3-Clause
// check_flows_test.cc - which edges a declared path takes, and every refused mistake.
#include <gtest/gtest.h>

#include <functional>

#include "base/rng.h"
#include "spec/check.h"
#include "spec/way.h"

namespace batchplane {
namespace check_flows_test {

Kinds kinds() {
  Kinds known;
  known.modules["source"] = {.shape = Shape::kInput};
  known.modules["null"] = {};
  known.modules["split"] = {.shape = Shape::kSplitter, .gate_names = {"left", "right"}};
  known.modules["sink"] = {.shape = Shape::kTerminal, .is_egress = true};
  return known;
}

// in -> s -> {a, b} -> out
PipelineSpec diamond() {
  PipelineSpec spec;
  spec.modules = {{"in", "source", {}},
                  {"s", "split", {}},
                  {"a", "null", {}},
                  {"b", "null", {}},
                  {"out", "sink", {}}};
  spec.edges = {
      {"in", "0", "s"}, {"s", "0", "a"}, {"s", "1", "b"}, {"a", "0", "out"}, {"b", "0", "out"}};
  return spec;
}

struct Checked {
  LinkedSpec linked;
  std::string mistakes;
};

Checked check(const PipelineSpec& spec) {
  std::vector<ConfigError> errors;
  Mistakes mistakes{errors, spec.source_map};
  Checked checked{check_graph(spec, kinds(), mistakes), ""};
  for (const ConfigError& error : errors) checked.mistakes += error.line() + "\n";
  return checked;
}

// Names of the modules on a path.
std::vector<std::string> followed(PipelineSpec spec, const std::vector<std::string>& path) {
  spec.flows = {{"f", path, 0}};
  const Checked checked = check(spec);
  EXPECT_EQ(checked.mistakes, "");
  std::vector<std::string> names;
  for (const SpecPath& flow : checked.linked.flows) {
    for (const uint32_t module : flow.modules) names.push_back(spec.modules[module].name);
  }
  return names;
}

void expect_mistake(PipelineSpec spec, const std::vector<std::string>& path,
                    const std::string& part) {
  spec.flows = {{"f", path, 0}};
  const std::string found = check(spec).mistakes;
  EXPECT_NE(found.find(part), std::string::npos) << "found only: " << found;
}

using Names = std::vector<std::string>;

TEST(Paths, AreCompletedWhereThereIsOneWayOnly) {
  EXPECT_EQ(followed(diamond(), {"in", "a", "out"}), (Names{"in", "s", "a", "out"}));
  EXPECT_EQ(followed(diamond(), {"in", "s:1", "out"}), (Names{"in", "s", "b", "out"}));
  EXPECT_EQ(followed(diamond(), {"in", "s:right", "out"}), (Names{"in", "s", "b", "out"}));
}

// Otherwise no path could express the edge from s to out.
TEST(Paths, TakeADirectEdgeBeforeWaysThroughOtherModules) {
  PipelineSpec spec = diamond();
  spec.edges.push_back({"s", "2", "out"});
  EXPECT_EQ(followed(spec, {"in", "s", "out"}), (Names{"in", "s", "out"}));
}

TEST(Paths, LeaveByDropGatesOnlyWhereNamed) {
  PipelineSpec spec = diamond();
  spec.modules.push_back({"alarm", "sink", {}});
  spec.edges.push_back({"a", "drop", "alarm"});
  expect_mistake(spec, {"in", "s", "a", "alarm"}, "flow 'f': 'a' does not lead to 'alarm'");
  expect_mistake(spec, {"in", "alarm"}, "flow 'f': 'in' does not lead to 'alarm'");
  EXPECT_EQ(followed(spec, {"in", "s", "a:drop", "alarm"}), (Names{"in", "s", "a", "alarm"}));
}

TEST(Paths, AreRefusedWithAllThatIsWrong) {
  const PipelineSpec spec = diamond();
  expect_mistake(
      spec, {"in", "out"},
      "flows[0].path: flow 'f': more than one way leads from 'in' to 'out' (name a module "
      "between them: 'a' or 'b')");
  expect_mistake(spec, {"in", "s", "b", "a", "out"}, "'b' does not lead to 'a' ('b' leads to out)");
  expect_mistake(spec, {"in", "s:1", "a", "out"},
                 "gate 1 of 's' does not lead to 'a' (write s:left)");
  expect_mistake(spec, {"in", "s:7", "out"}, "gate 7 of 's' does not lead to 'out' (write s:left)");
  expect_mistake(spec, {"in", "aa", "out"}, "flow 'f': there is no module 'aa'");
  expect_mistake(spec, {"in"}, "flow 'f': a path has two modules at least");
  expect_mistake(spec, {"s", "a", "out"}, "begins at 's', which is no input");
  expect_mistake(spec, {"in", "s", "a"}, "ends at 'a', where no packet leaves");
  PipelineSpec twice = diamond();
  twice.edges[2].to = "a";
  expect_mistake(twice, {"in", "s", "a", "out"},
                 "several gates of 's' lead to 'a' (say which: s:left)");
  expect_mistake(twice, {"in", "a", "out"}, "several gates of 's' lead to 'a' (say which: s:left)");
}

TEST(Paths, AreToldApartByTheirNamesAndEdges) {
  PipelineSpec spec = diamond();
  spec.flows = {{"f", {"in", "s", "a", "out"}, 0}, {"g", {"in", "a", "out"}, 0}};
  EXPECT_NE(check(spec).mistakes.find("flow 'g' has the same path as 'f'"), std::string::npos);
  spec.flows[1] = {"f", {"in", "s", "b", "out"}, 0};
  EXPECT_NE(check(spec).mistakes.find("the flow name 'f' is used twice"), std::string::npos);
  spec.flows[1].name = "other";
  EXPECT_NE(check(spec).mistakes.find("the name 'other' is taken"), std::string::npos);
}

using Leaving = std::vector<std::vector<SpecEdge>>;

// All ways by brute force: slow, but obviously correct. Edges lead only to higher numbers.
std::vector<std::vector<uint32_t>> all_ways(const Leaving& leaving, uint32_t from, uint32_t to) {
  std::vector<std::vector<uint32_t>> ways;
  std::vector<uint32_t> way{from};
  const std::function<void()> walk = [&] {
    if (way.back() == to) {
      ways.push_back(way);
      return;
    }
    for (const SpecEdge& edge : leaving[way.back()]) {
      way.push_back(edge.to);
      walk();
      way.pop_back();
    }
  };
  walk();
  return ways;
}

TEST(WayBetween, IsTheOnlyOneThatASearchOfAllFinds) {
  Rng rng(11);
  uint32_t n_one = 0;
  uint32_t n_more = 0;
  for (int trial = 0; trial < 5000; ++trial) {
    const uint32_t n = 4 + rng.below(5);
    Leaving leaving(n);
    for (uint32_t from = 0; from < n; ++from) {
      for (uint32_t to = from + 1; to < n; ++to) {
        const auto gate = static_cast<uint32_t>(leaving[from].size());
        if (rng.below(5) < 2) leaving[from].push_back({from, gate, to});
      }
    }
    const Way way = way_between(leaving, leaving[0], n - 1);
    auto ways = all_ways(leaving, 0, n - 1);
    const auto direct =
        std::ranges::find_if(ways, [](const auto& each) { return each.size() == 2; });
    if (direct != ways.end()) ways = {*direct};
    ASSERT_EQ(way.choices.empty(), ways.size() <= 1);
    n_more += ways.size() > 1;
    if (ways.size() != 1) continue;
    ++n_one;
    std::vector<uint32_t> found{0};
    for (const SpecEdge& edge : way.edges) found.push_back(edge.to);
    ASSERT_EQ(found, ways.front());
  }
  EXPECT_GT(n_one, 500U);
  EXPECT_GT(n_more, 500U);
}

TEST(WayBetween, EndsInACycle) {
  const Leaving leaving{{{0, 0, 1}}, {{1, 0, 2}}, {{2, 0, 1}, {2, 1, 3}}, {}};
  const Way way = way_between(leaving, leaving[0], 3);
  EXPECT_FALSE(way.choices.empty());
}

}  // namespace check_flows_test
}  // namespace batchplane
