// SPDX-License-Identifier: BSD-3-Clause
// carry.h - lets a node continue the counts of the same module's node in an older graph.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "exec/node.h"

namespace batchplane::exec {

template <class Traits>
void adopt_counts(Node<Traits>& node, const Node<Traits>& old_node, size_t n_reasons) {
  node.cost = old_node.cost;
  node.usual_cost = old_node.usual_cost;
  node.dropped_pkts = old_node.dropped_pkts;
  // Most nodes drop nothing: their long lists of drop counts need not be touched.
  for (size_t r = 0; old_node.dropped_pkts != 0 && r < n_reasons; ++r) {
    node.drops[r] = old_node.drops[r];
    node.handed_on[r] = old_node.handed_on[r];
  }
  auto& queue = *node.queue;
  const auto& old_queue = *old_node.queue;
  queue.late_releases = old_queue.late_releases;
  queue.arrived_batches = old_queue.arrived_batches;
  queue.arrived_pkts = old_queue.arrived_pkts;
  for (uint32_t c = 0; c < kCauses; ++c) queue.causes[c] = old_queue.causes[c];
  queue.fullness = old_queue.fullness;
  queue.counted_full = old_queue.counted_full;
}

// `before`: by rank, the old node whose totals each node continues, or null. Call it for all nodes of a task
// in run order: where batches pass by pointer, a node's counts follow from its predecessors'.
template <class Executor, class Node>
void carry_totals(Executor& executor, const std::vector<const Node*>& before) {
  for (Node& node : executor.nodes()) {
    const Node* const old_node = before[node.rank];
    executor.set_totals(node, old_node == nullptr ? NodeTotals{} : Executor::totals(*old_node));
  }
}

}  // namespace batchplane::exec
