// SPDX-License-Identifier: BSD-3-Clause
// pkt_store.h - queues of packets out of one store of nodes, and who has a long one when the store is full.
#pragma once

#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "egress/discipline/descriptor.h"

namespace batchplane::egress {

inline constexpr uint32_t kNone = ~0U;

// The packet that goes next lies in the queue itself. Whether there is one its owner knows.
struct PktQueue {
  Descriptor head;
  uint32_t first_node = kNone;  // of those behind the head
  uint32_t last_node = kNone;
};
static_assert(sizeof(PktQueue) == 24);

class PktStore {
 public:
  explicit PktStore(uint32_t pkts) : nodes_(pkts), words_(pkts), step_(step_through(pkts)) {
    for (uint32_t n = 0; n < pkts; ++n) nodes_[n].next = n + 1 < pkts ? n + 1 : kNone;
    free_node_ = pkts == 0 ? kNone : 0;
  }

  // In all queues together.
  [[nodiscard]] uint32_t size_pkts() const { return size_pkts_; }
  [[nodiscard]] bool is_full() const { return size_pkts_ == nodes_.size(); }

  // Puts a packet at the end; false when the store is full.
  bool push(PktQueue& queue, bool is_empty, const Descriptor& pkt) noexcept {
    if (is_full()) [[unlikely]]
      return false;
    ++size_pkts_;
    if (is_empty) {
      queue.head = pkt;
      return true;
    }
    const uint32_t at = free_node_;
    Node& node = nodes_[at];
    free_node_ = node.next;
    node = {pkt.handle_and_len, pkt.entry_ticks, kNone};
    words_[at] = pkt.flow;
    if (queue.first_node == kNone) {
      queue.first_node = at;
    } else {
      nodes_[queue.last_node].next = at;
    }
    queue.last_node = at;
    return true;
  }
  // Takes the head of a queue that is not empty; the packet behind it becomes the head.
  Descriptor pop(PktQueue& queue) noexcept {
    const Descriptor pkt = queue.head;
    --size_pkts_;
    const uint32_t at = queue.first_node;
    if (at == kNone) return pkt;
    Node& node = nodes_[at];
    queue.head.handle_and_len = node.handle_and_len;
    queue.head.entry_ticks = node.entry_ticks;
    queue.first_node = node.next;
    node.next = free_node_;
    free_node_ = at;
    return pkt;
  }
  // Takes the packet behind the head, which there is: whatever was told of the head still holds.
  Descriptor pop_behind(PktQueue& queue) noexcept {
    const Descriptor head = pop(queue);
    return std::exchange(queue.head, head);
  }

  // The flow of a long queue, as Descriptor::flow said it: the longest, by `length_of(flow)`, among that of the last
  // call, the newcomer's and kLooks more, in which packets of the store lie. The more of the store a queue has, the
  // sooner it is met. After size / kLooks calls every queue has been.
  static constexpr uint32_t kLooks = 8;
  template <class Length>
  uint32_t find_long(uint32_t newcomer, Length&& length_of) noexcept {
    auto most = length_of(long_word_);
    const auto look = [&](uint32_t word) {
      const auto length = length_of(word);
      if (length <= most) return;
      most = length;
      long_word_ = word;
    };
    look(newcomer);
    const auto n = static_cast<uint32_t>(nodes_.size());
    for (uint32_t k = 0; k < kLooks; ++k) {
      looked_at_ = looked_at_ >= n - step_ ? looked_at_ - (n - step_) : looked_at_ + step_;
      look(words_[looked_at_]);
    }
    return long_word_;
  }

 private:
  struct Node {
    uint64_t handle_and_len;
    uint32_t entry_ticks;
    uint32_t next;
  };

  // Comes by all of n nodes, one after the other far apart: neighbours may be of one burst.
  static uint32_t step_through(uint32_t n) {
    auto step = static_cast<uint32_t>(uint64_t{n} * 618 / 1000);
    while (std::gcd(step, n) > 1) ++step;
    return step;
  }

  std::vector<Node> nodes_;
  std::vector<uint32_t> words_;  // by node: Descriptor::flow of the last packet in it
  uint32_t free_node_ = kNone;
  uint32_t size_pkts_ = 0;
  uint32_t step_;
  uint32_t looked_at_ = 0;
  uint32_t long_word_ = 0;
};

}  // namespace batchplane::egress
