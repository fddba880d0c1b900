// SPDX-License-Identifier: BSD-3-Clause
// tree.h - a hierarchical packet scheduler: minimum rates, ceilings, weights and priorities at every level.
//
// - Leaves hold packets. Inner nodes choose among their children; the root's choice is sent next.
// - A node that has packets and is under its minimum rate is green, and so is every node above it.
// Green
// children go first, highest priority first, and take turns within a priority.
// - Bandwidth left over by minima is excess. It goes to the highest priority, and within it by
// weight.
// - Bytes sent while green count against minima, not weights; other bytes count against weights
// only.
// - A node at its ceiling is skipped until it may send again. In any time t no node sends more than
// ceiling * t + burst + one packet, and its children share that.
// - The scheduler is work-conserving: while anything may be sent, something is. Bandwidth that a
// node
// leaves goes to its siblings first, because its parent chooses first.
// - Weights hold by rounds: a child gets one quantum (weight * longest packet) in each. A child
// that
// becomes active in the middle of a round with its quantum unspent goes before those that were
// backlogged all along, so a flow within its share waits for few others. Debts carry over to the
// next
// round, credit does not.
// - Minima are kept as long as those below a node fit into its ceiling, and all fit into the link.
//
// Constant work per packet and level. One owner; time is an argument. Allocates only when made.
#pragma once

#include <vector>

#include "egress/discipline/discipline.h"
#include "egress/discipline/long_queue.h"
#include "egress/tree/tree_node.h"

namespace batchplane::egress {

class Tree {
 public:
  // Starts with a root, which has no rates of its own: the link sets its rate.
  explicit Tree(TreeCapacity capacity);

  // Changes between two packets; no effect unless kYes is returned. All but remove() leave packets
  // where they are.
  Edited add(uint32_t node, uint32_t parent, const NodeParams& params);
  Edited change(uint32_t node, const NodeParams& params);
  Edited move(uint32_t node, uint32_t parent);
  // Passes the leaf's packets to `take`, oldest first.
  Edited remove(uint32_t node, const TakeDescriptor& take);

  [[nodiscard]] uint32_t root() const { return capacity_.root(); }
  [[nodiscard]] bool has(uint32_t node) const {
    return node == root() || (node < nodes_.size() && nodes_[node].parent != kNone);
  }
  [[nodiscard]] bool is_leaf(uint32_t node) const {
    return node < capacity_.leaves && nodes_[node].parent != kNone;
  }

  // Time never goes back. enqueue() and dequeue() act at the time of the last call.
  void advance(uint64_t now_ns) noexcept;
  void prefetch(uint32_t flow) const noexcept {
    const uint32_t leaf = flow & kFlowMask;
    if (leaf < capacity_.leaves) __builtin_prefetch(&nodes_[leaf], 1);
    if (flow != leaf) connections_.prefetch(flow);
  }
  // To be called once prefetch() has taken effect: fetches the nodes above the leaf.
  void prefetch_path(uint32_t flow) const noexcept;
  // `pkt.flow` is the leaf, or a flow_word() if its queue has CoDel. The caller keeps the packet
  // unless kYes is returned.
  Enqueued enqueue(const Descriptor& pkt) noexcept;
  // False: nothing may be sent now. If kMarkBit is set in its flow, the packet is to be marked.
  bool dequeue(Descriptor& out) noexcept;
  // Packets dropped by queues; the owner takes them and empties the list.
  DropList& shed() noexcept { return shed_; }
  [[nodiscard]] const Descriptor& pushed_out() const noexcept { return pushed_out_; }
  // Ignores ceilings and minima; false if there is no packet.
  bool drain(Descriptor& out) noexcept;
  // After dequeue() returned false: when it may find a packet, or slightly earlier.
  [[nodiscard]] uint64_t next_ready_ns() const { return wheel_.next_due_ns(rates_); }

  [[nodiscard]] uint32_t backlog_pkts() const noexcept { return pkts_.size_pkts() + shed_.n; }
  [[nodiscard]] uint32_t backlog_pkts(uint32_t leaf) const noexcept {
    return nodes_[leaf].backlog_pkts.peek();
  }
  [[nodiscard]] uint32_t backlog_bytes(uint32_t leaf) const noexcept {
    return nodes_[leaf].leaf.backlog_bytes.peek();
  }

 private:
  static constexpr uint32_t kUnknown = ~0U;

  // tree_places.inl: the list that a node belongs in, and moving it there.
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

  // tree_order.cc: the path of a packet.
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
  [[nodiscard]] uint32_t run_of(uint32_t leaf) noexcept;
  void pay_run() noexcept;

  // tree.cc: changes.
  void fit(uint32_t node, const NodeParams& params);
  void fit_queue(uint32_t node, LeafQueue queue);
  static void switch_empty(TreeNode& node) noexcept;
  void fit_rates(uint32_t node, const NodeParams& params);
  [[nodiscard]] Edited check_parent(uint32_t node, uint32_t parent) const;
  void join(uint32_t node, uint32_t parent);

  TreeCapacity capacity_;
  uint32_t unit_bytes_;  // quantum of weight 1: enough to send any packet in its turn
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
  bool is_served_ = false;                // it is still first in the lists on its path
  uint32_t run_left_bytes_ = 0;           // it may send so much before a node changes its place
  uint32_t run_sent_bytes_ = 0;           // sent by it, and not yet accounted for on its path
  uint32_t drained_ = 0;                  // where drain() continues its search
  std::vector<uint32_t> unused_shapers_;  // of leaves; used only by changes
};

}  // namespace batchplane::egress
