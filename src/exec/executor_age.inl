// SPDX-License-Identifier: BSD-3-Clause
// executor_age.inl - releases that are not triggered by a packet: age limits and idle input.
#pragma once

namespace batchplane::exec {

template <class Traits, RunOrder Order>
uint64_t Executor<Traits, Order>::oldest_entry_ns(const Queue& queue) const {
  uint64_t oldest_ns = kNeverNs;
  for (uint32_t i = 0; i < queue.size_pkts; ++i) {
    oldest_ns = std::min(oldest_ns, Traits::task_entry_ns(queue.pkts[i]));
  }
  return oldest_ns;
}

template <class Traits, RunOrder Order>
void Executor<Traits, Order>::set_age_limit(Node& node, uint64_t age_limit_ns) {
  Queue& queue = *node.queue;
  queue.age_limit_ns = age_limit_ns;
  if (queue.size_pkts != 0) {
    next_release_ns_ = std::min(next_release_ns_, queue.entry_bound_ns + age_limit_ns);
  }
}

// Lists the buffers that are really due, earliest deadline first: deadlines that have passed are recomputed from
// the packets really held. Returns how many hold anything.
template <class Traits, RunOrder Order>
size_t Executor<Traits, Order>::find_due() {
  due_.clear();
  size_t holding = 0;
  uint64_t next_ns = kNeverNs;
  const uint64_t now_ns = ctx_.now_ns;
  for (Node* node : buffered_) {
    Queue& queue = *node->queue;
    // With many buffers, which ones are empty is unpredictable: OR with all ones instead of a
    // branch.
    const bool is_empty = queue.size_pkts == 0;
    holding += is_empty ? 0 : 1;
    const uint64_t never_if_empty = uint64_t{0} - static_cast<uint64_t>(is_empty);
    uint64_t deadline_ns = (queue.entry_bound_ns + queue.age_limit_ns) | never_if_empty;
    if (deadline_ns <= now_ns) [[unlikely]] {
      queue.entry_bound_ns = oldest_entry_ns(queue);
      deadline_ns = queue.entry_bound_ns + queue.age_limit_ns;
      if (deadline_ns <= now_ns) {
        due_.push_back({deadline_ns, filled(queue), node});
        continue;
      }
    }
    next_ns = std::min(next_ns, deadline_ns);
  }
  next_release_ns_ = next_ns;
  std::ranges::sort(due_, {}, [](const Due& due) { return std::pair(due.at_ns, due.node->rank); });
  return holding;
}

// Each batch runs to completion before the next.
template <class Traits, RunOrder Order>
void Executor<Traits, Order>::fire_expired() {
  if constexpr (MayRunByDeadline<Order>) {
    if (ready_.is_by_deadline()) return mark_expired();
  }
  firings_ = 0;
  const size_t holding = find_due();
  // Most buffers at once are in step: their batches make one long run, now and whenever they expire again.
  const bool are_in_step = due_.size() > 1 && 2 * due_.size() >= holding;
  while (!due_.empty()) {
    for (const Due& due : due_) {
      // Something came into another buffer that is more urgent, or into one of these: its rest is then looked up.
      if (next_release_ns_ < due.at_ns) break;
      Queue& queue = *due.node->queue;
      if (queue.size_pkts == 0 || filled(queue) != due.filled) continue;  // it filled up meanwhile
      note_release(queue, ctx_.now_ns - due.at_ns);
      // Below that its turn would cut a batch that is small anyway.
      const bool is_half_full = 2 * queue.size_pkts >= queue.trigger_pkts;
      fire_whole(*due.node, Cause::kAge);
      if (are_in_step && is_half_full) take_turn(queue);
      drain();
    }
    // Packets buffered during a run lower next_release_ns_ again; nothing is due until it has passed.
    if (ctx_.now_ns < next_release_ns_) break;
    find_due();
  }
  stats_.worst_firings_per_run = std::max(stats_.worst_firings_per_run, firings_);
}

template <class Traits, RunOrder Order>
bool Executor<Traits, Order>::release_oldest(uint32_t from_rank) {
  if (units_ != nullptr) return release_unit(from_rank);
  Node* oldest = nullptr;
  uint64_t oldest_ns = kNeverNs;
  for (Node* node : buffered_) {
    if (node->queue->size_pkts == 0 || node->rank < from_rank) continue;
    const uint64_t entry_ns = oldest_entry_ns(*node->queue);
    if (oldest == nullptr || entry_ns < oldest_ns) {
      oldest = node;
      oldest_ns = entry_ns;
    }
  }
  if (oldest == nullptr) return false;
  fire_whole(*oldest, Cause::kIdle);
  drain();
  return true;
}

}  // namespace batchplane::exec
