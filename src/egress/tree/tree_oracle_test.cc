// SPDX-License-Identifier: BSD-3-Clause
// tree_oracle_test.cc - random trees against the definition of their rates, and against invariants
// for any traffic.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/rng.h"
#include "egress/tree/tree_test_util.h"

namespace batchplane::egress {
namespace tree_oracle_test {

constexpr double kNoCeil = 1e15;

// Rates in Mbit/s of a tree whose leaves are always full or always idle, by water filling.
class FluidTree {
 public:
  explicit FluidTree(const std::vector<TestNode>& nodes)
      : nodes_(nodes), most_(nodes.size()), least_(nodes.size()), rate_(nodes.size()) {
    for (size_t k = nodes.size(); k-- > 0;) measure(static_cast<int>(k));
  }
  // Whether the minimum rates fit below every ceiling and into the link.
  [[nodiscard]] bool is_feasible(double link_mbps) const {
    for (size_t k = 0; k < nodes_.size(); ++k) {
      if (nodes_[k].ceil != 0 && sum(least_, static_cast<int>(k)) > 0.95 * ceil_mbps(k))
        return false;
      if (nodes_[k].min > nodes_[k].ceil && nodes_[k].ceil != 0) return false;
    }
    return sum(least_, -1) < 0.95 * link_mbps;
  }
  const std::vector<double>& rates(double link_mbps) {
    fill(-1, link_mbps);
    return rate_;
  }

 private:
  [[nodiscard]] double ceil_mbps(size_t k) const {
    return nodes_[k].ceil == 0 ? kNoCeil : static_cast<double>(nodes_[k].ceil) / 1e6;
  }
  [[nodiscard]] std::vector<int> children(int parent) const {
    std::vector<int> found;
    for (size_t k = 0; k < nodes_.size(); ++k) {
      if (nodes_[k].parent == parent) found.push_back(static_cast<int>(k));
    }
    return found;
  }
  [[nodiscard]] double sum(const std::vector<double>& of, int parent) const {
    double all = 0;
    for (const int c : children(parent)) all += of[static_cast<size_t>(c)];
    return all;
  }
  // The most that a node can send, and the guaranteed part of it.
  void measure(int node) {
    const auto k = static_cast<size_t>(node);
    const double wanted = nodes_[k].is_inner ? sum(most_, node) : nodes_[k].is_idle ? 0 : kNoCeil;
    most_[k] = std::min(wanted, ceil_mbps(k));
    const double below = nodes_[k].is_inner ? sum(least_, node) : 0;
    least_[k] = std::min(most_[k], std::max(below, static_cast<double>(nodes_[k].min) / 1e6));
  }
  void fill(int node, double amount) {
    const std::vector<int> all = children(node);
    double left = amount;
    for (const int c : all) left -= rate_[static_cast<size_t>(c)] = least_[static_cast<size_t>(c)];
    for (int priority = 7; priority >= 0; --priority) {
      std::vector<int> thirsty;
      for (const int c : all) {
        if (nodes_[static_cast<size_t>(c)].priority == priority) thirsty.push_back(c);
      }
      pour(thirsty, left);
    }
    for (const int c : all) fill(c, rate_[static_cast<size_t>(c)]);
  }
  void pour(std::vector<int> thirsty, double& left) {
    while (!thirsty.empty() && left > 1e-9) {
      double weights = 0;
      for (const int c : thirsty) weights += nodes_[static_cast<size_t>(c)].weight;
      double step = left / weights;
      for (const int c : thirsty) {
        const auto k = static_cast<size_t>(c);
        step = std::min(step, (most_[k] - rate_[k]) / nodes_[k].weight);
      }
      for (const int c : thirsty)
        rate_[static_cast<size_t>(c)] += step * nodes_[static_cast<size_t>(c)].weight;
      left -= step * weights;
      std::erase_if(thirsty, [this](int c) {
        const auto k = static_cast<size_t>(c);
        return most_[k] - rate_[k] < 1e-9;
      });
    }
  }

  std::vector<TestNode> nodes_;
  std::vector<double> most_;
  std::vector<double> least_;
  std::vector<double> rate_;
};

std::vector<TestNode> random_nodes(Rng& rng) {
  std::vector<TestNode> nodes;
  const uint32_t n_inner = rng.below(6);
  const uint32_t n_leaves = 1 + rng.below(12);
  for (uint32_t k = 0; k < n_inner + n_leaves; ++k) {
    TestNode node{.is_inner = k < n_inner};
    node.parent = static_cast<int>(rng.below(std::min(k, n_inner) + 1)) - 1;
    node.weight = 1 + rng.below(rng.below(3) == 0 ? 40 : 4);
    node.priority = static_cast<uint8_t>(rng.below(3));
    if (rng.below(3) == 0) node.ceil = 1'000'000ULL * (2 + rng.below(60));
    if (rng.below(3) == 0) node.min = 1'000'000ULL * (1 + rng.below(25));
    node.is_idle = rng.below(4) == 0;
    nodes.push_back(node);
  }
  return nodes;
}
std::vector<TestNode> feasible_nodes(Rng& rng) {
  for (;;) {
    std::vector<TestNode> nodes = random_nodes(rng);
    if (FluidTree(nodes).is_feasible(100)) return nodes;
  }
}

TEST(TreeOracle, RatesAreThoseOfTheFluid) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    Rng rng(seed);
    std::vector<TestNode> nodes = feasible_nodes(rng);
    // Bursts longer than siblings send in a round: the fluid model has no rounds.
    for (TestNode& node : nodes) node.burst = 100'000;
    const std::vector<double> want = FluidTree(nodes).rates(100);
    const std::vector<double> got = served_mbps(nodes, 100'000'000, 4'000'000'000);
    for (size_t k = 0; k < nodes.size(); ++k) {
      ASSERT_NEAR(got[k], want[k], 0.01 * want[k] + 0.4) << "seed " << seed << ", node " << k;
    }
  }
}

// Checks the bytes that a node has sent against its own rates.
class NodeMeter {
 public:
  explicit NodeMeter(const NodeParams& params) : params_(params) {}

  void sent(double bytes, double now_ns) {
    const double per_ns = static_cast<double>(params_.ceil_bps) / 8e9;
    least_ = std::min(least_, cum_ - per_ns * now_ns);
    cum_ += bytes;
    most_in_a_window_ = std::max(most_in_a_window_, cum_ - per_ns * now_ns - least_);
    if (per_ns > 0) paid_at_ns_ = std::max(paid_at_ns_, now_ns) + bytes / per_ns;
  }
  // Excess over ceiling * t, in the worst window t.
  [[nodiscard]] double most_in_a_window_bytes() const { return most_in_a_window_; }
  [[nodiscard]] double burst_bytes() const { return default_burst_bytes(params_.ceil_bps, 1600); }
  [[nodiscard]] bool is_at_ceiling(double now_ns) const {
    if (params_.ceil_bps == 0) return false;
    const double burst_ns = burst_bytes() * 8e9 / static_cast<double>(params_.ceil_bps);
    return paid_at_ns_ > now_ns + burst_ns - 2;
  }

 private:
  NodeParams params_;
  double cum_ = 0;
  double least_ = 0;
  double most_in_a_window_ = 0;
  double paid_at_ns_ = 0;
};

// A tree whose leaves get packets at random, sometimes many and sometimes none.
class RandomLoad {
 public:
  RandomLoad(const std::vector<TestNode>& nodes, uint64_t seed)
      : nodes_(nodes), tree_(make_tree(nodes, 5000)), rng_(seed) {
    for (const TestNode& node : nodes) meters_.emplace_back(params_of(node));
  }
  void run(int n_steps) {
    Link link(100'000'000);
    for (int k = 0; k < n_steps; ++k) {
      arrive();
      const uint64_t until_ns = now_ns_ + 1 + rng_.below(300'000);
      serve_until(link, until_ns);
      now_ns_ = until_ns;
    }
  }
  void check_ceilings() const {
    for (size_t k = 0; k < nodes_.size(); ++k) {
      if (nodes_[k].ceil == 0) continue;
      ASSERT_LE(meters_[k].most_in_a_window_bytes(), meters_[k].burst_bytes() + 1500 + 1) << k;
    }
  }

 private:
  void arrive() {
    const uint32_t leaf = rng_.below(static_cast<uint32_t>(nodes_.size()));
    const uint32_t n = rng_.below(4) == 0 ? 40 : rng_.below(4);
    for (uint32_t i = 0; i < n && !nodes_[leaf].is_inner; ++i) {
      tree_.enqueue(Descriptor::of(1, rng_.below(2) == 0 ? 1500 : 64, number(leaf), 0));
    }
  }
  void serve_until(Link& link, uint64_t until_ns) {
    serve(
        tree_, link, std::max(now_ns_, link.free_at_ns()), until_ns, [](uint32_t) { return 0U; },
        [this](const Descriptor& pkt, uint64_t now_ns) {
          for (int k = static_cast<int>(place_of(nodes_, pkt.flow)); k >= 0; k = parent(k)) {
            meters_[static_cast<size_t>(k)].sent(pkt.len_bytes(), static_cast<double>(now_ns));
          }
        },
        [this](uint64_t now_ns) { check_idle(now_ns); });
  }
  // Packets left then are left because of a ceiling.
  void check_idle(uint64_t now_ns) const {
    for (size_t k = 0; k < nodes_.size(); ++k) {
      if (nodes_[k].is_inner || tree_.backlog_pkts(number(k)) == 0) continue;
      ASSERT_TRUE(may_not_send(static_cast<int>(k), now_ns)) << k;
    }
  }
  [[nodiscard]] bool may_not_send(int leaf, uint64_t now_ns) const {
    for (int k = leaf; k >= 0; k = parent(k)) {
      if (meters_[static_cast<size_t>(k)].is_at_ceiling(static_cast<double>(now_ns))) return true;
    }
    return false;
  }
  [[nodiscard]] uint32_t number(size_t k) const { return number_of(nodes_, static_cast<int>(k)); }
  [[nodiscard]] int parent(int k) const { return nodes_[static_cast<size_t>(k)].parent; }

  std::vector<TestNode> nodes_;
  Tree tree_;
  std::vector<NodeMeter> meters_;
  Rng rng_;
  uint64_t now_ns_ = 0;
};

TEST(TreeOracle, NoWindowIsAboveACeilingAndNothingElseHoldsBack) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Rng rng(seed);
    RandomLoad load(random_nodes(rng), seed);
    load.run(1000);
    if (testing::Test::HasFatalFailure()) FAIL() << "seed " << seed;
    load.check_ceilings();
  }
}

// One leaf alone at its ceiling, for as long as a thousand packets take.
double carried_over_ceiling(uint64_t ceil_bps, uint32_t len_bytes) {
  Tree tree({.leaves = 1, .shaped_leaves = 1, .pkts = 3});
  tree.add(0, tree.root(), {.ceil_bps = ceil_bps});
  for (int k = 0; k < 2; ++k) tree.enqueue(Descriptor::of(1, len_bytes, 0, 0));
  const uint64_t duration_ns = 8'000'000'000ULL * len_bytes / ceil_bps * 1000 + 10'000'000;
  uint64_t bytes = 0;
  Link link;
  serve(
      tree, link, 0, duration_ns, [&](uint32_t) { return len_bytes; },
      [&](const Descriptor& pkt, uint64_t) { bytes += pkt.len_bytes(); });
  const double burst = default_burst_bytes(ceil_bps, 1600);
  const double may = static_cast<double>(ceil_bps) / 8e9 * static_cast<double>(duration_ns) + burst;
  return static_cast<double>(bytes) / may;
}

TEST(TreeOracle, CeilingsAreReached) {
  for (uint64_t ceil_bps = 64'000; ceil_bps <= 400'000'000'000; ceil_bps *= 5) {
    for (const uint32_t len : {64U, 1500U}) {
      EXPECT_NEAR(carried_over_ceiling(ceil_bps, len), 1, 0.002) << ceil_bps << " " << len;
    }
  }
}

// However others flood, a leaf that sends no more than its minimum rate waits for a few packets
// only.
TEST(TreeOracle, FlowsWithinTheirMinimumHardlyWait) {
  std::vector<TestNode> nodes{{.is_inner = true}, {.parent = 0, .min = 10'000'000}};
  for (int k = 0; k < 40; ++k) nodes.push_back({.parent = k % 2 - 1, .weight = 50, .priority = 7});
  Tree tree = make_tree(nodes, 1000);
  for (uint32_t k = 1; k < nodes.size() - 1; ++k) {
    for (int i = 0; i < 3; ++i) tree.enqueue(Descriptor::of(1, 1500, k, 0));
  }
  Link link(100'000'000);
  uint64_t worst_ns = 0;
  uint64_t put_at_ns = 0;
  for (int k = 0; k < 1000; ++k, put_at_ns += 1'250'000) {
    tree.enqueue(Descriptor::of(1, 1500, 0, 0));
    serve(
        tree, link, std::max(put_at_ns, link.free_at_ns()), put_at_ns + 1'250'000,
        [](uint32_t leaf) { return leaf == 0 ? 0U : 1500U; },
        [&](const Descriptor& pkt, uint64_t now_ns) {
          if (pkt.flow == 0) worst_ns = std::max(worst_ns, now_ns - put_at_ns);
        });
  }
  EXPECT_EQ(tree.backlog_pkts(0), 0U);
  EXPECT_LE(worst_ns, 130'000U);  // for the packet on the link
}

}  // namespace tree_oracle_test
}  // namespace batchplane::egress
