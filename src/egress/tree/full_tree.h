// SPDX-License-Identifier: BSD-3-Clause
// full_tree.h - for tests: subscribers with four classes each, all always backlogged, in virtual
// time; measures the rate each gets.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/rng.h"
#include "egress/discipline/link.h"
#include "egress/tree/tree.h"

namespace batchplane::egress {

struct FullTreeShape {
  uint32_t subscribers = 1;
  uint64_t link_bps = 0;
  uint64_t ceil_bps = 0;  // of each subscriber; 0: none
  bool is_mixed = false;  // packets of 64 to 1500 bytes; else 1500
};

// Class c of a subscriber is leaf 4 s + c and has weight 1 + c.
class FullTree {
 public:
  static constexpr uint32_t kClasses = 4;
  static constexpr uint32_t kLongestBytes = 1500;

  explicit FullTree(const FullTreeShape& shape)
      : shape_(shape),
        tree_({.leaves = shape.subscribers * kClasses,
               .inner_nodes = 1 + shape.subscribers,
               .pkts = shape.subscribers * kClasses * kPktsOfLeaf}),
        link_(shape.link_bps, {}),
        sent_bytes_(size_t{shape.subscribers} * kClasses) {
    for (uint32_t s = 0; s < shape.subscribers; ++s) {
      const uint32_t subscriber = tree_.root() + 1 + s;
      tree_.add(subscriber, tree_.root(), {.ceil_bps = shape.ceil_bps});
      for (uint32_t c = 0; c < kClasses; ++c) {
        tree_.add(s * kClasses + c, subscriber, {.weight = 1 + c});
      }
    }
    for (uint32_t k = 0; k < kPktsOfLeaf; ++k) {
      for (uint32_t leaf = 0; leaf < sent_bytes_.size(); ++leaf) refill(leaf);
    }
  }

  void run(uint64_t until_ns) {
    while (now_ns_ < until_ns) {
      tree_.advance(now_ns_);
      Descriptor pkt;
      if (!tree_.dequeue(pkt)) {
        now_ns_ = std::min(tree_.next_ready_ns(), until_ns);
        link_.idle_until(now_ns_);
        continue;
      }
      sent_bytes_[pkt.flow] += pkt.len_bytes();
      refill(pkt.flow);
      link_.carry(pkt.len_bytes());
      now_ns_ = std::max(now_ns_, link_.free_at_ns());
    }
  }
  [[nodiscard]] const std::vector<uint64_t>& sent_bytes() const { return sent_bytes_; }

 private:
  static constexpr uint32_t kPktsOfLeaf = 2;

  void refill(uint32_t leaf) {
    const uint32_t len = shape_.is_mixed ? 64 + rng_.below(kLongestBytes - 63) : kLongestBytes;
    tree_.enqueue(Descriptor::of(1, len, leaf, 0));
  }

  FullTreeShape shape_;
  Rng rng_{1};
  Tree tree_;
  Link link_;
  uint64_t now_ns_ = 0;
  std::vector<uint64_t> sent_bytes_;
};

}  // namespace batchplane::egress
