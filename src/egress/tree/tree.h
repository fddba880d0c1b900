// SPDX-License-Identifier: BSD-3-Clause
// tree.h - a hierarchical packet scheduler: minimum rates, ceilings, weights and priorities at every level.
//
// - Leaves hold packets. Inner nodes choose among their children; the root's choice is what goes next.
// - A node that has packets and less than its minimum rate is green, and so is every node above it. Green
//   children go first, of the highest priority first, in turn.
// - What minima leave is excess. It goes to the highest priority, and within it by weight.
// - Bytes that were sent as green count against minima and not against weights; other bytes the other way.
// - A node at its ceiling is out of the choice until it may send again. No node sends more in any time t
//   than ceiling * t + burst + one packet, and its children share that.
// - Nothing is left unused: while anything may be sent, something is. What a node leaves goes to its
//   siblings first, because its parent chooses first.
// - Weights hold by rounds: a child gets one quantum (weight * longest packet) in each. Who comes in the middle
//   of a round with its quantum unspent goes before those that had packets all the time, so that a flow
//   within its share waits for few others. Debts are carried over, credit is not.
// - Minima are kept as long as those below a node fit into its ceiling, and all into the link.
//
// Work per packet is constant for each level. One owner; time is an argument. Nothing is allocated after the
// start.
#pragma once

#include <vector>

#include "egress/discipline/discipline.h"
#include "egress/discipline/long_queue.h"
#include "egress/tree/tree_node.h"

namespace batchplane::egress {

class Tree {
 public:
  // With a root, which has no rates of its own: the link has.
  explicit Tree(TreeCapacity capacity);

  // Changes, between two packets; nothing happens unless kYes. All but remove() keep packets where they are.
  Edited add(uint32_t node, uint32_t parent, const NodeParams& params);
  Edited change(uint32_t node, const NodeParams& params);
  Edited move(uint32_t node, uint32_t parent);
  // A leaf's packets, oldest first, go to `take`.
  Edited remove(uint32_t node, const TakeDescriptor& take);

  [[nodiscard]] uint32_t root() const { return capacity_.root(); }
  [[nodiscard]] bool has(uint32_t node) const {
    return node == root() || (node < nodes_.size() && nodes_[node].parent != kNone);
  }
  [[nodiscard]] bool is_leaf(uint32_t node) const {
    return node < capacity_.leaves && nodes_[node].parent != kNone;
  }

  // Time never goes back. What enqueue() and dequeue() do, they do at the time of the last call.
  void advance(uint64_t now_ns) noexcept;
  void prefetch(uint32_t flow) const noexcept {
    const uint32_t leaf = flow & kFlowMask;
    if (leaf < capacity_.leaves) __builtin_prefetch(&nodes_[leaf], 1);
    if (flow != leaf) connections_.prefetch(flow);
  }
  // Once that is there: what lies above the leaf.
  void prefetch_path(uint32_t flow) const noexcept;
  // `pkt.flow` is the leaf; where its queue has CoDel, a flow_word(). Unless kYes the caller keeps the packet.
  Enqueued enqueue(const Descriptor& pkt) noexcept;
  // False: nothing may be sent now. With kMarkBit in its flow the packet is to be marked.
  bool dequeue(Descriptor& out) noexcept;
  // What queues have dropped; the owner takes it over, and empties the list.
  DropList& shed() noexcept { return shed_; }
  [[nodiscard]] const Descriptor& pushed_out() const noexcept { return pushed_out_; }
  // Whatever ceilings and minima say; false when there is none.
  bool drain(Descriptor& out) noexcept;
  // When dequeue() may find something after it has not, or a little earlier.
  [[nodiscard]] uint64_t next_ready_ns() const { return wheel_.next_due_ns(rates_); }

  [[nodiscard]] uint32_t backlog_pkts() const noexcept { return pkts_.size_pkts() + shed_.n; }
  [[nodiscard]] uint32_t backlog_pkts(uint32_t leaf) const noexcept {
    return nodes_[leaf].backlog_pkts.peek();
  }
  [[nodiscard]] uint32_t backlog_bytes(uint32_t leaf) const noexcept {
    return nodes_[leaf].leaf.backlog_bytes.peek();
  }

 private:
  // tree_places.inl: where a node belongs, and putting it there.
  [[nodiscard]] bool is_inner(uint32_t node) const noexcept { return node >= capacity_.leaves; }
  [[nodiscard]] ChildLists& siblings_of(const TreeNode& node) noexcept;
  [[nodiscard]] int32_t quantum_bytes(const TreeNode& node) const noexcept;
  void append(uint32_t at, Place place) noexcept;
  void unlink(uint32_t at) noexcept;
  void join_excess(uint32_t at) noexcept;
  void wait(Shaper& shaper, uint32_t id, Shaper::Waits waits) noexcept;
  void stop_waiting(uint32_t shaper) noexcept;
  [[nodiscard]] Place wanted(uint32_t at) noexcept;
  [[nodiscard]] Place wanted_with_rates(TreeNode& node) noexcept;
  bool place(uint32_t at) noexcept;
  void place_path(uint32_t at) noexcept;
  void take_off_path(uint32_t at) noexcept;

  // tree_order.cc: a packet's way.
  [[nodiscard]] uint32_t choose(uint32_t node) noexcept;
  [[nodiscard]] uint32_t choose_excess(uint32_t node, uint8_t priority) noexcept;
  [[nodiscard]] uint32_t choose_leaf() noexcept;
  bool push(TreeNode& node, const Descriptor& pkt) noexcept;
  Enqueued push_where_full(TreeNode& node, const Descriptor& pkt) noexcept;
  Descriptor push_out(uint32_t word) noexcept;
  [[nodiscard]] uint64_t length_of(uint32_t word) const noexcept;
  Descriptor pop(uint32_t leaf) noexcept;
  Descriptor pop_connection(TreeNode& node) noexcept;
  Descriptor drain_leaf(uint32_t leaf) noexcept;
  bool make_room(TreeNode& node, uint32_t len_bytes) noexcept;
  void count_shed(TreeNode& node, uint32_t n_before) noexcept;
  void charge(Shaper& shaper, uint32_t wire_bytes, bool was_green) const noexcept;
  void settle(uint32_t at, uint32_t wire_bytes) noexcept;

  // tree.cc: changes.
  void fit(uint32_t node, const NodeParams& params);
  void fit_queue(uint32_t node, LeafQueue queue);
  static void switch_empty(TreeNode& node) noexcept;
  void fit_rates(uint32_t node, const NodeParams& params);
  [[nodiscard]] Edited check_parent(uint32_t node, uint32_t parent) const;
  void join(uint32_t node, uint32_t parent);

  TreeCapacity capacity_;
  uint32_t unit_bytes_;  // quantum of weight 1: with it, whoever has its turn may send
  BigArray<TreeNode> nodes_;
  TreeRates rates_;
  TimeWheel<TreeRates> wheel_;
  PktStore pkts_;
  LongQueue long_queue_;
  FqCodel connections_;
  DropList shed_;
  Descriptor pushed_out_;
  uint64_t now_ns_ = 0;
  uint32_t served_ = kNone;               // the leaf of the last packet
  bool is_served_ = false;                // it is still first on its path
  uint32_t drained_ = 0;                  // drain() looks from here on
  std::vector<uint32_t> unused_shapers_;  // of leaves; of changes only
};

}  // namespace batchplane::egress
