// SPDX-License-Identifier: BSD-3-Clause
// chains.h - chains of nodes that pass batches on by pointer: which nodes form one, where its functions lie
// in memory, and how often each node ran.
#pragma once

#include <span>
#include <vector>

#include "exec/node.h"

namespace batchplane::exec {

// Owner: the executor of the nodes, which are in rank order. Links change only between runs.
template <class Traits>
class Chains {
 public:
  using Node = exec::Node<Traits>;
  using Step = typename Node::Step;
  using Queue = exec::Queue<typename Traits::Handle>;

  explicit Chains(std::span<Node> nodes) : nodes_(nodes) {
    lay_out_steps();
    for (Node& node : nodes_) link(node);
  }
  // Queues point into the steps.
  Chains(const Chains&) = delete;
  Chains& operator=(const Chains&) = delete;

  // Call after the node's trigger has changed: decides whether batches reach the node by pointer, and updates
  // the chain and the counts before it.
  void link(Node& node) {
    Queue& queue = *node.queue;
    queue.is_direct = node.n_inputs <= 1 && queue.trigger_pkts == 0;
    Node* before = node.sole_predecessor;
    if (before == nullptr) return;
    const bool was_linked = before->after == After::kDirect;
    const bool is_linked =
        queue.is_direct && !before->has_path_ops && node.chain_position % Node::kMaxSteps != 0;
    if (was_linked == is_linked) return;
    const NodeTotals sum = totals(node);
    before->after = is_linked ? After::kDirect : After::kEnqueue;
    node.link_base = totals(*before);
    node.missing = {};
    node.folded = {};
    node.folded = {sum.batches - totals(node).batches, sum.pkts - totals(node).pkts};
    for (Node* at = before; at != nullptr; at = at->sole_predecessor) {
      measure(*at);
      if (at->sole_predecessor == nullptr || at->sole_predecessor->after != After::kDirect) break;
    }
  }

  // The node of a step. Walks the chain; needed only in rare cases.
  [[nodiscard]] Node& node_at(const Queue& head, const Step* step) const {
    Node* node = &nodes_[head.rank];
    for (const Step* at = static_cast<const Step*>(head.steps); at != step; ++at) node = node->next;
    return *node;
  }

  // Executions of a node and the packets in them. The queue counts what entered there; packets that came by
  // pointer are the predecessor's packets less those that it removed.
  [[nodiscard]] static NodeTotals totals(const Node& node) {
    NodeTotals sum{node.queue->batches + node.folded.batches,
                   node.queue->entered_pkts + node.folded.pkts};
    const Node* before = node.sole_predecessor;
    if (before == nullptr || before->after != After::kDirect) return sum;
    const NodeTotals passed = totals(*before);
    sum.batches += passed.batches - node.link_base.batches - node.missing.batches;
    sum.pkts += passed.pkts - node.link_base.pkts - node.missing.pkts;
    return sum;
  }
  // Makes totals(node) return `wanted` from now on. Predecessors first.
  static void set_totals(Node& node, NodeTotals wanted) {
    const NodeTotals now = totals(node);
    node.folded.batches += wanted.batches - now.batches;
    node.folded.pkts += wanted.pkts - now.pkts;
  }
  // A step removed packets from a batch, perhaps all of them: later nodes of the chain saw fewer.
  static void note_missing(Node& node, uint32_t n_pkts, uint32_t left_pkts) {
    if (node.after != After::kDirect) return;
    node.next->missing.pkts += n_pkts - left_pkts;
    node.next->missing.batches += left_pkts == 0 ? 1 : 0;
  }

 private:
  // Steps of nodes that could ever form a chain are adjacent in memory, so that any chain is a slice.
  void lay_out_steps() {
    steps_.reserve(nodes_.size());
    for (Node& first : nodes_) {
      if (first.sole_predecessor != nullptr) continue;
      uint32_t position = 0;
      for (Node* node = &first;; node = node->next) {
        node->chain_position = position++;
        node->queue->steps = steps_.data() + steps_.size();
        steps_.push_back({node->run, node->module});
        if (node->next == nullptr || node->next->sole_predecessor != node) break;
      }
    }
    for (size_t i = nodes_.size(); i-- > 0;) measure(nodes_[i]);
  }

  void measure(Node& node) {
    Queue& queue = *node.queue;
    const bool goes_on = node.after == After::kDirect;
    const Queue* rest = goes_on ? node.next->queue : nullptr;
    queue.n_steps = static_cast<uint8_t>(goes_on ? 1 + rest->n_steps : 1);
    queue.tail = goes_on ? rest->tail : &node;
    queue.chain_after = goes_on ? rest->chain_after : node.after;
  }

  std::span<Node> nodes_;
  std::vector<Step> steps_;
};

}  // namespace batchplane::exec
