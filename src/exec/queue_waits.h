// SPDX-License-Identifier: BSD-3-Clause
// queue_waits.h - how long the packet at the head of a queue has waited, without a time stamp per packet:
// packets that arrive together share one.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace batchplane::exec {

// Owner: one worker. reserve() allocates; until then nothing is recorded.
class QueueWaits {
 public:
  void reserve(uint32_t n_groups) { groups_.resize(std::bit_ceil(n_groups)); }

  // The queue now holds size_pkts: additional packets have just arrived, missing ones left from the tail.
  void note_size(uint32_t size_pkts, uint64_t now_ns) {
    if (groups_.empty()) return;
    if (size_pkts > n_pkts_) join(size_pkts - n_pkts_, now_ns);
    while (size_pkts < n_pkts_) {
      Group& newest = at(n_groups_ - 1);
      const uint32_t gone = std::min(newest.n_pkts, n_pkts_ - size_pkts);
      newest.n_pkts -= gone;
      n_pkts_ -= gone;
      if (newest.n_pkts == 0) --n_groups_;
    }
  }
  // n_pkts packets left from the head.
  void leave(uint32_t n_pkts) {
    while (n_pkts != 0 && n_groups_ != 0) {
      Group& oldest = at(0);
      const uint32_t gone = std::min(oldest.n_pkts, n_pkts);
      oldest.n_pkts -= gone;
      n_pkts_ -= gone;
      n_pkts -= gone;
      if (oldest.n_pkts != 0) continue;
      ++first_;
      --n_groups_;
    }
  }
  [[nodiscard]] uint64_t head_wait_ns(uint64_t now_ns) const {
    return n_groups_ == 0 ? 0 : now_ns - groups_[first_ & (groups_.size() - 1)].since_ns;
  }

 private:
  struct Group {
    uint64_t since_ns = 0;
    uint32_t n_pkts = 0;
  };
  [[nodiscard]] Group& at(uint32_t i) { return groups_[(first_ + i) & (groups_.size() - 1)]; }

  void join(uint32_t n_pkts, uint64_t now_ns) {
    n_pkts_ += n_pkts;
    // Without a free group the packets join the last one, and count as older than they are.
    const bool is_same = n_groups_ != 0 && at(n_groups_ - 1).since_ns == now_ns;
    if (is_same || n_groups_ == groups_.size()) {
      at(n_groups_ - 1).n_pkts += n_pkts;
    } else {
      at(n_groups_++) = {now_ns, n_pkts};
    }
  }

  std::vector<Group> groups_;
  uint32_t first_ = 0;
  uint32_t n_groups_ = 0;
  uint32_t n_pkts_ = 0;
};

}  // namespace batchplane::exec
