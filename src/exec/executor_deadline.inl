// SPDX-License-Identifier: BSD-3-Clause
// executor_deadline.inl - runs ready nodes by deadline, with one heavy batch per loop. Only
// instantiated for orders that support it (deadline_order.h).
#pragma once

namespace batchplane::exec {

template <class Traits, RunOrder Order>
uint64_t Executor<Traits, Order>::work_ns_of(const Queue& queue, uint32_t n_pkts) {
  return queue.work_per_batch_ns + uint64_t{queue.work_per_pkt_16ths_ns} * n_pkts / 16;
}

// Size of the batch that the node would run next.
template <class Traits, RunOrder Order>
uint32_t Executor<Traits, Order>::next_batch_pkts(const Queue& queue) const {
  const uint32_t most = queue.trigger_pkts == 0 ? ctx_.batch_limit_pkts : queue.release_at_pkts;
  return std::min(queue.size_pkts, most);
}

template <class Traits, RunOrder Order>
void Executor<Traits, Order>::mark_by_deadline(const Queue& queue) {
  const uint64_t wait_ns = std::min(ready_.budget_ns(queue.rank), queue.age_limit_ns);
  const uint64_t entry_ns = oldest_entry_ns(queue);
  ready_.by_deadline().mark(queue.rank,
                            entry_ns > kNeverNs - wait_ns ? kNeverNs : entry_ns + wait_ns);
}

// Stops at the first heavy batch that must wait until the input has been polled again.
template <class Traits, RunOrder Order>
template <bool kInstrumented>
void Executor<Traits, Order>::drain_by_deadline() {
  DeadlineOrder& ready = ready_.by_deadline();
  while (!ready.empty()) {
    Node& node = nodes_[ready.first()];
    if (work_ns_of(*node.queue, next_batch_pkts(*node.queue)) >= ready_.rules().heavy_ns) {
      if (!may_run_heavy_) return;
      may_run_heavy_ = false;
    }
    ready.pop();
    run_next<kInstrumented>(node);
    read_clock_if_due();
  }
  may_run_heavy_ = false;
}

// Runs one batch of a ready node; if more is ready, the node is queued again by deadline.
template <class Traits, RunOrder Order>
template <bool kInstrumented>
void Executor<Traits, Order>::run_next(Node& node) {
  Queue& queue = *node.queue;
  const uint32_t n_pkts = next_batch_pkts(queue);
  if (n_pkts == 0) return;
  prefetch_held(queue, n_pkts);
  if (queue.trigger_pkts == 0) {
    run_chain<kInstrumented>(queue, queue.pkts, n_pkts, queue.entry_bound_ns);
    keep_rest(queue, n_pkts);
    if (queue.size_pkts != 0) mark_by_deadline(queue);
    return;
  }
  if (n_pkts == queue.release_at_pkts) {
    queue.release_at_pkts = queue.trigger_pkts;
    fire<kInstrumented>(node, n_pkts, 0,
                        n_pkts == queue.trigger_pkts ? Cause::kFull : Cause::kChange);
    keep_rest(queue, n_pkts);
    if (queue.size_pkts >= queue.release_at_pkts) {
      mark_by_deadline(queue);
    } else if (queue.size_pkts != 0) {
      // next_release_ns_ may not include this queue, because all of it was due.
      next_release_ns_ = std::min(next_release_ns_, queue.entry_bound_ns + queue.age_limit_ns);
    }
    return;
  }
  // Not full: either its age limit has passed, or its trigger was raised and it keeps holding.
  queue.entry_bound_ns = oldest_entry_ns(queue);
  const uint64_t due_ns = queue.entry_bound_ns + queue.age_limit_ns;
  if (due_ns > ctx_.now_ns) {
    next_release_ns_ = std::min(next_release_ns_, due_ns);
    return;
  }
  note_release(queue, ctx_.now_ns - due_ns);
  fire_whole(node, Cause::kAge);
}

// Buffers that are due become ready and are ordered by deadline among the others.
template <class Traits, RunOrder Order>
void Executor<Traits, Order>::mark_expired() {
  next_release_ns_ = kNeverNs;
  for (Node* node : buffered_) {
    Queue& queue = *node->queue;
    if (queue.size_pkts == 0) continue;
    if (queue.entry_bound_ns + queue.age_limit_ns <= ctx_.now_ns) {
      queue.entry_bound_ns = oldest_entry_ns(queue);
    }
    const uint64_t due_ns = queue.entry_bound_ns + queue.age_limit_ns;
    if (due_ns <= ctx_.now_ns) {
      mark_by_deadline(queue);
    } else {
      next_release_ns_ = std::min(next_release_ns_, due_ns);
    }
  }
}

template <class Traits, RunOrder Order>
bool Executor<Traits, Order>::may_poll() const {
  if constexpr (MayRunByDeadline<Order>) {
    if (!ready_.is_by_deadline()) return true;
    uint64_t backlog_pkts = 0;
    for (const uint32_t rank : ready_.by_deadline().ready()) {
      backlog_pkts += nodes_[rank].queue->size_pkts;
    }
    return backlog_pkts <= ready_.rules().backlog_pkts;
  }
  return true;
}

template <class Traits, RunOrder Order>
bool Executor<Traits, Order>::resume() {
  if constexpr (MayRunByDeadline<Order>) {
    if (!has_ready()) return false;
    firings_ = 0;
    may_run_heavy_ = true;
    drain();
    stats_.worst_firings_per_run = std::max(stats_.worst_firings_per_run, firings_);
    return true;
  }
  return false;
}

}  // namespace batchplane::exec
