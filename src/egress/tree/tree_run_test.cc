// SPDX-License-Identifier: BSD-3-Clause
// tree_run_test.cc - a leaf that sends several packets in a row is accounted for once. A twin, made to account
// for each packet by itself, must send the same packets.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "base/rng.h"
#include "egress/tree/tree.h"

namespace batchplane::egress {
namespace tree_run_test {

constexpr uint32_t kLeaves = 24;
constexpr uint32_t kPoker = kLeaves;  // a leaf that is never there for long
constexpr uint32_t kInner = 8;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr uint64_t kSeeds = 60;
#else
constexpr uint64_t kSeeds = 400;
#endif

class Twins {
 public:
  explicit Twins(uint64_t seed) : rng_(seed) {
    for (uint32_t k = 1; k < kInner; ++k) {
      add(inner(k), k < 4 ? inner(0) : inner(1 + rng_.below(3)));
    }
    for (uint32_t leaf = 0; leaf < kLeaves; ++leaf) add(leaf, inner(rng_.below(kInner)));
  }

  void step() {
    const uint32_t leaf = rng_.below(kLeaves);
    switch (rng_.below(15)) {
      case 0:
        return change(rng_.below(2) == 0 ? leaf : inner(1 + rng_.below(kInner - 1)));
      case 1:
        return move(leaf, inner(rng_.below(kInner)));
      case 2:
        return drain(1 + rng_.below(30));
      case 3:
      case 4:
        return advance();
      case 5:
      case 6:
      case 7:
      case 8:
        return enqueue(leaf, 1 + rng_.below(12));
      default:
        return dequeue(1 + rng_.below(8));
    }
  }
  [[nodiscard]] uint32_t most_in_a_row_pkts() const { return most_in_a_row_pkts_; }

 private:
  [[nodiscard]] uint32_t inner(uint32_t k) const { return twins_[0].root() + k; }
  NodeParams some_params() {
    NodeParams params{.weight = 1 + rng_.below(4), .priority = static_cast<uint8_t>(rng_.below(2))};
    if (rng_.below(3) == 0) params.ceil_bps = 100'000ULL << rng_.below(16);
    if (rng_.below(2) == 0) params.burst_bytes = 1 + rng_.below(3000);
    if (rng_.below(4) == 0) params.min_rate_bps = 10'000'000ULL << rng_.below(4);
    if (rng_.below(2) == 0) params.queue = static_cast<LeafQueue>(rng_.below(4));
    if (rng_.below(4) == 0) params.limit_bytes = 1500 * (1 + rng_.below(8));
    return params;
  }
  template <class Edit>
  void edit(Edit&& edit) {
    const Edited first = edit(twins_[0]);
    ASSERT_EQ(edit(twins_[1]), first);
  }
  void add(uint32_t node, uint32_t parent) {
    edit([&, params = some_params()](Tree& tree) { return tree.add(node, parent, params); });
  }
  void change(uint32_t node) {
    edit([&, params = some_params()](Tree& tree) { return tree.change(node, params); });
  }
  void move(uint32_t node, uint32_t parent) {
    edit([&](Tree& tree) { return tree.move(node, parent); });
  }
  void advance() {
    now_ns_ += 1 + rng_.below(rng_.below(4) == 0 ? 500'000 : 2'000);
    for (Tree& tree : twins_) tree.advance(now_ns_);
  }
  void enqueue(uint32_t leaf, uint32_t n) {
    for (; n > 0; --n) {
      const uint32_t len = rng_.below(3) == 0 ? 1500 : 64 + rng_.below(100);
      const auto pkt = Descriptor::of(++last_handle_, len, leaf, now_ns_);
      const Enqueued first = twins_[0].enqueue(pkt);
      ASSERT_EQ(twins_[1].enqueue(pkt), first);
      take_shed();
    }
  }
  // What queues have dropped since.
  void take_shed() {
    ASSERT_EQ(twins_[0].shed().n, twins_[1].shed().n);
    for (uint32_t i = 0; i < twins_[0].shed().n; ++i) {
      ASSERT_EQ(twins_[0].shed().all[i].handle(), twins_[1].shed().all[i].handle());
    }
    for (Tree& tree : twins_) tree.shed().n = 0;
  }
  // Ends the run: the leaf comes first at the root, and goes again.
  void poke() {
    Tree& tree = twins_[1];
    ASSERT_EQ(tree.add(kPoker, tree.root(), {}), Edited::kYes);
    ASSERT_EQ(tree.enqueue(Descriptor::of(1, 64, kPoker, now_ns_)), Enqueued::kYes);
    ASSERT_EQ(tree.remove(kPoker, [](const Descriptor&) {}), Edited::kYes);
  }
  void dequeue(uint32_t n) {
    for (uint32_t in_a_row_pkts = 1; n > 0; --n) {
      poke();
      std::array<Descriptor, 2> pkts;
      const bool is_one = twins_[0].dequeue(pkts[0]);
      ASSERT_EQ(twins_[1].dequeue(pkts[1]), is_one);
      if (!is_one) {
        ASSERT_EQ(twins_[0].next_ready_ns(), twins_[1].next_ready_ns());
        return;
      }
      ASSERT_EQ(pkts[0].handle(), pkts[1].handle());
      take_shed();
      in_a_row_pkts = pkts[0].flow == last_flow_ ? in_a_row_pkts + 1 : 1;
      last_flow_ = pkts[0].flow;
      most_in_a_row_pkts_ = std::max(most_in_a_row_pkts_, in_a_row_pkts);
    }
  }
  void drain(uint32_t n) {
    for (; n > 0; --n) {
      std::array<Descriptor, 2> pkts;
      ASSERT_EQ(twins_[0].drain(pkts[0]), twins_[1].drain(pkts[1]));
      ASSERT_EQ(pkts[0].handle(), pkts[1].handle());
    }
  }

  static Tree tree() {
    return Tree({.leaves = kLeaves + 1,
                 .inner_nodes = kInner,
                 .shaped_leaves = kLeaves,
                 .pkts = 4000,
                 .connections = 100,
                 .framing = {.overhead_bytes = 24, .min_bytes = 84}});
  }
  Rng rng_;
  std::array<Tree, 2> twins_{tree(), tree()};
  uint64_t now_ns_ = 0;
  uint64_t last_handle_ = 0;
  uint32_t last_flow_ = kNone;
  uint32_t most_in_a_row_pkts_ = 0;
};

TEST(TreeRuns, SendWhatAnAccountForEachPacketSends) {
  uint32_t most_in_a_row_pkts = 0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Twins twins(seed);
    for (int k = 0; k < 4000; ++k) {
      twins.step();
      if (HasFatalFailure()) FAIL() << "seed " << seed << ", step " << k;
    }
    most_in_a_row_pkts = std::max(most_in_a_row_pkts, twins.most_in_a_row_pkts());
  }
  EXPECT_GT(most_in_a_row_pkts, 5U);
}

// A ceiling of 1 Gbit/s with a burst of 2,000 bytes has recovered when the run goes on.
TEST(TreeRuns, ACeilingHoldsThatRecoversWithinARun) {
  Tree tree({.leaves = 2, .inner_nodes = 1, .shaped_leaves = 1, .pkts = 100});
  ASSERT_EQ(tree.add(0, tree.root(), {.ceil_bps = 1'000'000'000, .burst_bytes = 2000, .weight = 4}),
            Edited::kYes);
  ASSERT_EQ(tree.add(1, tree.root(), {}), Edited::kYes);
  tree.advance(1'000'000);
  for (const uint32_t len : {800U, 1300U, 1200U, 1500U, 1500U}) {
    tree.enqueue(Descriptor::of(1, len, 0, 0));
  }
  for (int k = 0; k < 4; ++k) tree.enqueue(Descriptor::of(1, 1500, 1, 0));
  Descriptor pkt;
  ASSERT_TRUE(tree.dequeue(pkt));
  tree.advance(2'000'000);
  uint32_t sent_bytes = 0;
  for (int k = 0; k < 6 && tree.dequeue(pkt); ++k)
    sent_bytes += pkt.flow == 0 ? pkt.len_bytes() : 0;
  EXPECT_LE(sent_bytes, 2000U + 1500U);
}

TEST(TreeRuns, EndAtTheCeilingToTheByte) {
  Rng rng(1);
  for (int k = 0; k < 10'000; ++k) {
    Pace pace;
    pace.set_rate_bps(100'000 + rng.below(1'000'000'000), 0);
    const uint64_t now_ns = rng.below(100'000);
    const uint64_t until_ns = now_ns + rng.below(10'000'000);
    pace.charge(rng.below(2) * rng.below(1500));
    const uint64_t most = pace.bytes_until(until_ns, now_ns);
    pace.forget_before(now_ns);
    if (most != 0) {
      pace.charge(static_cast<uint32_t>(most));
      ASSERT_LE(pace.paid_at_ns(), until_ns);
    }
    pace.charge(1);
    ASSERT_GT(pace.paid_at_ns(), until_ns);
  }
}

}  // namespace tree_run_test
}  // namespace batchplane::egress
