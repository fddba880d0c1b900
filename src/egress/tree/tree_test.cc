// SPDX-License-Identifier: BSD-3-Clause
// tree_test.cc - single rules of a tree, and edits that it refuses.
#include "egress/tree/tree.h"

#include <gtest/gtest.h>

#include "egress/tree/tree_test_util.h"

namespace batchplane::egress {
namespace tree_test {

constexpr uint64_t kMbps = 1'000'000;

// A link of 100 Mbit/s with leaves that are full for a second.
std::vector<double> rates_mbps(const std::vector<TestNode>& nodes) {
  return served_mbps(nodes, 100 * kMbps, 1'000'000'000);
}
void expect_rates(const std::vector<double>& got, const std::vector<double>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 0.3) << "node " << i;
}

TEST(Tree, SharesByWeight) {
  expect_rates(rates_mbps({{.weight = 1}, {.weight = 3}, {.weight = 4, .is_idle = true}}),
               {25, 75, 0});
}
TEST(Tree, ServesTheHighestPriorityFirst) {
  expect_rates(rates_mbps({{.priority = 0}, {.ceil = 30 * kMbps, .priority = 5}}), {70, 30});
}
TEST(Tree, KeepsMinimaAgainstPriorityAndWeight) {
  expect_rates(rates_mbps({{.min = 20 * kMbps}, {.weight = 100, .priority = 7}}), {20, 80});
}
TEST(Tree, KeepsMinimaThatCatchUpOnLittle) {
  expect_rates(
      served_mbps({{.min = 20 * kMbps}, {.min = 5 * kMbps}, {.weight = 100, .priority = 7}},
                  100 * kMbps, 1'000'000'000, 1'000'000),
      {20, 5, 75});
}
// Leaf 0 takes the link for 50 ms. Then leaf 1 catches up on what it missed, before leaf 2 has any.
TEST(Tree, CatchesUpForAsLongAsWasSaid) {
  const std::vector<TestNode> nodes = {
      {.min = 200 * kMbps, .priority = 1}, {.min = 50 * kMbps}, {}};
  for (const uint64_t catch_up_ns : {kCatchUpNs, uint64_t{2'000'000}}) {
    Tree tree = make_tree(nodes, 16, catch_up_ns);
    for (uint32_t k = 0; k < 9; ++k) tree.enqueue(Descriptor::of(1, 1500, k % 3, 0));
    Link link(100 * kMbps);
    uint64_t now_ns = 0;
    uint64_t first_ns = 0;  // of leaf 2, afterwards
    serve(
        tree, link, 0, 150'000'000,
        [&](uint32_t leaf) { return leaf == 0 && now_ns >= 50'000'000 ? 0U : 1500U; },
        [&](const Descriptor& pkt, uint64_t at_ns) {
          now_ns = at_ns;
          if (pkt.flow == 2 && at_ns > 50'000'000 && first_ns == 0) first_ns = at_ns;
        });
    // While it catches up, its minimum comes due again: each byte missed takes two of the link.
    const double want_ms = 50 + (catch_up_ns == kCatchUpNs ? 50 : 2);
    EXPECT_NEAR(static_cast<double>(first_ns) / 1e6, want_ms, 1.5);
  }
}
TEST(Tree, SharesByWeightWhatMinimaLeave) {
  expect_rates(rates_mbps({{.min = 40 * kMbps}, {}, {.weight = 2}}), {55, 15, 30});
}
TEST(Tree, CeilingsHoldAtEveryLevel) {
  // 0 is an inner node; 1 and 2 are its children.
  expect_rates(rates_mbps({{.ceil = 20 * kMbps, .is_inner = true},
                           {.parent = 0, .ceil = 5 * kMbps},
                           {.parent = 0},
                           {}}),
               {20, 5, 15, 80});
}
TEST(Tree, WhatANodeLeavesGoesToItsSiblings) {
  expect_rates(rates_mbps({{.is_inner = true},
                           {.is_inner = true},
                           {.parent = 0, .is_idle = true},
                           {.parent = 0},
                           {.parent = 1},
                           {.parent = 1}}),
               {50, 50, 0, 50, 25, 25});
}
// A leaf's minimum rate also counts through parents that have none.
TEST(Tree, MinimaReachTheRoot) {
  expect_rates(rates_mbps({{.is_inner = true},
                           {.parent = 0, .min = 60 * kMbps},
                           {.parent = 0},
                           {.weight = 9, .priority = 3}}),
               {60, 60, 0, 40});
}
TEST(Tree, AMinimumOfAParentIsSharedBelowIt) {
  expect_rates(rates_mbps({{.min = 60 * kMbps, .is_inner = true},
                           {.parent = 0},
                           {.parent = 0, .weight = 2},
                           {.priority = 3}}),
               {60, 20, 40, 40});
}
TEST(Tree, EightLevels) {
  std::vector<TestNode> nodes;
  for (int k = 0; k < 8; ++k) nodes.push_back({.parent = k - 1, .is_inner = true});
  nodes.push_back({.parent = 7, .weight = 3});
  nodes.push_back({.parent = 7});
  nodes.push_back({});
  const std::vector<double> got = rates_mbps(nodes);
  EXPECT_NEAR(got[8], 37.5, 0.2);
  EXPECT_NEAR(got[9], 12.5, 0.2);
  EXPECT_NEAR(got[10], 50, 0.2);
}

TEST(Tree, ChargesWhatGoesOverTheWire) {
  Framing framing{.overhead_bytes = 24, .min_bytes = 84};
  EXPECT_EQ(framing.wire_bytes(40), 84U);
  EXPECT_EQ(framing.wire_bytes(1500), 1524U);
  framing = {.overhead_bytes = -14};
  EXPECT_EQ(framing.wire_bytes(10), 1U);
  framing = {.overhead_bytes = 8, .cells = Cells::kAtm};
  EXPECT_EQ(framing.wire_bytes(40), 53U);
  EXPECT_EQ(framing.wire_bytes(41), 106U);
  framing.cells = Cells::kPtm;
  EXPECT_EQ(framing.wire_bytes(120), 130U);
}

// A packet of a flow within its share waits for at most one packet of the always-full others.
TEST(Tree, WhoComesWithAnUnspentQuantumGoesFirst) {
  Tree tree({.leaves = 101, .pkts = 1000});
  for (uint32_t n = 0; n <= 100; ++n) tree.add(n, tree.root(), {});
  for (uint32_t n = 0; n < 100; ++n) {
    for (int k = 0; k < 9; ++k) tree.enqueue(Descriptor::of(1, 1500, n, 0));
  }
  Descriptor pkt;
  for (int k = 0; k < 250; ++k) ASSERT_TRUE(tree.dequeue(pkt));
  tree.enqueue(Descriptor::of(1, 1500, 100, 0));
  tree.dequeue(pkt);
  EXPECT_EQ(pkt.flow, 100U);
}

TEST(Tree, RefusesWhatDoesNotFit) {
  Tree tree({.leaves = 19, .shaped_leaves = 1, .pkts = 3, .lmax_bytes = 100});
  const uint32_t root = 19;
  EXPECT_EQ(tree.add(20, root, {}), Edited::kBadNode);
  EXPECT_EQ(tree.add(root, root, {}), Edited::kNodeExists);
  EXPECT_EQ(tree.add(1, 7, {}), Edited::kNoParent);
  EXPECT_EQ(tree.add(1, root, {.weight = 0}), Edited::kBadWeight);
  EXPECT_EQ(tree.add(1, root, {.weight = 10'001}), Edited::kBadWeight);
  EXPECT_EQ(tree.add(1, root, {.priority = 8}), Edited::kBadPriority);
  EXPECT_EQ(tree.add(1, root, {.ceil_bps = 100}), Edited::kBadRate);
  EXPECT_EQ(tree.add(1, root, {.min_rate_bps = 20'000, .ceil_bps = 19'000}), Edited::kCeilBelowMin);
  EXPECT_FALSE(tree.has(1));
  ASSERT_EQ(tree.add(1, root, {.limit_bytes = 150}), Edited::kYes);
  EXPECT_EQ(tree.add(2, 1, {}), Edited::kParentIsLeaf);
  EXPECT_EQ(tree.change(root, {}), Edited::kRoot);
  EXPECT_EQ(tree.change(9, {}), Edited::kNoNode);
  EXPECT_EQ(tree.enqueue(Descriptor::of(1, 60, 9, 0)), Enqueued::kNoFlow);
  EXPECT_EQ(tree.enqueue(Descriptor::of(1, 60, root, 0)), Enqueued::kNoFlow);
  EXPECT_EQ(tree.enqueue(Descriptor::of(1, 101, 1, 0)), Enqueued::kTooLong);
  EXPECT_EQ(tree.enqueue(Descriptor::of(1, 100, 1, 0)), Enqueued::kYes);
  EXPECT_EQ(tree.enqueue(Descriptor::of(1, 60, 1, 0)), Enqueued::kFull);
}

// Shapers of leaves without rates are free for other leaves.
TEST(Tree, AsManyLeavesHaveRatesAsWasSaid) {
  Tree tree({.leaves = 3, .shaped_leaves = 1, .pkts = 3});
  ASSERT_EQ(tree.add(1, 3, {.ceil_bps = 1'000'000}), Edited::kYes);
  EXPECT_EQ(tree.add(2, 3, {.ceil_bps = 1'000'000}), Edited::kNoShaper);
  ASSERT_EQ(tree.add(2, 3, {}), Edited::kYes);
  EXPECT_EQ(tree.change(2, {.min_rate_bps = 50'000}), Edited::kNoShaper);
  ASSERT_EQ(tree.change(1, {}), Edited::kYes);
  EXPECT_EQ(tree.change(2, {.min_rate_bps = 50'000}), Edited::kYes);
}

TEST(Tree, RefusesLoops) {
  Tree tree({.leaves = 1, .inner_nodes = 30, .pkts = 3});
  for (uint32_t k = 1; k < 30; ++k) {
    ASSERT_EQ(tree.add(tree.root() + k, tree.root() + k - 1, {}), Edited::kYes);
  }
  ASSERT_EQ(tree.add(0, tree.root() + 29, {}), Edited::kYes);
  EXPECT_EQ(tree.move(tree.root() + 3, tree.root() + 7), Edited::kLoop);
  EXPECT_EQ(tree.move(tree.root() + 3, tree.root() + 3), Edited::kLoop);
  EXPECT_EQ(tree.move(tree.root() + 3, 0), Edited::kParentIsLeaf);
  EXPECT_EQ(tree.move(tree.root(), tree.root() + 7), Edited::kRoot);
  EXPECT_EQ(tree.remove(tree.root() + 3, [](const Descriptor&) {}), Edited::kHasChildren);
  EXPECT_EQ(tree.move(tree.root() + 7, tree.root()), Edited::kYes);
  EXPECT_EQ(tree.move(tree.root() + 3, tree.root() + 7), Edited::kYes);
}

}  // namespace tree_test
}  // namespace batchplane::egress
