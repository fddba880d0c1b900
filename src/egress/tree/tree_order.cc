// SPDX-License-Identifier: BSD-3-Clause
// tree_order.cc - chooses the next packet of a tree.
#include <algorithm>
#include <bit>
#include <memory>
#include <utility>

#include "egress/tree/tree.h"
#include "egress/tree/tree_places.inl"

namespace batchplane::egress {

void Tree::place_path(uint32_t at) noexcept {
  while (at != root() && place(at)) at = nodes_[at].parent;
}

void Tree::take_off_path(uint32_t at) noexcept {
  pay_run();
  TreeNode& node = nodes_[at];
  if (node.shaper != kNone) stop_waiting(node.shaper);
  if (node.place == Place::kOut) return;
  unlink(at);
  place_path(node.parent);
}

void Tree::prefetch_path(uint32_t flow) const noexcept {
  const uint32_t leaf = flow & kFlowMask;
  if (!is_leaf(leaf)) return;
  if (flow != leaf) connections_.prefetch_connection(flow);
  if (nodes_[leaf].backlog_pkts != 0) return;
  const uint32_t parent = nodes_[leaf].parent;
  __builtin_prefetch(&nodes_[parent], 1);
  rates_.prefetch(parent, nodes_[leaf].priority);
}

void Tree::advance(uint64_t now_ns) noexcept {
  if (now_ns <= now_ns_) return;
  pay_run();
  now_ns_ = now_ns;
  wheel_.advance(rates_, now_ns, [this](uint32_t id) {
    rates_[id].waits = Shaper::Waits::kNot;
    place_path(rates_[id].node);
  });
}

Enqueued Tree::enqueue(const Descriptor& pkt) noexcept {
  const uint32_t leaf = pkt.flow & kFlowMask;
  if (!is_leaf(leaf)) [[unlikely]]
    return Enqueued::kNoFlow;
  if (pkt.len_bytes() > capacity_.lmax_bytes) [[unlikely]]
    return Enqueued::kTooLong;
  TreeNode& node = nodes_[leaf];
  if (node.backlog_pkts == 0) {
    if (node.queue != node.wanted_queue) [[unlikely]]
      switch_empty(node);
  } else if (node.leaf.backlog_bytes + pkt.len_bytes() > node.leaf.limit_bytes) [[unlikely]] {
    if (!make_room(node, pkt.len_bytes())) return Enqueued::kFull;
  }
  Enqueued pushed = Enqueued::kYes;
  if (pkts_.is_nearly_full()) [[unlikely]] {
    pushed = push_where_full(node, pkt);
    if (pushed == Enqueued::kFull) return pushed;
  } else if (!push(node, pkt)) [[unlikely]] {
    return Enqueued::kFull;
  }
  node.leaf.backlog_bytes += pkt.len_bytes();
  if (++node.backlog_pkts == 1) place_path(leaf);
  return pushed;
}

// The part of a packet's flow_word() that the queue keeps.
inline uint32_t word_in(const TreeNode& node, uint32_t word) noexcept {
  return node.queue == LeafQueue::kFqCodel ? word : word & (kFlowMask | kMarkBit);
}

// Adds a packet when there is room in the tree. False when there is none for its connection.
inline bool Tree::push(TreeNode& node, const Descriptor& pkt) noexcept {
  if (node.queue == LeafQueue::kFifo) [[likely]] {
    pkts_.put(node.leaf.queue, node.backlog_pkts == 0, pkt);
    return true;
  }
  Descriptor of = pkt;
  of.flow = word_in(node, pkt.flow);
  return connections_.push(pkts_, node.leaf.connections, of, aqm_of(node.queue));
}

// Orders by the leaf's backlog, then by the connection's.
inline uint64_t Tree::length_of(uint32_t word) const noexcept {
  const TreeNode& node = nodes_[word & kFlowMask];
  const uint64_t pkts = node.backlog_pkts;
  return pkts << 32 | (node.queue == LeafQueue::kFqCodel ? connections_.backlog_pkts(word) : 0);
}

// For when all leaves together hold their limit, or nearly.
Enqueued Tree::push_where_full(TreeNode& node, const Descriptor& pkt) noexcept {
  const uint32_t word = long_queue_.find(pkt.flow, [this](uint32_t of) { return length_of(of); });
  if (!pkts_.is_full()) return push(node, pkt) ? Enqueued::kYes : Enqueued::kFull;
  const bool has_connection =
      node.queue == LeafQueue::kFifo || connections_.has_room_for(word_in(node, pkt.flow));
  if (!has_connection) return Enqueued::kFull;
  if (nodes_[word & kFlowMask].backlog_pkts > node.backlog_pkts + 1) {
    pushed_out_ = push_out(word);
    push(node, pkt);
    return Enqueued::kPushedOut;
  }
  // The packet's own leaf is the longest.
  if (node.backlog_pkts != 0) make_room(node, 0);
  return !pkts_.is_full() && push(node, pkt) ? Enqueued::kYes : Enqueued::kFull;
}

// Pushes out a packet of a leaf with at least two, so that the leaf keeps its place.
Descriptor Tree::push_out(uint32_t word) noexcept {
  const uint32_t leaf = word & kFlowMask;
  TreeNode& node = nodes_[leaf];
  Descriptor pkt;
  if (node.queue == LeafQueue::kFifo) {
    pkt = pkts_.pop_behind(node.leaf.queue);
  } else {
    pkt = connections_.push_out(pkts_, node.leaf.connections, word_in(node, word));
  }
  pkt.flow = leaf;
  node.leaf.backlog_bytes -= pkt.len_bytes();
  --node.backlog_pkts;
  return pkt;
}

// A queue with connections drops from the longest one, not the arriving packet. At least one packet
// stays.
bool Tree::make_room(TreeNode& node, uint32_t len_bytes) noexcept {
  if (node.queue == LeafQueue::kFifo) return false;
  const uint32_t before = shed_.n;
  connections_.shed(pkts_, node.leaf.connections, shed_, node.backlog_pkts - 1);
  count_shed(node, before);
  return node.leaf.backlog_bytes + len_bytes <= node.leaf.limit_bytes;
}

void Tree::count_shed(TreeNode& node, uint32_t n_before) noexcept {
  for (uint32_t i = n_before; i < shed_.n; ++i) {
    node.leaf.backlog_bytes -= shed_.all[i].len_bytes();
    --node.backlog_pkts;
  }
}

inline Descriptor Tree::pop(uint32_t leaf) noexcept {
  TreeNode& node = nodes_[leaf];
  if (node.queue != LeafQueue::kFifo) return pop_connection(node);
  Descriptor pkt = pkts_.pop(node.leaf.queue);
  pkt.flow = leaf;
  node.leaf.backlog_bytes -= pkt.len_bytes();
  --node.backlog_pkts;
  return pkt;
}

Descriptor Tree::pop_connection(TreeNode& node) noexcept {
  const uint32_t before = shed_.n;
  // On a slow link one packet stays in the queue for longer than a target meant for fast links.
  const uint64_t target_ns =
      node.shaper == kNone ? 0 : rates_[node.shaper].ceil.time_of_ns(unit_bytes_ * 3 / 2);
  const Descriptor pkt =
      connections_.pop(pkts_, node.leaf.connections, now_ns_, target_ns, shed_, aqm_of(node.queue));
  count_shed(node, before);
  node.leaf.backlog_bytes -= pkt.len_bytes();
  if (--node.backlog_pkts == 0) connections_.clear(node.leaf.connections);
  return pkt;
}

Descriptor Tree::drain_leaf(uint32_t leaf) noexcept {
  TreeNode& node = nodes_[leaf];
  if (node.queue == LeafQueue::kFifo) return pop(leaf);
  Descriptor pkt = connections_.drain(pkts_, node.leaf.connections);
  pkt.flow = leaf;
  node.leaf.backlog_bytes -= pkt.len_bytes();
  if (--node.backlog_pkts == 0) connections_.clear(node.leaf.connections);
  return pkt;
}

void Tree::switch_empty(TreeNode& node) noexcept {
  node.queue = node.wanted_queue;
  if (node.queue == LeafQueue::kFifo) {
    std::construct_at(&node.leaf.queue);
  } else {
    std::construct_at(&node.leaf.connections);
  }
}

inline uint32_t Tree::choose(uint32_t node) noexcept {
  const auto band = static_cast<uint8_t>(std::bit_width(nodes_[node].inner.active) - 1);
  if (band < kPriorities) return choose_excess(node, band);
  return rates_.inner(node).children[band - kPriorities].of(Place::kGreen);
}

// The first child with credit left. A child whose turn comes in a new round gets a quantum.
inline uint32_t Tree::choose_excess(uint32_t node, uint8_t priority) noexcept {
  ChildLists& lists = rates_.inner(node).children[priority];
  if (lists.of(Place::kFresh) != kNone) return lists.of(Place::kFresh);
  uint16_t& round = nodes_[node].inner.rounds[priority];
  for (;;) {
    if (lists.of(turn_in(round)) == kNone) ++round;
    const uint32_t at = lists.of(turn_in(round));
    TreeNode& child = nodes_[at];
    if (child.round != round) {
      child.round = round;
      child.credit_bytes = std::min(child.credit_bytes, 0) + quantum_bytes(child);
    }
    if (child.credit_bytes > 0) [[likely]]
      return at;
    unlink(at);
    append(at, turn_in(static_cast<uint16_t>(round + 1)));
  }
}

inline void Tree::charge(Shaper& shaper, uint32_t wire_bytes, bool was_green) const noexcept {
  if (shaper.ceil.is_set()) {
    shaper.ceil.forget_before(now_ns_);
    shaper.ceil.charge(wire_bytes);
  }
  if (!was_green || !shaper.min.is_set()) return;
  if (shaper.min.paid_at_ns() > now_ns_ + capacity_.catch_up_ns) return;
  shaper.min.forget_before(now_ns_ - std::min(now_ns_, capacity_.catch_up_ns));
  shaper.min.charge(wire_bytes);
}

// Accounts for what this node, which is first in its list, has sent since it was paid for.
inline void Tree::settle(uint32_t at, uint32_t wire_bytes) noexcept {
  TreeNode& node = nodes_[at];
  const bool was_green = node.place == Place::kGreen;
  if (!was_green) node.credit_bytes -= static_cast<int32_t>(wire_bytes);
  if (node.shaper != kNone) charge(rates_[node.shaper], wire_bytes, was_green);
  place(at);
  if (node.place == Place::kOut) return;
  if (was_green) {
    is_served_ = false;
    if (node.place == Place::kGreen) siblings_of(node).of(Place::kGreen) = node.next;
    return;
  }
  if (node.credit_bytes > 0 || node.place == Place::kGreen) [[likely]]
    return;
  unlink(at);
  const uint16_t round = nodes_[node.parent].inner.rounds[node.priority];
  append(at, turn_in(static_cast<uint16_t>(round + 1)));
}

inline uint32_t Tree::choose_leaf() noexcept {
  uint32_t at = root();
  do {
    at = choose(at);
  } while (is_inner(at));
  return at;
}

// Wire bytes that the leaf may send before a node on its path changes its place.
inline uint32_t Tree::run_of(uint32_t leaf) noexcept {
  uint64_t most = kUnknown - 1;
  for (uint32_t at = leaf; at != root(); at = nodes_[at].parent) {
    const TreeNode& node = nodes_[at];
    if (node.place == Place::kGreen) return 0;
    most = std::min<uint64_t>(most, static_cast<uint32_t>(node.credit_bytes - 1));
    if (node.shaper != kNone) most = std::min(most, rates_[node.shaper].room_bytes(now_ns_));
  }
  return static_cast<uint32_t>(most);
}

// Accounts for the run up to now. No node changes its place by that.
inline void Tree::pay_run() noexcept {
  if (run_sent_bytes_ == 0) return;
  const uint32_t sent_bytes = std::exchange(run_sent_bytes_, 0);
  for (uint32_t at = served_; at != root(); at = nodes_[at].parent) {
    nodes_[at].credit_bytes -= static_cast<int32_t>(sent_bytes);
    if (nodes_[at].shaper != kNone) charge(rates_[nodes_[at].shaper], sent_bytes, false);
  }
}

bool Tree::dequeue(Descriptor& out) noexcept {
  // As long as no node has changed its place, it is still the same leaf's turn.
  if (!is_served_) {
    pay_run();
    if (nodes_[root()].inner.active == 0) return false;
    served_ = choose_leaf();
    is_served_ = true;
    run_left_bytes_ = kUnknown;
  }
  TreeNode& leaf = nodes_[served_];
  out = pop(served_);
  const uint32_t wire_bytes = capacity_.framing.wire_bytes(out.len_bytes());
  const bool has_more = leaf.backlog_pkts != 0;
  if (run_left_bytes_ == kUnknown) {
    const bool may_go_on = has_more && static_cast<int32_t>(wire_bytes) < leaf.credit_bytes;
    run_left_bytes_ = may_go_on ? run_of(served_) : 0;
  }
  if (has_more && wire_bytes <= run_left_bytes_) {
    run_left_bytes_ -= wire_bytes;
    run_sent_bytes_ += wire_bytes;
    return true;
  }
  const uint32_t sent_bytes = std::exchange(run_sent_bytes_, 0) + wire_bytes;
  for (uint32_t at = served_; at != root(); at = nodes_[at].parent) settle(at, sent_bytes);
  // It may still be first: the ceiling may have let it through since the limit was worked out.
  run_left_bytes_ = kUnknown;
  return true;
}

bool Tree::drain(Descriptor& out) noexcept {
  if (shed_.n != 0) {
    out = shed_.all[--shed_.n];
    return true;
  }
  if (backlog_pkts() == 0) return false;
  while (nodes_[drained_].backlog_pkts == 0) {
    drained_ = drained_ + 1 == nodes_.size() ? 0 : drained_ + 1;
  }
  out = drain_leaf(drained_);
  if (nodes_[drained_].backlog_pkts == 0) place_path(drained_);
  return true;
}

}  // namespace batchplane::egress
