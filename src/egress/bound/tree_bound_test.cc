// SPDX-License-Identifier: BSD-3-Clause
// tree_bound_test.cc - bounds of trees against the longest waits that adversaries can cause.
#include "egress/bound/tree_bound.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "egress/discipline/link.h"
#include "egress/tree/tree.h"
#include "egress/tree/tree_test_util.h"

namespace batchplane::egress {
namespace tree_bound_test {

constexpr uint64_t kMbps = 1'000'000;
constexpr uint64_t kLinkBps = 100 * kMbps;
constexpr uint64_t kMs = 1'000'000;
constexpr uint32_t kLongest = 1500;
constexpr double kLongestNs = 120'000;  // on the link
constexpr Framing kEthernet{.overhead_bytes = 24, .min_bytes = 84};

struct Plan {
  std::vector<TestNode> nodes;  // inner nodes first
  TreeCapacity capacity;
  uint32_t n_leaves = 0;

  explicit Plan(std::vector<TestNode> from, Framing framing = {}, uint64_t catch_up_ns = kCatchUpNs,
                uint32_t lmax_bytes = kLongest)
      : nodes(std::move(from)), n_leaves(number_of(nodes, static_cast<int>(nodes.size()))) {
    capacity = {.leaves = n_leaves,
                .inner_nodes = static_cast<uint32_t>(nodes.size()) - n_leaves + 1,
                .shaped_leaves = n_leaves,
                .pkts = 1U << 14,
                .lmax_bytes = lmax_bytes,
                .framing = framing,
                .catch_up_ns = catch_up_ns};
  }
  [[nodiscard]] std::vector<PlacedNode> slots() const {
    std::vector<PlacedNode> all;
    for (int k = 0; k < static_cast<int>(nodes.size()); ++k) {
      const TestNode& node = nodes[static_cast<size_t>(k)];
      const uint32_t parent = node.parent < 0 ? capacity.root() : number_of(nodes, node.parent);
      all.push_back({number_of(nodes, k), parent, params_of(node)});
    }
    return all;
  }
  [[nodiscard]] std::vector<Bound> bounds() const {
    return tree_bounds(capacity, slots(), {.rate_bps = kLinkBps});
  }
  [[nodiscard]] Tree tree() const {
    Tree made(capacity);
    for (const PlacedNode& slot : slots()) {
      EXPECT_EQ(made.add(slot.number, slot.parent, slot.params), Edited::kYes);
    }
    return made;
  }
};

// Others have packets from one time until another.
struct Attack {
  uint64_t from_ns = 0;
  uint64_t until_ns = 0;
  uint32_t leaf = 0;
  uint32_t len_bytes = kLongest;
};
struct Own {
  uint64_t at_ns = 0;
  uint32_t len_bytes = 0;
  double due_ns = 0;  // when it would be sent at the leaf's rate, if at once
};

// What leaf `own_leaf` sends at its share at most: `batch_pkts` at a time.
std::vector<Own> within_share(const Plan& plan, const Bound& bound, uint32_t batch_pkts,
                              bool is_long, uint64_t end_ns, Rng& rng) {
  const double stretch = wire_stretch(plan.capacity.framing, kLongest);
  const double byte_ns = 8e9 / (bound.share_bps * stretch);
  std::vector<Own> all;
  double paid_ns = 1e6 + rng.below(1'000'000);
  while (paid_ns < static_cast<double>(end_ns)) {
    const auto at_ns = static_cast<uint64_t>(paid_ns) + 1;
    paid_ns = static_cast<double>(at_ns);
    for (uint32_t i = 0; i < batch_pkts; ++i) {
      const uint32_t len =
          is_long ? kLongest
                  : kShortestPktBytes +
                        rng.below(rng.below(2) == 0 ? 1 : kLongest - kShortestPktBytes + 1);
      all.push_back({at_ns, len, paid_ns});
      paid_ns += plan.capacity.framing.wire_bytes(len) * byte_ns;
    }
    if (rng.below(4) == 0) paid_ns += rng.below(3'000'000);
  }
  return all;
}

// The longest time from when a packet was due until it was released.
double longest_wait_ns(const Plan& plan, uint32_t own_leaf, const std::vector<Own>& own,
                       std::vector<Attack> attacks, uint64_t end_ns) {
  std::ranges::stable_sort(attacks, {}, &Attack::from_ns);
  Tree tree = plan.tree();
  Link link(kLinkBps, plan.capacity.framing);
  std::vector<Attack> now_on(plan.n_leaves);
  std::deque<double> due_ns;
  double longest_ns = 0;
  size_t next_own = 0;
  size_t next_attack = 0;
  for (uint64_t now_ns = 0; now_ns < end_ns;) {
    tree.advance(now_ns);
    for (; next_attack < attacks.size() && attacks[next_attack].from_ns <= now_ns; ++next_attack) {
      const Attack& attack = attacks[next_attack];
      now_on[attack.leaf] = attack;
      while (tree.backlog_pkts(attack.leaf) < 3) {
        tree.enqueue(Descriptor::of(1, attack.len_bytes, attack.leaf, 0));
      }
    }
    for (; next_own < own.size() && own[next_own].at_ns <= now_ns; ++next_own) {
      EXPECT_EQ(tree.enqueue(Descriptor::of(1, own[next_own].len_bytes, own_leaf, 0)),
                Enqueued::kYes);
      due_ns.push_back(own[next_own].due_ns);
    }
    uint64_t next_ns = end_ns;
    if (next_attack < attacks.size()) next_ns = std::min(next_ns, attacks[next_attack].from_ns);
    if (next_own < own.size()) next_ns = std::min(next_ns, own[next_own].at_ns);
    if (link.is_free(now_ns)) {
      link.idle_until(now_ns);
      Descriptor pkt;
      if (tree.dequeue(pkt)) {
        link.carry(pkt.len_bytes());
        if (pkt.flow == own_leaf) {
          longest_ns = std::max(longest_ns, static_cast<double>(now_ns) - due_ns.front());
          due_ns.pop_front();
        } else if (now_ns < now_on[pkt.flow].until_ns) {
          tree.enqueue(Descriptor::of(1, now_on[pkt.flow].len_bytes, pkt.flow, 0));
        }
        continue;
      }
      next_ns = std::min(next_ns, tree.next_ready_ns());
    } else {
      next_ns = std::min(next_ns, link.free_at_ns());
    }
    now_ns = std::max(now_ns + 1, next_ns);
  }
  return longest_ns;
}

// Floods, comes and goes, or comes with others just before a packet of the leaf.
std::vector<Attack> attacks_on(const Plan& plan, uint32_t own_leaf, const std::vector<Own>& own,
                               uint64_t end_ns, Rng& rng) {
  std::vector<Attack> all;
  std::vector<uint64_t> at_ns;
  for (const Own& pkt : own) {
    if (rng.below(6) == 0)
      at_ns.push_back(pkt.at_ns - std::min<uint64_t>(pkt.at_ns, rng.below(300'000)));
  }
  for (uint32_t leaf = 0; leaf < plan.n_leaves; ++leaf) {
    if (leaf == own_leaf) continue;
    const uint32_t kind = rng.below(4);
    const auto len = [&] { return rng.below(4) == 0 ? kShortestPktBytes : kLongest; };
    if (kind == 0) {
      all.push_back({0, end_ns, leaf, len()});
    } else if (kind == 1) {
      for (uint64_t from_ns = rng.below(3 * kMs); from_ns < end_ns;) {
        const uint64_t until_ns = from_ns + 1 + rng.below(8 * kMs);
        all.push_back({from_ns, until_ns, leaf, len()});
        from_ns = until_ns + 1 + rng.below(6 * kMs);
      }
    } else {
      for (const uint64_t from_ns : at_ns) {
        all.push_back({from_ns, from_ns + rng.below(kind == 2 ? 4 * kMs : 1), leaf, len()});
      }
    }
  }
  return all;
}

uint64_t some_of(uint64_t bps, Rng& rng) { return bps * (1 + rng.below(100)) / 100; }

// Minima fit into ceilings and the link, as they must without `overbook`.
Plan random_plan(Rng& rng) {
  std::vector<TestNode> nodes(rng.below(5));
  const int n_inner = static_cast<int>(nodes.size());
  for (int k = 0; k < n_inner; ++k) {
    TestNode& node = nodes[static_cast<size_t>(k)];
    node = {.parent = rng.below(2) == 0
                          ? -1
                          : static_cast<int>(rng.below(static_cast<uint32_t>(k) + 1)) - 1,
            .is_inner = true};
  }
  const uint32_t n_leaves = 2 + rng.below(7) + static_cast<uint32_t>(n_inner);
  for (uint32_t i = 0; i < n_leaves; ++i) {
    nodes.push_back(
        {.parent = static_cast<int>(rng.below(static_cast<uint32_t>(n_inner) + 1)) - 1});
  }
  const uint64_t left_bps = kLinkBps * (10 + rng.below(85)) / 100;
  const uint32_t most_priority = rng.below(3);
  std::vector<uint64_t> below_bps(nodes.size());
  for (size_t k = nodes.size(); k-- > 0;) {
    TestNode& node = nodes[k];
    if (node.is_inner && std::ranges::none_of(nodes, [&](const TestNode& of) {
          return of.parent == static_cast<int>(k);
        })) {
      node.is_idle = true;
    }
    node.priority = static_cast<uint8_t>(rng.below(most_priority + 1));
    node.weight = 1 + rng.below(5);
    const uint32_t kind = rng.below(4);
    if (!node.is_inner && kind != 0) {
      node.min = std::max<uint64_t>(200'000, some_of(left_bps / n_leaves, rng));
    } else if (node.is_inner && kind == 0) {
      node.min = std::max<uint64_t>(below_bps[k], 1) + (below_bps[k] == 0 ? 5 * kMbps : 0);
    }
    const uint64_t needs_bps = std::max(node.min, below_bps[k]);
    if (rng.below(2) == 0) {
      node.ceil = std::max<uint64_t>(needs_bps * (100 + rng.below(200)) / 100, kMbps);
      if (rng.below(4) == 0) node.burst = 3000 + rng.below(20'000);
    }
    if (node.parent >= 0) below_bps[static_cast<size_t>(node.parent)] += needs_bps;
  }
  const uint64_t catch_up_ns = std::vector<uint64_t>{kCatchUpNs, kMs, kMs / 5}[rng.below(3)];
  return Plan(nodes, rng.below(2) == 0 ? Framing{} : kEthernet, catch_up_ns);
}

std::string told(const Plan& plan, uint32_t leaf, const Bound& bound) {
  std::string all = "leaf " + std::to_string(leaf) + " own " + std::to_string(bound.own_ns) +
                    " others " + std::to_string(bound.others_ns) + " share " +
                    std::to_string(bound.share_bps) + " catch_up " +
                    std::to_string(plan.capacity.catch_up_ns) + "\n";
  for (int k = 0; k < static_cast<int>(plan.nodes.size()); ++k) {
    const TestNode& node = plan.nodes[static_cast<size_t>(k)];
    all += std::to_string(number_of(plan.nodes, k)) + " at " + std::to_string(node.parent) +
           " min " + std::to_string(node.min) + " ceil " + std::to_string(node.ceil) + " burst " +
           std::to_string(node.burst) + " priority " + std::to_string(node.priority) + "\n";
  }
  return all;
}

TEST(TreeBound, HoldsWhateverOthersSend) {
  uint32_t n_bounds = 0;
  double nearest = 0;
  for (uint32_t trial = 0; trial < 600; ++trial) {
    Rng rng(trial + 1);
    const Plan plan = random_plan(rng);
    const std::vector<Bound> bounds = plan.bounds();
    for (uint32_t leaf = 0; leaf < plan.n_leaves; ++leaf) {
      const Bound& bound = bounds[leaf];
      if (!bound.has_one()) continue;
      ++n_bounds;
      const uint64_t end_ns = 40 * kMs + static_cast<uint64_t>(2 * bound.total_ns());
      const uint32_t batch_pkts = rng.below(2) == 0 ? 1 : 1 + rng.below(8);
      const std::vector<Own> own =
          within_share(plan, bound, batch_pkts, rng.below(2) == 0, end_ns, rng);
      const std::vector<Attack> attacks = attacks_on(plan, leaf, own, end_ns, rng);
      const double part = longest_wait_ns(plan, leaf, own, attacks, end_ns) / bound.total_ns();
      ASSERT_LE(part, 1) << trial << " " << told(plan, leaf, bound);
      nearest = std::max(nearest, part);
    }
  }
  EXPECT_GT(n_bounds, 1000U);
  EXPECT_GT(nearest, 0.6);
}

// Each case makes nearly all terms of a bound happen at once, so none of them may be left out.
struct Case {
  const char* what;
  Plan plan;
  std::vector<Own> own;  // of leaf 0
  std::vector<Attack> attacks;
  double least_part = 0;
};
constexpr uint64_t kForever = 1000 * kMs;

// The longest wait in parts of the bound. Others that are not there from the start begin at several times.
double part_of(const Case& of) {
  const Bound bound = of.plan.bounds()[0];
  EXPECT_TRUE(bound.has_one()) << of.what << ": " << message_of(bound.why_not);
  double longest_ns = 0;
  for (uint64_t shift = 0; shift < 40; ++shift) {
    std::vector<Attack> attacks = of.attacks;
    for (Attack& attack : attacks) attack.from_ns += attack.from_ns != 0 ? shift * 30'000 : 0;
    longest_ns = std::max(longest_ns, longest_wait_ns(of.plan, 0, of.own, attacks, 60 * kMs));
  }
  EXPECT_LE(longest_ns, bound.total_ns()) << of.what;
  return longest_ns / bound.total_ns();
}
void expect_near(const Case& of) {
  EXPECT_GE(part_of(of), of.least_part) << of.what << told(of.plan, 0, of.plan.bounds()[0]);
}

// Two packets at once: the second is due when the first is paid, and green a step later.
std::vector<Own> two_at_once(uint64_t rate_bps) {
  return {{0, kLongest, 0}, {0, kLongest, kLongest * 8e9 / static_cast<double>(rate_bps)}};
}

TEST(TreeBound, IsReachedByTurns) {
  std::vector<TestNode> nodes(5, {.min = kMbps});
  nodes[1] = {.priority = 2};
  Case turns{"turns", Plan(nodes), two_at_once(kMbps), {{0, kForever, 1}}, 0.95};
  for (uint32_t leaf = 2; leaf < 5; ++leaf) turns.attacks.push_back({12 * kMs, 0, leaf});
  expect_near(turns);
}

// Three of a site's subscribers take turns with each of two other sites.
TEST(TreeBound, IsReachedByTurnsAtTwoLevels) {
  std::vector<TestNode> nodes(3, {.is_inner = true});
  for (int k = 0; k < 9; ++k) nodes.push_back({.parent = k / 3, .min = kMbps / 2});
  nodes.push_back({.priority = 2});
  Case turns{"levels", Plan(nodes), two_at_once(kMbps / 2), {{0, kForever, 9}}, 0.75};
  for (uint32_t leaf = 1; leaf < 9; ++leaf) turns.attacks.push_back({24 * kMs, 0, leaf});
  expect_near(turns);
}

// Its site reaches the ceiling just before the packet is due.
TEST(TreeBound, IsReachedBelowACeiling) {
  double nearest = 0;
  for (uint64_t min = 4 * kMbps; min < 5 * kMbps; min += kMbps / 20) {
    const std::vector<TestNode> nodes = {{.ceil = 10 * kMbps, .burst = 3000, .is_inner = true},
                                         {.parent = 0, .min = min},
                                         {.parent = 0, .priority = 1},
                                         {}};
    nearest = std::max(
        nearest,
        part_of({"ceiling", Plan(nodes), two_at_once(min), {{0, kForever, 1}, {0, kForever, 2}}}));
  }
  EXPECT_GT(nearest, 0.85);
}

// When its site may send again, the region has just reached its own ceiling.
TEST(TreeBound, IsReachedBelowTwoCeilings) {
  double nearest = 0;
  for (uint64_t min = 2 * kMbps; min < 3 * kMbps; min += kMbps / 20) {
    const std::vector<TestNode> nodes = {
        {.ceil = 10 * kMbps, .burst = 4800, .is_inner = true},
        {.parent = 0, .ceil = 10 * kMbps, .burst = 3000, .is_inner = true},
        {.parent = 1, .min = min},
        {.parent = 1, .priority = 1},
        {.parent = 0, .priority = 1},
        {}};
    const std::vector<Own> own = two_at_once(min);
    const auto due_ns = static_cast<uint64_t>(own[1].due_ns) + kMs;
    nearest =
        std::max(nearest, part_of({"ceilings",
                                   Plan(nodes),
                                   own,
                                   {{0, kForever, 1}, {due_ns, kForever, 2}, {0, kForever, 3}}}));
  }
  EXPECT_GT(nearest, 0.75);
}

// A ceiling whose burst is shorter than the wait keeps nothing for what comes in the meantime. So there is
// a bound for less than the minimum only.
TEST(TreeBound, IsForLessWhereTheCeilingForgets) {
  constexpr uint64_t kMin = 20 * kMbps;
  const auto plan = [](uint32_t burst) {
    return Plan({{.min = kMin, .ceil = kMin, .burst = burst},
                 {.min = 50 * kMbps, .priority = 1},
                 {.priority = 7}});
  };
  Case often{"often", plan(100'000), {}, {{0, kForever, 2}}, 0};
  for (uint64_t k = 0; k < 90; ++k) often.own.push_back({k * 600'001, kLongest, 600'001.0 * k});
  for (uint64_t ms = 5; ms < 55; ms += 6) often.attacks.push_back({ms * kMs, (ms + 3) * kMs, 1});
  const Bound bound = often.plan.bounds()[0];
  EXPECT_NEAR(bound.share_bps, kMin, 1);
  EXPECT_LE(longest_wait_ns(often.plan, 0, often.own, often.attacks, 60 * kMs), bound.total_ns());
  const Plan strict = plan(3000);
  EXPECT_LT(strict.bounds()[0].share_bps, kMin / 2.0);
  EXPECT_GT(longest_wait_ns(strict, 0, often.own, often.attacks, 60 * kMs), bound.total_ns());
  // What a parent is owed is forgotten when it comes back from its ceiling, however long the burst.
  const Plan parent({{.min = 10 * kMbps, .ceil = 30 * kMbps, .burst = 100'000, .is_inner = true},
                     {.parent = 0},
                     {.min = 40 * kMbps, .priority = 1},
                     {.priority = 7}});
  EXPECT_LT(parent.bounds()[0].share_bps, 5.0 * kMbps);
}

// The other flow has the parent's minimum just before the call comes.
TEST(TreeBound, IsReachedByTheMinimumOfAParent) {
  const std::vector<TestNode> nodes = {{.min = 10 * kMbps, .is_inner = true},
                                       {.parent = 0, .priority = 7},
                                       {.parent = 0},
                                       {.priority = 1}};
  expect_near({"calls", Plan(nodes), {{1, 64, 1}}, {{0, kForever, 1}, {0, kForever, 2}}, 0.95});
}

// What others' minima save up while they are idle goes first. A shorter time to catch up on makes the
// bound shorter, and it still holds.
TEST(TreeBound, CountsWhatOthersCatchUp) {
  constexpr uint32_t kShort = 150;
  const std::vector<TestNode> nodes = {
      {.min = 2 * kMbps}, {.min = 20 * kMbps, .priority = 1}, {.priority = 7}};
  const std::vector<Own> own = {{0, kShort, 0}, {0, kShort, kShort * 8e9 / 2e6}};
  const std::vector<Attack> attacks = {{0, kForever, 2, kShort}, {600'000, kForever, 1, kShort}};
  const Plan usual(nodes, {}, kCatchUpNs, kShort);
  const Plan shorter(nodes, {}, kMs / 2, kShort);
  EXPECT_LT(shorter.bounds()[0].total_ns(), usual.bounds()[0].total_ns() / 2);
  expect_near({"usual", usual, own, attacks, 0.7});
  expect_near({"shorter", shorter, own, attacks, 0.7});
}

TEST(TreeBound, OfTheFirstPriorityIsWhatMinimaLeave) {
  const std::vector<TestNode> nodes = {
      {.priority = 7}, {.min = 40 * kMbps}, {.min = 20 * kMbps}, {}};
  Case first{"first", Plan(nodes), {{5 * kMs, kLongest, 5e6}}, {{0, kForever, 3}}, 0.6};
  for (uint32_t leaf = 1; leaf < 3; ++leaf) first.attacks.push_back({5 * kMs, kForever, leaf});
  expect_near(first);
  EXPECT_NEAR(first.plan.bounds()[0].share_bps, 40e6, 1);
}

TEST(TreeBound, TermsAreTold) {
  const std::vector<TestNode> nodes = {{.min = kMbps / 2}, {.min = kMbps / 2}, {}};
  const Plan plan(nodes, kEthernet);
  const Bound bound =
      tree_bounds(plan.capacity, plan.slots(),
                  {.rate_bps = kLinkBps, .round_ns = 1000, .read_interval_ns = 500})[0];
  const double longest_ns = kLongestNs * 1524 / 1500;
  EXPECT_NEAR(bound.share_bps, 0.5e6 * 60 / 84, 1);
  EXPECT_DOUBLE_EQ(bound.own_ns, kMaxMinStepNs);
  EXPECT_NEAR(bound.others_ns, 2 * longest_ns, 1);
  EXPECT_DOUBLE_EQ(bound.arbiter_ns, 2500);
}

NoBound why_not(const std::vector<TestNode>& nodes) { return Plan(nodes).bounds()[0].why_not; }

TEST(TreeBound, IsAbsentWithoutAGuarantee) {
  const Plan plan(std::vector<TestNode>{{.min = kMbps}});
  EXPECT_EQ(tree_bounds(plan.capacity, plan.slots(), {})[0].why_not, NoBound::kNoRate);
  EXPECT_EQ(why_not({{}, {}}), NoBound::kNoMinimum);
  EXPECT_EQ(why_not({{.priority = 1}, {.priority = 2}}), NoBound::kNoMinimum);
  EXPECT_EQ(why_not({{.priority = 1}, {}}), NoBound::kHasOne);
  EXPECT_EQ(why_not({{.priority = 1}, {.min = kLinkBps}}), NoBound::kLateMinima);
  EXPECT_EQ(why_not({{.min = kMbps}, {.min = 99 * kMbps, .priority = 1}}), NoBound::kLateMinima);
  EXPECT_EQ(
      why_not({{.ceil = 90 * kMbps, .burst = 1000, .is_inner = true}, {.parent = 0, .min = kMbps}}),
      NoBound::kShortBurst);
  // Its minimum is shared with another flow by weight.
  EXPECT_EQ(why_not({{.min = kMbps, .is_inner = true}, {.parent = 0}, {.parent = 0}}),
            NoBound::kNoMinimum);
  std::vector<PlacedNode> slots = plan.slots();
  slots[0].params.queue = LeafQueue::kFqCodel;
  EXPECT_EQ(tree_bounds(plan.capacity, slots, {.rate_bps = kLinkBps})[0].why_not,
            NoBound::kOwnOrder);
}

}  // namespace tree_bound_test
}  // namespace batchplane::egress
