// SPDX-License-Identifier: BSD-3-Clause
// executor_buffers.inl - the fractional buffers: arrivals, full and partial releases, and changes
// of triggers.
#pragma once

namespace batchplane::exec {

// After packets were added to a queue: marks it ready, or sets the time until which it may hold
// them.
template <class Traits, RunOrder Order>
template <bool kInstrumented>
void Executor<Traits, Order>::arrived(Queue& queue, uint64_t entry_bound_ns) {
  queue.entry_bound_ns = std::min(queue.entry_bound_ns, entry_bound_ns);
  if (queue.trigger_pkts == 0) {
    queue.seen_pkts = queue.size_pkts;
    mark_ready(queue);
    return;
  }
  // Also if it becomes ready, since packets left behind may be as old; and also if these packets
  // were counted already, since a branch that ran between scatter and here may have added younger
  // ones.
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

template <class Traits, RunOrder Order>
void Executor<Traits, Order>::fire_whole(Node& node, Cause cause) {
  Queue& queue = *node.queue;
  const uint32_t held = queue.size_pkts;
  prefetch_held(queue, held);
  for (uint32_t done = 0; done < held; done += ctx_.batch_limit_pkts) {
    fire_any(node, std::min(held - done, ctx_.batch_limit_pkts), done, cause);
  }
  keep_rest(queue, held);
  if (cause != Cause::kChange) rejoin(queue);
}

// Buffers that take turns all start again together after a hole in their input: each then takes its turn anew.
// Not so one that seldom fills, whose turn would only make its batches smaller.
template <class Traits, RunOrder Order>
void Executor<Traits, Order>::rejoin(Queue& queue) {
  const uint64_t full = queue.causes[static_cast<uint32_t>(Cause::kFull)].firings;
  const auto fresh = static_cast<int32_t>(
      std::min<uint64_t>(full - queue.counted_full, kMaxFullness + kFullPerOther));
  queue.counted_full = full;
  const int32_t rest = std::min(queue.fullness + fresh, kMaxFullness) - kFullPerOther;
  queue.fullness = std::max(rest, -kFullPerOther);
  if (queue.fullness >= 0) take_turn(queue);
}

// Moves the packets left to the front. Keeps the bound, since they may be as old as the fired ones.
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

// Held packets are no longer in the L1 cache: prefetches both metadata lines of all, then all
// headers.
template <class Traits, RunOrder Order>
void Executor<Traits, Order>::prefetch_held(const Queue& queue, uint32_t n_pkts) const {
  // GCC treats a function that only prefetches as free of effects and removes calls of it.
  asm volatile("");
  for (uint32_t i = 0; i < n_pkts; ++i) Traits::prefetch_meta(queue.pkts[i]);
  for (uint32_t i = 0; i < n_pkts; ++i) Traits::prefetch_data(queue.pkts[i]);
}

template <class Traits, RunOrder Order>
uint64_t Executor<Traits, Order>::held_pkts() const {
  uint64_t held = 0;
  for (const Node& node : nodes_) held += node.queue->size_pkts;
  return held;
}

// Lists each buffer once, whatever is edited between two loops, so the list never outgrows its
// memory.
template <class Traits, RunOrder Order>
void Executor<Traits, Order>::list_buffer(Node& node) {
  if (node.queue->is_listed) return;
  node.queue->is_listed = true;
  buffered_.push_back(&node);
}

template <class Traits, RunOrder Order>
void Executor<Traits, Order>::unlist_buffer(Node& node) {
  if (!node.queue->is_listed) return;
  node.queue->is_listed = false;
  std::erase(buffered_, &node);
}

template <class Traits, RunOrder Order>
void Executor<Traits, Order>::set_trigger(Node& node, uint32_t trigger_pkts,
                                          uint32_t release_at_pkts) {
  Queue& queue = *node.queue;
  assert(trigger_pkts <= ctx_.batch_limit_pkts);
  if (trigger_pkts == queue.wanted_trigger_pkts()) return;
  if (const uint32_t u = unit_of(node); u != 0) return set_unit_trigger(u, trigger_pkts);
  if (units_ != nullptr) return;  // a node between units has no buffer of its own
  queue.trigger_pkts = static_cast<uint16_t>(trigger_pkts);
  // The first release comes after as many more packets as this buffer's turn wants.
  uint32_t first_pkts =
      release_at_pkts > 0 ? std::min(release_at_pkts, trigger_pkts) : trigger_pkts;
  queue.turn_pkts = static_cast<uint16_t>(first_pkts);
  queue.is_changed = queue.size_pkts != 0 && queue.size_pkts + first_pkts > trigger_pkts;
  any_changed_ |= queue.is_changed;
  if (!queue.is_changed) first_pkts += queue.size_pkts;
  queue.release_at_pkts = static_cast<uint16_t>(first_pkts);
  queue.fullness = kFullPerOther;
  queue.counted_full = queue.causes[static_cast<uint32_t>(Cause::kFull)].firings;
  if (trigger_pkts > 0) list_buffer(node);
  if (trigger_pkts == 0 && queue.size_pkts == 0) unlist_buffer(node);
  chains_.link(node);
}

template <class Traits, RunOrder Order>
void Executor<Traits, Order>::settle_changes(uint32_t from_rank) {
  if (!any_changed_) return;
  any_changed_ = from_rank != 0;  // from_rank != 0: some may be left for the next call
  // Downstream first: packets released upstream may pass by pointer and must not overtake.
  for (size_t i = nodes_.size(); i-- > from_rank;) {
    Node& node = nodes_[i];
    Queue& queue = *node.queue;
    if (!queue.is_changed) continue;
    queue.is_changed = false;
    fire_whole(node, Cause::kChange);
    if (queue.trigger_pkts == 0) unlist_buffer(node);
  }
  drain();
}

template <class Traits, RunOrder Order>
void Executor<Traits, Order>::adopt_held(Node& node, Queue& old_queue) {
  Queue& queue = *node.queue;
  // The old unit's queue may have held more than fits into this queue or further on; the rest stays
  // behind.
  const uint32_t max_pkts = room_for_held_pkts(node);
  const uint32_t n_pkts =
      std::min(old_queue.size_pkts, max_pkts - std::min(max_pkts, queue.size_pkts));
  if (n_pkts == 0) return;
  std::memcpy(queue.pkts + queue.size_pkts, old_queue.pkts, n_pkts * sizeof(Handle));
  queue.size_pkts += n_pkts;
  queue.seen_pkts = queue.size_pkts;
  queue.since_ns = old_queue.since_ns;
  queue.entry_bound_ns = std::min(queue.entry_bound_ns, old_queue.entry_bound_ns);
  queue.release_at_pkts = queue.trigger_pkts;
  old_queue.size_pkts -= n_pkts;
  std::memmove(old_queue.pkts, old_queue.pkts + n_pkts, old_queue.size_pkts * sizeof(Handle));
  if (const uint32_t unit = unit_of(node); unit != 0) return refresh_unit(unit);
  if (queue.trigger_pkts == 0 || queue.size_pkts >= queue.trigger_pkts) {
    queue.is_changed = true;
    any_changed_ = true;
  }
  next_release_ns_ = std::min(next_release_ns_, queue.entry_bound_ns + queue.age_limit_ns);
}

}  // namespace batchplane::exec
