// SPDX-License-Identifier: BSD-3-Clause
// tree_test_util.h - lets tests describe trees as lists, and serves them by a link in virtual time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "egress/discipline/link.h"
#include "egress/tree/tree.h"

namespace batchplane::egress {

// Inner nodes come first; see number_of().
struct TestNode {
  int parent = -1;  // index in the list; -1: the root
  uint64_t min = 0;
  uint64_t ceil = 0;
  uint32_t burst = 0;
  uint32_t weight = 1;
  uint8_t priority = 0;
  bool is_inner = false;
  bool is_idle = false;
};

inline NodeParams params_of(const TestNode& node) {
  return {.min_rate_bps = node.min,
          .ceil_bps = node.ceil,
          .burst_bytes = node.burst,
          .weight = node.weight,
          .priority = node.priority};
}

// Number in the tree of node k of a list: leaves in order, then the root, then inner nodes.
inline uint32_t number_of(const std::vector<TestNode>& nodes, int k) {
  const auto n = static_cast<int>(std::ranges::count_if(nodes, &TestNode::is_inner));
  const auto n_leaves = static_cast<int>(nodes.size()) - n;
  return static_cast<uint32_t>(k < n ? n_leaves + 1 + k : k - n);
}
inline size_t place_of(const std::vector<TestNode>& nodes, uint32_t leaf) {
  return leaf + static_cast<size_t>(std::ranges::count_if(nodes, &TestNode::is_inner));
}
inline Tree make_tree(const std::vector<TestNode>& nodes, uint32_t pkts,
                      uint64_t catch_up_ns = kCatchUpNs) {
  const uint32_t n_leaves = number_of(nodes, static_cast<int>(nodes.size()));
  const auto n_inner = static_cast<uint32_t>(nodes.size()) - n_leaves;
  Tree tree({.leaves = n_leaves,
             .inner_nodes = n_inner + 1,
             .shaped_leaves = n_leaves,
             .pkts = pkts,
             .catch_up_ns = catch_up_ns});
  for (int k = 0; k < static_cast<int>(nodes.size()); ++k) {
    const TestNode& node = nodes[static_cast<size_t>(k)];
    const uint32_t parent = node.parent < 0 ? tree.root() : number_of(nodes, node.parent);
    tree.add(number_of(nodes, k), parent, params_of(node));
  }
  return tree;
}

// Serves until a given time. `next_len(leaf)` refills a leaf after each packet it sends; 0: no
// more. `served(pkt, now_ns)` is called for each packet, `idle(now_ns)` whenever nothing could be
// sent.
inline constexpr auto kIgnoreIdle = [](uint64_t) {};
template <class NextLen, class Served, class Idle = decltype(kIgnoreIdle)>
void serve(Tree& tree, Link& link, uint64_t from_ns, uint64_t until_ns, NextLen&& next_len,
           Served&& served, const Idle& idle = kIgnoreIdle) {
  uint64_t now_ns = from_ns;
  link.idle_until(now_ns);
  while (now_ns < until_ns) {
    tree.advance(now_ns);
    Descriptor pkt;
    if (!tree.dequeue(pkt)) {
      idle(now_ns);
      now_ns = std::min(tree.next_ready_ns(), until_ns);
      link.idle_until(now_ns);
      continue;
    }
    served(pkt, now_ns);
    if (const uint32_t len = next_len(pkt.flow); len != 0) {
      tree.enqueue(Descriptor::of(1, len, pkt.flow, 0));
    }
    link.carry(pkt.len_bytes());
    now_ns = std::max(now_ns, link.free_at_ns());
  }
}

// By node; an inner node's rate includes everything below it.
inline std::vector<double> served_mbps(const std::vector<TestNode>& nodes, uint64_t rate_bps,
                                       uint64_t duration_ns, uint64_t catch_up_ns = kCatchUpNs) {
  constexpr uint32_t kLenBytes = 1500;
  Tree tree = make_tree(nodes, 4 * static_cast<uint32_t>(nodes.size()), catch_up_ns);
  for (uint32_t k = 0; k < nodes.size(); ++k) {
    if (nodes[k].is_inner || nodes[k].is_idle) continue;
    for (int i = 0; i < 3; ++i)
      tree.enqueue(Descriptor::of(1, kLenBytes, number_of(nodes, static_cast<int>(k)), 0));
  }
  std::vector<double> mbps(nodes.size());
  Link link(rate_bps);
  serve(
      tree, link, 0, duration_ns, [](uint32_t) { return kLenBytes; },
      [&](const Descriptor& pkt, uint64_t) {
        for (int k = static_cast<int>(place_of(nodes, pkt.flow)); k >= 0;
             k = nodes[static_cast<size_t>(k)].parent) {
          mbps[static_cast<size_t>(k)] += 8e3 * pkt.len_bytes() / static_cast<double>(duration_ns);
        }
      });
  return mbps;
}

}  // namespace batchplane::egress
