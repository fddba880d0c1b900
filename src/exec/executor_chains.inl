// SPDX-License-Identifier: BSD-3-Clause
// executor_run.inl - the hot half of the executor: chains, scatter, append, firing on full.
#pragma once

namespace batchplane::exec {

template <class Node>
bool has_distinct_targets(const Node& node) {
  for (uint32_t a = 0; a < node.n_gates; ++a) {
    for (uint32_t b = 0; b < a; ++b) {
      if (node.targets[a] == node.targets[b]) return false;
    }
  }
  return true;
}

template <class Traits, RunOrder Order>
Executor<Traits, Order>::Executor(std::span<Node> nodes, Context& ctx, Clock& clock,
                                  FlowMeter& meter)
    : nodes_(nodes),
      ctx_(ctx),
      clock_(clock),
      meter_(meter),
      ready_(static_cast<uint32_t>(nodes.size())) {
  const bool has_avx512 = __builtin_cpu_supports("avx512f") != 0 &&
                          __builtin_cpu_supports("avx512bw") != 0 &&
                          __builtin_cpu_supports("avx512vl") != 0;
  buffered_.reserve(nodes.size());
  lay_out_steps();
  for (Node& node : nodes_) link_direct(node);
  for (Node& node : nodes_) {
    if (node.queue->trigger_pkts > 0) list_buffer(node);
    // Vector code takes gate after gate: with one queue behind two gates, order would be lost.
    node.scatters_by_vector = has_avx512 && node.after == After::kScatter &&
                              node.n_gates <= kVectorGates && has_distinct_targets(node);
  }
}

template <class Traits, RunOrder Order>
void Executor<Traits, Order>::run(Node& first, Batch batch, bool is_instrumented) {
  ++stats_.runs;
  stats_.in_pkts += batch.size_pkts;
  firings_ = 0;
  if constexpr (MayRunByDeadline<Order>) may_run_heavy_ = true;
  if (!(is_instrumented || this->is_instrumented())) [[likely]] {
    enter<false>(first, batch);
  } else {
    enter<true>(first, batch);
  }
  stats_.worst_firings_per_run = std::max(stats_.worst_firings_per_run, firings_);
}

template <class Traits, RunOrder Order>
template <bool kInstrumented>
void Executor<Traits, Order>::enter(Node& first, Batch& batch) {
  if (first.queue->is_direct) [[likely]] {
    run_chain<kInstrumented>(*first.queue, batch.pkts, batch.size_pkts, batch.entry_bound_ns);
  } else {
    append<kInstrumented>(*first.queue, batch);
  }
  drain_ready<kInstrumented>();
}

template <class Traits, RunOrder Order>
template <bool kInstrumented>
void Executor<Traits, Order>::drain_ready() {
  if (units_ != nullptr) [[unlikely]]
    return drain_followers<kInstrumented>();
  if constexpr (MayRunByDeadline<Order>) {
    if (ready_.is_by_deadline()) return drain_by_deadline<kInstrumented>();
  }
  while (!ready_.empty()) {
    run_ready<kInstrumented>(nodes_[ready_.pop()]);
    read_clock_if_due();
  }
}

template <class Traits, RunOrder Order>
template <bool kInstrumented>
void Executor<Traits, Order>::run_ready(Node& node) {
  Queue& queue = *node.queue;
  const uint32_t held = queue.size_pkts;
  if (queue.trigger_pkts == 0) {
    Handle* const pkts = queue.pkts;
    const uint64_t bound_ns = queue.entry_bound_ns;
    queue.size_pkts = 0;
    queue.seen_pkts = 0;
    queue.entry_bound_ns = kNeverNs;
    for (uint32_t done = 0; done < held; done += ctx_.batch_limit_pkts) {
      const uint32_t n = std::min(held - done, ctx_.batch_limit_pkts);
      run_chain<kInstrumented>(queue, pkts + done, n, bound_ns);
      read_clock_if_due();
    }
    return;
  }
  uint32_t done = 0;
  prefetch_held(queue, held);
  while (held - done >= queue.release_at_pkts) {
    const uint32_t n = queue.release_at_pkts;
    queue.release_at_pkts = queue.trigger_pkts;
    fire<kInstrumented>(node, n, done, n == queue.trigger_pkts ? Cause::kFull : Cause::kChange);
    done += n;
  }
  keep_rest(queue, done);
}

// The functions of a chain are called on the same array one after the other, chain after chain,
// until the batch has to be queued, split or is gone. The batch comes in registers: copied through
// the stack it cost a failed store-to-load forwarding, 5 ns a call.
template <class Traits, RunOrder Order>
template <bool kInstrumented>
void Executor<Traits, Order>::run_chain(Queue& first, Handle* pkts, uint32_t n_pkts,
                                        uint64_t entry_bound_ns) {
  // Locals, never seen by address: they stay in registers across the calls.
  Context& ctx = ctx_;
  for (Queue* head = &first;;) {
    work_16ths_ns_ += head->work_per_batch_ns * 16U + head->work_per_pkt_16ths_ns * n_pkts;
    head->batches += 1;
    head->entered_pkts += n_pkts;
    if constexpr (kInstrumented) Traits::begin_chain(ctx);
    const Step* step = static_cast<const Step*>(head->steps);
    const Step* const end = step + head->n_steps;
    do {
      if constexpr (kInstrumented) {
        Traits::before_run(ctx, node_at(*head, step), {pkts, n_pkts, entry_bound_ns});
      }
      step->run(step->module, ctx, pkts, n_pkts);
      if constexpr (kInstrumented) {
        Traits::on_run(ctx, node_at(*head, step), {pkts, n_pkts, entry_bound_ns});
      }
      if (ctx.n_fates != 0) [[unlikely]] {
        n_pkts = settle_step(node_at(*head, step), pkts, n_pkts);
        if (n_pkts == 0) return;
      }
    } while (++step != end);
    if (head->chain_after == After::kEnd) return;
    Node& tail = *static_cast<Node*>(head->tail);
    if (tail.has_path_ops) [[unlikely]]
      apply_path_ops(tail, pkts, n_pkts);
    if (head->chain_after == After::kEnqueue) {
      append<kInstrumented>(*tail.next->queue, {pkts, n_pkts, entry_bound_ns});
      return;
    }
    head = scatter<kInstrumented>(tail, pkts, n_pkts, entry_bound_ns);
    if (head == nullptr) return;
  }
}

// The node whose function a step is: found by walking, needed only where something out of the
// ordinary happened.
template <class Traits, RunOrder Order>
typename Executor<Traits, Order>::Node& Executor<Traits, Order>::node_at(const Queue& head,
                                                                         const Step* step) {
  Node* node = &nodes_[head.rank];
  for (const Step* at = static_cast<const Step*>(head.steps); at != step; ++at) node = node->next;
  return *node;
}

// After a module took packets out, or emitted some: how many are left of the batch.
template <class Traits, RunOrder Order>
uint32_t Executor<Traits, Order>::settle_step(Node& node, Handle* pkts, uint32_t n_pkts) {
  Batch batch{pkts, n_pkts, kNeverNs};
  if (ctx_.n_removed != 0) ctx_.compact(batch);
  settle_fates(node);
  if (node.after == After::kDirect) {
    node.next->missing.pkts += n_pkts - batch.size_pkts;
    node.next->missing.batches += batch.size_pkts == 0 ? 1 : 0;
  }
  return batch.size_pkts;
}

// Returns the queue whose chain the whole batch goes on to by pointer, if it does.
template <class Traits, RunOrder Order>
template <bool kInstrumented>
typename Executor<Traits, Order>::Queue* Executor<Traits, Order>::scatter(Node& node, Handle* pkts,
                                                                          uint32_t n,
                                                                          uint64_t entry_bound_ns) {
  const GateIndex* gates = ctx_.gates;
  if (n == 1 || all_gates_equal(gates, n)) {
    Queue& queue = *node.targets[gates[0]];
    if (queue.is_direct && queue.size_pkts == 0 && !waits_for_turn(queue, n)) return &queue;
    append<kInstrumented>(queue, {pkts, n, entry_bound_ns});
    return nullptr;
  }
  if (node.n_gates > kBitmapGates) {
    GateIndex touched[kMaxBatchPkts];
    const uint32_t n_touched = scatter_wide(pkts, gates, n, node.targets, touched);
    for (uint32_t i = 0; i < n_touched; ++i) {
      deliver<kInstrumented>(*node.targets[touched[i]], entry_bound_ns);
    }
    return nullptr;
  }
  uint64_t touched = 0;
  if constexpr (sizeof(Handle) == 8) {
    touched = node.scatters_by_vector ? scatter_avx512(pkts, gates, n, node.targets)
                                      : scatter_scalar(pkts, gates, n, node.targets);
  } else {
    touched = scatter_scalar(pkts, gates, n, node.targets);
  }
  for (; touched != 0; touched &= touched - 1) {
    deliver<kInstrumented>(*node.targets[std::countr_zero(touched)], entry_bound_ns);
  }
  return nullptr;
}

// A branch that only this splitter feeds has all it will get: it runs at once, unless emitted
// packets wait there (they have set the bound). Others wait for their turn.
template <class Traits, RunOrder Order>
template <bool kInstrumented>
void Executor<Traits, Order>::deliver(Queue& queue, uint64_t entry_bound_ns) {
  const uint32_t n = queue.size_pkts;
  if (!queue.is_direct || n > ctx_.batch_limit_pkts || queue.entry_bound_ns != kNeverNs ||
      waits_for_turn(queue, n)) {
    arrived<kInstrumented>(queue, entry_bound_ns);
    return;
  }
  queue.size_pkts = 0;
  run_chain<kInstrumented>(queue, queue.pkts, n, entry_bound_ns);
  read_clock_if_due();
}

template <class Traits, RunOrder Order>
template <bool kInstrumented>
void Executor<Traits, Order>::append(Queue& queue, const Batch& batch) {
  assert(queue.size_pkts + batch.size_pkts <= queue.capacity_pkts);
  std::memcpy(queue.pkts + queue.size_pkts, batch.pkts, batch.size_pkts * sizeof(Handle));
  queue.size_pkts += batch.size_pkts;
  arrived<kInstrumented>(queue, batch.entry_bound_ns);
}

// After packets were added to a queue: is it ready, and if it holds, until when?
template <class Traits, RunOrder Order>
template <bool kInstrumented>
void Executor<Traits, Order>::arrived(Queue& queue, uint64_t entry_bound_ns) {
  queue.entry_bound_ns = std::min(queue.entry_bound_ns, entry_bound_ns);
  if (queue.trigger_pkts == 0) {
    queue.seen_pkts = queue.size_pkts;
    mark_ready(queue);
    return;
  }
  // Also when ready, since the rest that stays may be as old, and when the packets were seen
  // already: a branch that ran between scatter and here may have sent younger ones.
  next_release_ns_ = std::min(next_release_ns_, queue.entry_bound_ns + queue.age_limit_ns);
  const uint32_t added = queue.size_pkts - queue.seen_pkts;
  if (added == 0) return;
  if (queue.seen_pkts == 0) queue.since_ns = ctx_.now_ns;
  queue.arrived_batches += 1;
  queue.arrived_pkts += added;
  if constexpr (kInstrumented) {
    Traits::on_hold(ctx_, nodes_[queue.rank], queue.pkts + queue.seen_pkts, added);
  }
  queue.seen_pkts = queue.size_pkts;
  if (queue.size_pkts >= queue.release_at_pkts) mark_ready(queue);
}

template <class Traits, RunOrder Order>
template <bool kInstrumented>
void Executor<Traits, Order>::fire(Node& node, uint32_t n_pkts, uint32_t offset_pkts, Cause cause) {
  Queue& queue = *node.queue;
  CauseCount& count = queue.causes[static_cast<uint32_t>(cause)];
  count.firings += 1;
  count.pkts += n_pkts;
  count.wait_ns += ctx_.now_ns - queue.since_ns;
  ++firings_;
  Traits::charge_firing(ctx_, n_pkts);
  if constexpr (kInstrumented) Traits::on_fire(ctx_, cause);
  run_chain<kInstrumented>(queue, queue.pkts + offset_pkts, n_pkts, queue.entry_bound_ns);
  read_clock_if_due();
}

// Closes the gap that fired packets left at the front. The bound stays: the rest may be as old.
template <class Traits, RunOrder Order>
void Executor<Traits, Order>::keep_rest(Queue& queue, uint32_t fired_pkts) {
  const uint32_t rest = queue.size_pkts - fired_pkts;
  if (rest != 0 && fired_pkts != 0) {
    std::memmove(queue.pkts, queue.pkts + fired_pkts, rest * sizeof(Handle));
    queue.since_ns = ctx_.now_ns;
  }
  queue.size_pkts = rest;
  queue.seen_pkts = rest;
  if (rest == 0) queue.entry_bound_ns = kNeverNs;
}

// Held packets have left the L1 cache: fetch both packet lines of all, then all headers.
template <class Traits, RunOrder Order>
void Executor<Traits, Order>::prefetch_held(const Queue& queue, uint32_t n_pkts) const {
  // A function that only prefetches has no effect that GCC knows of: calls of it were left out.
  asm volatile("");
  for (uint32_t i = 0; i < n_pkts; ++i) Traits::prefetch_meta(queue.pkts[i]);
  for (uint32_t i = 0; i < n_pkts; ++i) Traits::prefetch_data(queue.pkts[i]);
}

// Packets whose fate a module decided apart from the batch: dropped ones leave by the drop gate or
// are freed, emitted ones go to the queue behind their gate.
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
