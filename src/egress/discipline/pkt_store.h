// SPDX-License-Identifier: BSD-3-Clause
// pkt_store.h - packet queues that share one store of nodes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "egress/discipline/descriptor.h"

namespace batchplane::egress {

inline constexpr uint32_t kNone = ~0U;

// The head packet is stored in the queue itself. Its owner knows whether there is one.
struct PktQueue {
  Descriptor head;
  uint32_t first_node = kNone;  // first packet behind the head
  uint32_t last_node = kNone;
};
static_assert(sizeof(PktQueue) == 24);

class PktStore {
 public:
  explicit PktStore(uint32_t pkts)
      : nodes_(pkts), nearly_full_pkts_(pkts - std::min(pkts / 8, kLastPkts)) {
    for (uint32_t n = 0; n < pkts; ++n) nodes_[n].next = n + 1 < pkts ? n + 1 : kNone;
    free_node_ = pkts == 0 ? kNone : 0;
  }

  // Packets in all queues.
  [[nodiscard]] uint32_t size_pkts() const { return size_pkts_; }
  [[nodiscard]] bool is_full() const { return size_pkts_ == nodes_.size(); }
  // The store is nearly full when no more than an eighth of it, and no more than kLastPkts, is free.
  static constexpr uint32_t kLastPkts = 512;
  [[nodiscard]] bool is_nearly_full() const { return size_pkts_ >= nearly_full_pkts_; }

  // Appends a packet; false if the store is full.
  bool push(PktQueue& queue, bool is_empty, const Descriptor& pkt) noexcept {
    if (is_full()) [[unlikely]]
      return false;
    put(queue, is_empty, pkt);
    return true;
  }
  // The same, if there is known to be room.
  void put(PktQueue& queue, bool is_empty, const Descriptor& pkt) noexcept {
    ++size_pkts_;
    if (is_empty) {
      queue.head = pkt;
      return;
    }
    const uint32_t at = free_node_;
    Node& node = nodes_[at];
    free_node_ = node.next;
    node = {pkt.handle_and_len, pkt.entry_ticks, kNone};
    if (queue.first_node == kNone) {
      queue.first_node = at;
    } else {
      nodes_[queue.last_node].next = at;
    }
    queue.last_node = at;
  }
  // Removes the head of a non-empty queue; the packet behind it becomes the head.
  Descriptor pop(PktQueue& queue) noexcept {
    const Descriptor pkt = queue.head;
    --size_pkts_;
    const uint32_t at = queue.first_node;
    if (at == kNone) return pkt;
    Node& node = nodes_[at];
    queue.head.handle_and_len = node.handle_and_len;
    queue.head.entry_ticks = node.entry_ticks;
    queue.first_node = node.next;
    // The next head, if this queue is served again.
    __builtin_prefetch(&nodes_[node.next == kNone ? at : node.next], 1);
    node.next = free_node_;
    free_node_ = at;
    return pkt;
  }
  // Removes the packet behind the head, which must exist. The head stays, so the order of flows is
  // not affected.
  Descriptor pop_behind(PktQueue& queue) noexcept {
    const Descriptor head = pop(queue);
    return std::exchange(queue.head, head);
  }

 private:
  struct Node {
    uint64_t handle_and_len;
    uint32_t entry_ticks;
    uint32_t next;
  };

  std::vector<Node> nodes_;
  uint32_t free_node_ = kNone;
  uint32_t size_pkts_ = 0;
  uint32_t nearly_full_pkts_;
};

}  // namespace batchplane::egress
