// SPDX-License-Identifier: BSD-3-Clause
// executor_fates.inl - packets that a module takes out of or adds to a batch: dropped, kept,
// emitted; and how crossing a gate changes a packet's path state.
#pragma once

namespace batchplane::exec {

// After a module removed or emitted packets: returns the size of the remaining batch.
template <class Traits, RunOrder Order>
uint32_t Executor<Traits, Order>::settle_step(Node& node, Handle* pkts, uint32_t n_pkts) {
  Batch batch{pkts, n_pkts, kNeverNs};
  if (ctx_.n_removed != 0) ctx_.compact(batch);
  settle_fates(node);
  Chains<Traits>::note_missing(node, n_pkts, batch.size_pkts);
  return batch.size_pkts;
}

// Dropped packets go to the drop gate or are freed; emitted ones go to the queue behind their gate.
template <class Traits, RunOrder Order>
void Executor<Traits, Order>::settle_fates(Node& node) {
  stats_.dropped_pkts += ctx_.n_dropped;
  node.dropped_pkts += ctx_.n_dropped;
  for (uint32_t i = 0; i < ctx_.n_dropped; ++i) {
    const auto [pkt, reason] = ctx_.dropped[i];
    if (node.drop_target != nullptr) {
      --stats_.dropped_pkts;
      node.handed_on[reason] += 1;
      Traits::set_drop_reason(pkt, reason);
      cross(node, node.n_gates, pkt);
      push_one(node, *node.drop_target, pkt);
    } else {
      node.drops[reason] += 1;
      Traits::free(ctx_, node, pkt, reason);
    }
  }
  stats_.emitted_pkts += ctx_.n_emitted;
  for (uint32_t i = 0; i < ctx_.n_emitted; ++i) {
    const auto [pkt, gate] = ctx_.emitted[i];
    cross(node, gate, pkt);
    push_one(node, *node.targets[gate], pkt);
  }
  ctx_.n_dropped = 0;
  ctx_.n_emitted = 0;
  ctx_.n_fates = 0;
}

template <class Traits, RunOrder Order>
void Executor<Traits, Order>::push_one(Node& from, Queue& queue, Handle pkt) {
  if (queue.size_pkts == queue.capacity_pkts) [[unlikely]] {
    ++stats_.overflow_pkts;
    ++stats_.dropped_pkts;
    ++from.dropped_pkts;
    from.drops[Traits::overflow_reason()] += 1;
    Traits::free(ctx_, from, pkt, Traits::overflow_reason());
    return;
  }
  queue.pkts[queue.size_pkts++] = pkt;
  is_instrumented() ? arrived<true>(queue, Traits::task_entry_ns(pkt))
                    : arrived<false>(queue, Traits::task_entry_ns(pkt));
}

template <class Traits, RunOrder Order>
void Executor<Traits, Order>::cross(Node& node, uint32_t gate, Handle pkt) {
  if (!node.has_path_ops) return;
  const PathOp& op = node.path_ops[gate];
  if (op.map != nullptr) {
    Traits::set_path_state(pkt, op.map[Traits::path_state(pkt)]);
  } else if (op.constant != PathOp::kKeep) {
    Traits::set_path_state(pkt, op.constant);
  }
}

template <class Traits, RunOrder Order>
void Executor<Traits, Order>::apply_path_ops(Node& node, Handle* pkts, uint32_t n_pkts) {
  for (uint32_t i = 0; i < n_pkts; ++i) {
    cross(node, node.after == After::kScatter ? ctx_.gates[i] : 0, pkts[i]);
  }
}

}  // namespace batchplane::exec
