// SPDX-License-Identifier: BSD-3-Clause
// tree_edit_test.cc - a tree that changes all the time: no packet is lost, duplicated or overtaken
// in its leaf.
#include <gtest/gtest.h>

#include <deque>
#include <map>

#include "base/rng.h"
#include "egress/tree/tree_test_util.h"

namespace batchplane::egress {
namespace tree_edit_test {

constexpr uint32_t kLeaves = 48;
constexpr uint32_t kNodes = 60;

class Edits {
 public:
  explicit Edits(uint64_t seed)
      : tree_({.leaves = kLeaves,
               .inner_nodes = kNodes - kLeaves,
               .shaped_leaves = 9,
               .pkts = 400,
               .connections = 20}),
        rng_(seed) {}

  void step() {
    switch (rng_.below(12)) {
      case 0:
        add();
        break;
      case 1:
        tree_.change(rng_.below(kNodes), some_params());
        break;
      case 2:
        tree_.move(rng_.below(kNodes), rng_.below(5) == 0 ? rng_.below(kNodes) : some_inner());
        break;
      case 3:
        if (rng_.below(4) == 0) remove(rng_.below(kNodes));
        break;
      case 4:
      case 5:
      case 6:
      case 7:
        put(rng_.below(kNodes), rng_.below(5));
        break;
      default:
        take(rng_.below(6));
    }
    now_ns_ += rng_.below(200'000);
    tree_.advance(now_ns_);
  }
  // No packet may be stranded: time advances until all have left.
  void finish() {
    while (tree_.backlog_pkts() != 0) {
      take(1000);
      if (testing::Test::HasFatalFailure()) return;
      if (tree_.backlog_pkts() == 0) break;
      const uint64_t next_ns = tree_.next_ready_ns();
      ASSERT_NE(next_ns, TimeWheel<TreeRates>::kNever) << tree_.backlog_pkts() << " packets";
      now_ns_ = std::max(now_ns_ + 1, next_ns);
      tree_.advance(now_ns_);
    }
    for (const auto& [leaf, queue] : queues_) ASSERT_TRUE(queue.empty()) << leaf;
  }
  [[nodiscard]] uint64_t n_shed() const { return n_shed_; }

 private:
  NodeParams some_params() {
    NodeParams params{.weight = 1 + rng_.below(100),
                      .priority = static_cast<uint8_t>(rng_.below(8))};
    if (rng_.below(2) == 0) params.ceil_bps = 1'000'000ULL << rng_.below(10);
    if (rng_.below(2) == 0) params.min_rate_bps = 500'000ULL << rng_.below(10);
    params.queue = static_cast<LeafQueue>(rng_.below(4));
    params.limit_bytes = 1500 * (1 + rng_.below(20));
    return params;
  }
  uint32_t some_inner() {
    return kLeaves + (rng_.below(3) == 0 ? 0 : rng_.below(kNodes - kLeaves));
  }
  void add() { tree_.add(rng_.below(kNodes), some_inner(), some_params()); }
  void put(uint32_t leaf, uint32_t n) {
    for (uint32_t k = 0; k < n; ++k) {
      const uint32_t hash = rng_.below(3);
      const uint32_t word = flow_word(leaf, hash, rng_.below(2) == 0);
      const uint64_t handle = ++last_handle_ << 2 | hash;
      if (tree_.enqueue(Descriptor::of(handle, rng_.below(1500), word, now_ns_)) ==
          Enqueued::kYes) {
        queues_[leaf * 4 + hash].push_back(handle);
      }
      take_shed();
    }
  }
  void expect_next(const Descriptor& pkt) {
    // Order holds within a connection, whatever kind its queue has at the time.
    std::deque<uint64_t>& queue = queues_[(pkt.flow & kFlowMask) * 4 + pkt.handle() % 4];
    ASSERT_FALSE(queue.empty()) << pkt.flow;
    ASSERT_EQ(queue.front(), pkt.handle()) << pkt.flow;
    queue.pop_front();
  }
  void take_shed() {
    DropList& shed = tree_.shed();
    for (uint32_t i = 0; i < shed.n; ++i) expect_next(shed.all[i]);
    n_shed_ += shed.n;
    shed.n = 0;
  }
  void take(uint32_t n) {
    Descriptor pkt;
    const bool drains = rng_.below(20) == 0;
    for (uint32_t k = 0; k < n; ++k) {
      const bool is_one = drains ? tree_.drain(pkt) : tree_.dequeue(pkt);
      take_shed();
      if (!is_one) return;
      expect_next(pkt);
    }
  }
  void remove(uint32_t node) {
    if (!tree_.has(node)) return;
    tree_.remove(node, [this](const Descriptor& pkt) { expect_next(pkt); });
    for (uint32_t hash = 0; hash < 4; ++hash) {
      ASSERT_TRUE(tree_.has(node) || queues_[node * 4 + hash].empty());
    }
  }

  Tree tree_;
  Rng rng_;
  std::map<uint32_t, std::deque<uint64_t>> queues_;
  uint64_t last_handle_ = 0;
  uint64_t n_shed_ = 0;
  uint64_t now_ns_ = 0;
};

TEST(TreeEdits, LoseAndStrandNothing) {
  uint64_t n_shed = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Edits edits(seed);
    for (int k = 0; k < 4000 && !testing::Test::HasFatalFailure(); ++k) edits.step();
    edits.finish();
    if (testing::Test::HasFatalFailure()) FAIL() << "seed " << seed;
    n_shed += edits.n_shed();
  }
  EXPECT_GT(n_shed, 100U);
}

// A moved leaf keeps its debts: it gets no second quantum in the middle of a round, and its ceiling
// keeps counting.
TEST(TreeEdits, ACeilingCountsOnOverChangesAndMoves) {
  std::vector<TestNode> nodes{
      {.is_inner = true}, {.is_inner = true}, {.parent = 0, .ceil = 10'000'000}};
  Tree tree = make_tree(nodes, 10);
  for (int i = 0; i < 3; ++i) tree.enqueue(Descriptor::of(1, 1500, 0, 0));
  uint64_t bytes = 0;
  Link link;
  Rng rng(5);
  for (uint64_t ms = 0; ms < 1000; ++ms) {
    tree.move(0, tree.root() + 1 + static_cast<uint32_t>(ms % 2));
    tree.change(0, {.ceil_bps = 10'000'000, .weight = 1 + rng.below(9)});
    serve(
        tree, link, ms * 1'000'000, (ms + 1) * 1'000'000, [](uint32_t) { return 1500U; },
        [&](const Descriptor& pkt, uint64_t) { bytes += pkt.len_bytes(); });
  }
  EXPECT_NEAR(static_cast<double>(bytes), 1'250'000, 3200 + 1500);
}

// The burst of a high ceiling would be a second's worth of a low one.
TEST(TreeEdits, ALowerCeilingIsNotChargedTheBurstOfTheHigherOne) {
  std::vector<TestNode> nodes{{.ceil = 100'000'000, .burst = 125'000}};
  Tree tree = make_tree(nodes, 1000);
  for (int i = 0; i < 1000; ++i) tree.enqueue(Descriptor::of(1, 1000, 0, 0));
  Link link;
  uint64_t bytes = 0;
  const auto pass_ms = [&](uint64_t from, uint64_t to) {
    bytes = 0;
    serve(
        tree, link, from * 1'000'000, to * 1'000'000, [](uint32_t) { return 1000U; },
        [&](const Descriptor& pkt, uint64_t) { bytes += pkt.len_bytes(); });
  };
  pass_ms(0, 1);
  EXPECT_GE(bytes, 125'000U);
  tree.change(0, {.ceil_bps = 1'000'000, .burst_bytes = 1250});
  pass_ms(1, 101);
  // 100 ms carry 12,500 bytes, give or take a burst and a packet.
  EXPECT_NEAR(static_cast<double>(bytes), 12'500, 1250 + 1600);
}

}  // namespace tree_edit_test
}  // namespace batchplane::egress
