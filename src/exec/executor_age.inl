// SPDX-License-Identifier: BSD-3-Clause
// executor_age.inl - releases that traffic does not cause: age limits, idle input, changed
// triggers.
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
void Executor<Traits, Order>::fire_whole(Node& node, Cause cause) {
  Queue& queue = *node.queue;
  const uint32_t held = queue.size_pkts;
  prefetch_held(queue, held);
  for (uint32_t done = 0; done < held; done += ctx_.batch_limit_pkts) {
    fire_any(node, std::min(held - done, ctx_.batch_limit_pkts), done, cause);
  }
  keep_rest(queue, held);
}

// Bounds that have passed are replaced by what is really held; what is really due fires, earliest
// deadline first, each carried to its end before the next.
template <class Traits, RunOrder Order>
void Executor<Traits, Order>::fire_expired() {
  if constexpr (MayRunByDeadline<Order>) {
    if (ready_.is_by_deadline()) return mark_expired();
  }
  firings_ = 0;
  // What is held on the way lowers the bound again; as long as it has not passed, nothing is due.
  while (ctx_.now_ns >= next_release_ns_) {
    Node* due = nullptr;
    uint64_t due_ns = kNeverNs;
    uint64_t next_ns = kNeverNs;
    const uint64_t now_ns = ctx_.now_ns;
    for (Node* node : buffered_) {
      Queue& queue = *node->queue;
      // Which of many buffers are empty nobody can predict: all bits of never, and no branch.
      const uint64_t never_if_empty = uint64_t{0} - static_cast<uint64_t>(queue.size_pkts == 0);
      uint64_t deadline_ns = (queue.entry_bound_ns + queue.age_limit_ns) | never_if_empty;
      if (deadline_ns <= now_ns) [[unlikely]] {
        queue.entry_bound_ns = oldest_entry_ns(queue);
        deadline_ns = queue.entry_bound_ns + queue.age_limit_ns;
        if (deadline_ns <= now_ns && deadline_ns < due_ns) {
          // The one found before it is for another round.
          std::swap(due_ns, deadline_ns);
          due = node;
        }
      }
      next_ns = std::min(next_ns, deadline_ns);
    }
    next_release_ns_ = next_ns;
    if (due == nullptr) break;
    if (now_ns - due_ns > run_allowance_ns_) ++due->queue->late_releases;
    fire_whole(*due, Cause::kAge);
    drain();
  }
  stats_.worst_firings_per_run = std::max(stats_.worst_firings_per_run, firings_);
}

template <class Traits, RunOrder Order>
bool Executor<Traits, Order>::release_oldest() {
  if (units_ != nullptr) return release_unit();
  Node* oldest = nullptr;
  uint64_t oldest_ns = kNeverNs;
  for (Node* node : buffered_) {
    if (node->queue->size_pkts == 0) continue;
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

// Steps of nodes that could ever form a chain lie side by side, so that any chain is a slice.
template <class Traits, RunOrder Order>
void Executor<Traits, Order>::lay_out_steps() {
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
  for (size_t i = nodes_.size(); i-- > 0;) measure_chain(nodes_[i]);
}

template <class Traits, RunOrder Order>
void Executor<Traits, Order>::measure_chain(Node& node) {
  Queue& queue = *node.queue;
  const bool goes_on = node.after == After::kDirect;
  const Queue* rest = goes_on ? node.next->queue : nullptr;
  queue.n_steps = static_cast<uint8_t>(goes_on ? 1 + rest->n_steps : 1);
  queue.tail = goes_on ? rest->tail : &node;
  queue.chain_after = goes_on ? rest->chain_after : node.after;
}

// Whether batches reach a node by pointer, and what that means for the chains and counts before it.
template <class Traits, RunOrder Order>
void Executor<Traits, Order>::link_direct(Node& node) {
  Queue& queue = *node.queue;
  queue.is_direct = node.n_inputs <= 1 && queue.trigger_pkts == 0;
  Node* before = node.sole_predecessor;
  if (before == nullptr) return;
  const bool was_linked = before->after == After::kDirect;
  const bool is_linked =
      queue.is_direct && !before->has_path_ops && node.chain_position % Node::kMostSteps != 0;
  if (was_linked == is_linked) return;
  const NodeTotals sum = totals(node);
  before->after = is_linked ? After::kDirect : After::kEnqueue;
  node.link_base = totals(*before);
  node.missing = {};
  node.folded = {};
  node.folded = {sum.batches - totals(node).batches, sum.pkts - totals(node).pkts};
  for (Node* at = before; at != nullptr; at = at->sole_predecessor) {
    measure_chain(*at);
    if (at->sole_predecessor == nullptr || at->sole_predecessor->after != After::kDirect) break;
  }
}

template <class Traits, RunOrder Order>
NodeTotals Executor<Traits, Order>::totals(const Node& node) const {
  NodeTotals sum{node.queue->batches + node.folded.batches,
                 node.queue->entered_pkts + node.folded.pkts};
  const Node* before = node.sole_predecessor;
  if (before == nullptr || before->after != After::kDirect) return sum;
  const NodeTotals passed = totals(*before);
  sum.batches += passed.batches - node.link_base.batches - node.missing.batches;
  sum.pkts += passed.pkts - node.link_base.pkts - node.missing.pkts;
  return sum;
}

template <class Traits, RunOrder Order>
void Executor<Traits, Order>::set_totals(Node& node, NodeTotals wanted) {
  const NodeTotals now = totals(node);
  node.folded.batches += wanted.batches - now.batches;
  node.folded.pkts += wanted.pkts - now.pkts;
}

// Each buffer is listed once, whatever the edits between two loops: the list never outgrows its
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
  if (units_ != nullptr) return;  // it has no queue of its own
  queue.trigger_pkts = static_cast<uint16_t>(trigger_pkts);
  queue.release_at_pkts = static_cast<uint16_t>(queue.size_pkts == 0 && release_at_pkts > 0
                                                    ? std::min(release_at_pkts, trigger_pkts)
                                                    : trigger_pkts);
  if (queue.size_pkts != 0 && queue.size_pkts >= trigger_pkts) {
    queue.is_changed = true;
    any_changed_ = true;
  }
  if (trigger_pkts > 0) list_buffer(node);
  if (trigger_pkts == 0 && queue.size_pkts == 0) unlist_buffer(node);
  link_direct(node);
}

template <class Traits, RunOrder Order>
void Executor<Traits, Order>::set_age_limit(Node& node, uint64_t age_limit_ns) {
  Queue& queue = *node.queue;
  queue.age_limit_ns = age_limit_ns;
  if (queue.size_pkts != 0) {
    next_release_ns_ = std::min(next_release_ns_, queue.entry_bound_ns + age_limit_ns);
  }
}

template <class Traits, RunOrder Order>
void Executor<Traits, Order>::settle_changes() {
  if (!any_changed_) return;
  any_changed_ = false;
  // Downstream first: what an upstream buffer lets go may pass by pointer, and must not overtake.
  for (size_t i = nodes_.size(); i-- > 0;) {
    Node& node = nodes_[i];
    Queue& queue = *node.queue;
    if (!queue.is_changed) continue;
    queue.is_changed = false;
    if (queue.trigger_pkts == 0) {
      fire_whole(node, Cause::kChange);
      unlist_buffer(node);
      continue;
    }
    const uint32_t held = queue.size_pkts;
    uint32_t done = 0;
    for (; held - done >= queue.trigger_pkts; done += queue.trigger_pkts) {
      fire_any(node, queue.trigger_pkts, done, Cause::kChange);
    }
    keep_rest(queue, done);
  }
  drain();
}

template <class Traits, RunOrder Order>
void Executor<Traits, Order>::adopt_held(Node& node, Queue& old_queue) {
  Queue& queue = *node.queue;
  // The queue of a unit may have held more than there is room for now, here or further on: the rest
  // stays behind.
  const uint32_t unit = unit_of(node);
  const uint32_t most_pkts = unit != 0 ? units_->units[unit].queue_pkts : ctx_.batch_limit_pkts - 1;
  const uint32_t n_pkts =
      std::min(old_queue.size_pkts, most_pkts - std::min(most_pkts, queue.size_pkts));
  if (n_pkts == 0) return;
  std::memcpy(queue.pkts + queue.size_pkts, old_queue.pkts, n_pkts * sizeof(Handle));
  queue.size_pkts += n_pkts;
  queue.seen_pkts = queue.size_pkts;
  queue.since_ns = old_queue.since_ns;
  queue.entry_bound_ns = std::min(queue.entry_bound_ns, old_queue.entry_bound_ns);
  queue.release_at_pkts = queue.trigger_pkts;
  old_queue.size_pkts -= n_pkts;
  std::memmove(old_queue.pkts, old_queue.pkts + n_pkts, old_queue.size_pkts * sizeof(Handle));
  if (unit != 0) return refresh_unit(unit);
  if (queue.trigger_pkts == 0 || queue.size_pkts >= queue.trigger_pkts) {
    queue.is_changed = true;
    any_changed_ = true;
  }
  next_release_ns_ = std::min(next_release_ns_, queue.entry_bound_ns + queue.age_limit_ns);
}

// Least squares over the sampled runs; where batch sizes do not vary, all is booked per packet. The
// head of a chain carries the sum.
template <class Traits, RunOrder Order>
void Executor<Traits, Order>::refresh_work_estimates(double ns_per_cycle) {
  constexpr uint64_t kLeastSamples = 16;
  for (size_t i = nodes_.size(); i-- > 0;) {
    Node& node = nodes_[i];
    const CostSamples& c = node.cost;
    if (c.batches < kLeastSamples) continue;
    const auto n = static_cast<double>(c.batches);
    const auto x = static_cast<double>(c.pkts);
    const auto y = static_cast<double>(c.cycles);
    const double spread = n * static_cast<double>(c.pkts_squared) - x * x;
    double slope = y / x;
    double base = 0;
    if (spread > 0.01 * x * x) {
      slope = std::max(0.0, (n * static_cast<double>(c.cycles_pkts) - x * y) / spread);
      base = std::max(0.0, (y - slope * x) / n);
    }
    set_work_estimate(node, base * ns_per_cycle, slope * ns_per_cycle);
  }
}

template <class Traits, RunOrder Order>
void Executor<Traits, Order>::set_work_estimate(Node& node, double per_batch_ns,
                                                double per_pkt_ns) {
  constexpr double kMost = 65535;
  double per_pkt_16ths = 16 * per_pkt_ns;
  if (node.after == After::kDirect) {
    per_batch_ns += node.next->queue->work_per_batch_ns;
    per_pkt_16ths += node.next->queue->work_per_pkt_16ths_ns;
  }
  node.queue->work_per_batch_ns = static_cast<uint16_t>(std::min(per_batch_ns, kMost));
  node.queue->work_per_pkt_16ths_ns = static_cast<uint16_t>(std::min(per_pkt_16ths, kMost));
}

template <class Traits, RunOrder Order>
uint64_t Executor<Traits, Order>::held_pkts() const {
  uint64_t held = 0;
  for (const Node& node : nodes_) held += node.queue->size_pkts;
  return held;
}

}  // namespace batchplane::exec
