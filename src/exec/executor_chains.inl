// SPDX-License-Identifier: BSD-3-Clause
// executor_chains.inl - a run: its batch passes by pointer from chain to chain until it is queued,
// split or consumed.
#pragma once

namespace batchplane::exec {

template <class Traits, RunOrder Order>
Executor<Traits, Order>::Executor(std::span<Node> nodes, Context& ctx, Clock& clock,
                                  FlowMeter& meter)
    : nodes_(nodes),
      chains_(nodes),
      ctx_(ctx),
      clock_(clock),
      meter_(meter),
      ready_(static_cast<uint32_t>(nodes.size())) {
  buffered_.reserve(nodes.size());
  due_.reserve(nodes.size());
  for (Node& node : nodes_) {
    if (node.queue->trigger_pkts > 0) list_buffer(node);
    node.scatters_by_vector = node.after == After::kScatter && may_scatter_by_vector(node);
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

// Calls the modules of a chain on the same array one after the other, chain after chain, until the
// batch must be queued or split, or is empty. The batch is passed in registers: a copy on the stack
// cost a failed store-to-load forwarding, 5 ns per call.
template <class Traits, RunOrder Order>
template <bool kInstrumented>
void Executor<Traits, Order>::run_chain(Queue& first, Handle* pkts, uint32_t n_pkts,
                                        uint64_t entry_bound_ns) {
  // Locals whose address is never taken stay in registers across the calls.
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
        Traits::before_run(ctx, chains_.node_at(*head, step), {pkts, n_pkts, entry_bound_ns});
      }
      step->run(step->module, ctx, pkts, n_pkts);
      if constexpr (kInstrumented) {
        Traits::on_run(ctx, chains_.node_at(*head, step), {pkts, n_pkts, entry_bound_ns});
      }
      if (ctx.n_fates != 0) [[unlikely]] {
        n_pkts = settle_step(chains_.node_at(*head, step), pkts, n_pkts);
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

// Returns the queue whose chain the whole batch continues to by pointer, or null.
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

// A branch fed only by this splitter gets no more packets, so it runs at once, unless emitted
// packets wait there (they have set entry_bound_ns). Other branches wait for their turn.
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

}  // namespace batchplane::exec
