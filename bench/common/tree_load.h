// SPDX-License-Identifier: BSD-3-Clause
// tree_load.h - a tree of subscribers with four classes each under a load that never changes, in virtual time.
#pragma once

#include <string>

#include "base/rng.h"
#include "common/load_contender.h"
#include "egress/tree/tree.h"

namespace bench {

enum class TreeUse {
  kComing,    // a few packets are inside at any time, so nearly each finds its leaf idle
  kShares,    // all leaves have packets, and neither minima nor ceilings
  kMinima,    // likewise, and minima take half of the link
  kCeilings,  // likewise, and all subscribers are at their ceilings, nine tenths of the link together
};

struct TreeShape {
  uint32_t subscribers = 32;
  TreeUse use = TreeUse::kShares;
  bool is_mixed = false;  // 64 and 1500 bytes in turn; else 64
  // Eight in each leaf, which has FQ-CoDel; and 64, 576 and 1500 bytes as 8 : 3 : 1.
  bool has_connections = false;
  uint32_t used_classes = 4;  // of 4
  uint32_t pkts_of_leaf = 3;  // in each, unless they come and go
};

class TreeLoad {
 public:
  static constexpr uint32_t kBatchPkts = 32;

  explicit TreeLoad(const TreeShape& shape) : shape_(shape), rng_(1), tree_(capacity()) {
    for (uint32_t s = 0; s < shape.subscribers; ++s) {
      tree_.add(subscriber(s), tree_.root(), params());
      for (uint32_t c = 0; c < kClasses; ++c) {
        tree_.add(leaf(s, c), subscriber(s),
                  {.weight = 1 + c,
                   .priority = static_cast<uint8_t>(c == 3 ? 1 : 0),
                   .queue = shape.has_connections ? batchplane::egress::LeafQueue::kFqCodel
                                                  : batchplane::egress::LeafQueue::kFifo});
      }
    }
    const uint32_t leaves = shape.subscribers * shape.used_classes;
    const uint32_t inside =
        shape.use == TreeUse::kComing ? kComingPkts : leaves * shape.pkts_of_leaf;
    for (uint32_t k = 0; k < inside; ++k) put(next_leaf(k % leaves));
    inside_pkts_ = tree_.backlog_pkts();
  }

  // Takes out and puts in 32 packets, so often.
  uint64_t run(uint32_t n_batches) {
    batchplane::egress::Descriptor pkts[kBatchPkts];
    for (uint32_t b = 0; b < n_batches; ++b) {
      tree_.advance(static_cast<uint64_t>(now_ns_));
      take(pkts);
      for (auto& pkt : pkts) {
        const uint32_t to = shape_.use == TreeUse::kComing ? next_leaf(0) : pkt.flow;
        pkt = packet(to);
        tree_.prefetch(pkt.flow);
      }
      for (const auto& pkt : pkts) tree_.prefetch_path(pkt.flow);
      for (const auto& pkt : pkts) tree_.enqueue(pkt);
    }
    return uint64_t{n_batches} * kBatchPkts;
  }
  // Nothing was lost or refused.
  [[nodiscard]] bool is_whole() const { return tree_.backlog_pkts() == inside_pkts_; }

 private:
  static constexpr uint32_t kClasses = 4;
  static constexpr uint32_t kComingPkts = 64;
  static constexpr double kLinkBps = 100e9;
  static constexpr double kNsOfByte = 8e9 / kLinkBps;

  [[nodiscard]] batchplane::egress::TreeCapacity capacity() const {
    return {.leaves = shape_.subscribers * kClasses,
            .inner_nodes = 1 + shape_.subscribers,
            .pkts = shape_.subscribers * kClasses * shape_.pkts_of_leaf + 1024,
            .connections = shape_.has_connections ? shape_.subscribers * kClasses * 8 : 0};
  }
  [[nodiscard]] batchplane::egress::NodeParams params() const {
    const double fair_bps = kLinkBps / shape_.subscribers;
    const double ceil_bps = fair_bps * (shape_.use == TreeUse::kCeilings ? 0.9 : 20);
    const double min_bps = shape_.use == TreeUse::kMinima ? fair_bps / 2 : 0;
    return {.min_rate_bps = static_cast<uint64_t>(min_bps),
            .ceil_bps = static_cast<uint64_t>(ceil_bps)};
  }
  [[nodiscard]] uint32_t subscriber(uint32_t s) const { return tree_.root() + 1 + s; }
  static uint32_t leaf(uint32_t s, uint32_t c) { return s * kClasses + c; }
  uint32_t next_leaf(uint32_t k) {
    if (shape_.use == TreeUse::kComing) k = rng_.below(shape_.subscribers * shape_.used_classes);
    return leaf(k / shape_.used_classes, k % shape_.used_classes);
  }
  uint32_t next_len_bytes() {
    const uint32_t k = n_made_++;
    if (shape_.has_connections) return k % 12 == 0 ? 1500 : k % 3 == 0 ? 576 : 64;
    return shape_.is_mixed && (k & 1) != 0 ? 1500 : 64;
  }
  batchplane::egress::Descriptor packet(uint32_t to) {
    const uint32_t word =
        shape_.has_connections ? batchplane::egress::flow_word(to, rng_.below(8), false) : to;
    return batchplane::egress::Descriptor::of(1, next_len_bytes(), word,
                                              static_cast<uint64_t>(now_ns_));
  }
  void put(uint32_t to) { tree_.enqueue(packet(to)); }
  void take(batchplane::egress::Descriptor* pkts) {
    for (uint32_t n = 0; n < kBatchPkts;) {
      if (tree_.dequeue(pkts[n])) {
        now_ns_ += pkts[n++].len_bytes() * kNsOfByte;
        continue;
      }
      // As a round of an arbiter that finds nothing, and comes again.
      now_ns_ += 1000;
      tree_.advance(static_cast<uint64_t>(now_ns_));
    }
  }

  TreeShape shape_;
  uint32_t n_made_ = 0;
  uint32_t inside_pkts_ = 0;
  batchplane::Rng rng_;
  batchplane::egress::Tree tree_;
  double now_ns_ = 0;
};

inline Contender tree_contender(const std::string& name, const TreeShape& shape) {
  return load_contender<TreeLoad>(name, shape);
}

}  // namespace bench
