// SPDX-License-Identifier: BSD-3-Clause
// tree.cc - changes of a tree. A node that changes is unlinked, updated, and linked again.
#include "egress/tree/tree.h"

#include <algorithm>
#include <limits>
#include <memory>

namespace batchplane::egress {

Tree::Tree(TreeCapacity capacity)
    : capacity_(capacity),
      unit_bytes_(capacity.framing.wire_bytes(capacity.lmax_bytes)),
      nodes_(capacity.nodes()),
      rates_(capacity, unit_bytes_),
      pkts_(capacity.pkts),
      long_queue_(capacity.leaves),
      connections_(capacity.connections, capacity.codel, capacity.lmax_bytes,
                   capacity.pie_target_ns) {
  unused_shapers_.reserve(capacity.shaped_leaves);
  for (uint32_t s = capacity.shaped_leaves; s-- > 0;) {
    unused_shapers_.push_back(capacity.inner_nodes + s);
  }
  std::construct_at(&nodes_[root()].inner);
}

Edited Tree::add(uint32_t node, uint32_t parent, const NodeParams& params) {
  if (node >= nodes_.size()) return Edited::kBadNode;
  if (has(node)) return Edited::kNodeExists;
  if (const Edited range = check_range(params); range != Edited::kYes) return range;
  if (!is_inner(node) && params.has_rates() && unused_shapers_.empty()) return Edited::kNoShaper;
  if (const Edited checked = check_parent(node, parent); checked != Edited::kYes) return checked;
  nodes_[node].forget(is_inner(node));
  if (is_inner(node)) rates_.inner(node) = {};
  join(node, parent);
  fit(node, params);
  return Edited::kYes;
}

Edited Tree::change(uint32_t node, const NodeParams& params) {
  if (node == root()) return Edited::kRoot;
  if (!has(node)) return Edited::kNoNode;
  if (const Edited range = check_range(params); range != Edited::kYes) return range;
  const bool wants_shaper = params.has_rates() && nodes_[node].shaper == kNone;
  if (wants_shaper && !is_inner(node) && unused_shapers_.empty()) return Edited::kNoShaper;
  take_off_path(node);
  fit(node, params);
  place_path(node);
  return Edited::kYes;
}

Edited Tree::move(uint32_t node, uint32_t parent) {
  if (node == root()) return Edited::kRoot;
  if (!has(node)) return Edited::kNoNode;
  if (const Edited checked = check_parent(node, parent); checked != Edited::kYes) return checked;
  if (nodes_[node].parent == parent) return Edited::kYes;
  take_off_path(node);
  --nodes_[nodes_[node].parent].inner.n_children;
  join(node, parent);
  place_path(node);
  return Edited::kYes;
}

Edited Tree::remove(uint32_t node, const TakeDescriptor& take) {
  if (node == root()) return Edited::kRoot;
  if (!has(node)) return Edited::kNoNode;
  TreeNode& at = nodes_[node];
  if (is_inner(node) && at.inner.n_children != 0) return Edited::kHasChildren;
  take_off_path(node);
  while (at.backlog_pkts != 0) take(drain_leaf(node));
  fit(node, {});
  --nodes_[at.parent].inner.n_children;
  at.forget(is_inner(node));
  return Edited::kYes;
}

// Whether a node with its whole subtree may lie below this parent.
Edited Tree::check_parent(uint32_t node, uint32_t parent) const {
  if (!has(parent)) return Edited::kNoParent;
  if (!is_inner(parent)) return Edited::kParentIsLeaf;
  for (uint32_t at = parent; at != root(); at = nodes_[at].parent) {
    if (at == node) return Edited::kLoop;
  }
  return Edited::kYes;
}

void Tree::join(uint32_t node, uint32_t parent) {
  TreeNode& at = nodes_[node];
  at.parent = parent;
  ++nodes_[parent].inner.n_children;
  // Last round's number, so that the node gets a quantum in this round.
  at.round = static_cast<uint16_t>(nodes_[parent].inner.rounds[at.priority] - 1);
}

// Sets the parameters of an unlinked node.
void Tree::fit(uint32_t node, const NodeParams& params) {
  TreeNode& at = nodes_[node];
  at.weight = static_cast<uint16_t>(params.weight);
  at.round = static_cast<uint16_t>(nodes_[at.parent].inner.rounds[params.priority] - 1);
  at.priority = params.priority;
  if (!is_inner(node)) {
    at.leaf.limit_bytes = params.limit_bytes;
    fit_queue(node, params.queue);
  }
  fit_rates(node, params);
}

// Moves a queue's packets to a queue of another kind, in order.
void Tree::fit_queue(uint32_t node, LeafQueue queue) {
  TreeNode& at = nodes_[node];
  TreeNode::Leaf& leaf = at.leaf;
  at.wanted_queue = queue;
  if (at.queue == queue) return;
  if (at.backlog_pkts == 0) {
    switch_empty(at);
    return;
  }
  if (at.queue != LeafQueue::kFifo) {
    FqLists lists = leaf.connections;
    std::construct_at(&leaf.queue);
    for (uint32_t i = 0; i < at.backlog_pkts; ++i) {
      pkts_.push(leaf.queue, i == 0, connections_.drain(pkts_, lists));
    }
    connections_.clear(lists);
    at.queue = LeafQueue::kFifo;
  }
  FqLists lists;
  // If no connection is free, the queue keeps its kind until it is empty.
  if (queue == LeafQueue::kFifo || !connections_.take_over(lists, node, leaf.queue, at.backlog_pkts,
                                                           leaf.backlog_bytes, aqm_of(queue))) {
    return;
  }
  std::construct_at(&leaf.connections, lists);
  at.queue = queue;
}

void Tree::fit_rates(uint32_t node, const NodeParams& params) {
  TreeNode& at = nodes_[node];
  if (params.has_rates() && at.shaper == kNone) {
    if (is_inner(node)) {
      at.shaper = node - capacity_.leaves;
    } else {
      at.shaper = unused_shapers_.back();
      unused_shapers_.pop_back();
    }
    rates_[at.shaper] = {};
    rates_[at.shaper].node = node;
  }
  if (at.shaper == kNone) return;
  Shaper& shaper = rates_[at.shaper];
  shaper.min.set_rate_bps(params.min_rate_bps, now_ns_);
  shaper.ceil.set_rate_bps(params.ceil_bps, now_ns_);
  const uint32_t burst_bytes = params.burst_bytes != 0
                                   ? params.burst_bytes
                                   : default_burst_bytes(params.ceil_bps, capacity_.lmax_bytes);
  constexpr uint64_t kMost = std::numeric_limits<uint32_t>::max();
  shaper.burst_ns = static_cast<uint32_t>(std::min(shaper.ceil.time_of_ns(burst_bytes), kMost));
  // The debt of a burst at a higher rate would stop a lower rate for a long time.
  const uint64_t longest_ns =
      shaper.ceil.time_of_ns(capacity_.framing.wire_bytes(capacity_.lmax_bytes));
  shaper.ceil.owe_at_most(shaper.burst_ns + longest_ns, now_ns_);
  if (params.has_rates()) return;
  if (!is_inner(node)) unused_shapers_.push_back(at.shaper);
  at.shaper = kNone;
}

}  // namespace batchplane::egress
