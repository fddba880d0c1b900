// SPDX-License-Identifier: BSD-3-Clause
// deadline_order.h - runs ready nodes by the deadline of their waiting packets, and selects between this
// order and the order by depth.
//
// Under deadlines a loop runs at most one heavy batch and leaves the rest ready: the input is polled before
// each heavy batch, so that packets with less time left can overtake it.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "exec/batch.h"
#include "exec/run_order.h"

namespace batchplane::exec {

// An indexed binary heap: earliest deadline first, lowest rank among equals. Same contract as RunOrder.
class DeadlineOrder {
 public:
  explicit DeadlineOrder(uint32_t n_nodes) : place_(n_nodes, kNowhere), deadline_ns_(n_nodes, 0) {
    heap_.reserve(n_nodes);
  }

  // For a node that is ready already, sets its new deadline.
  void mark(uint32_t rank, uint64_t deadline_ns) noexcept {
    if (place_[rank] == kNowhere) {
      place_[rank] = static_cast<uint32_t>(heap_.size());
      heap_.push_back(rank);
    }
    deadline_ns_[rank] = deadline_ns;
    rise(place_[rank]);
    sink(place_[rank]);
  }

  [[nodiscard]] bool empty() const noexcept { return heap_.empty(); }
  [[nodiscard]] uint32_t first() const noexcept { return heap_.front(); }
  [[nodiscard]] const std::vector<uint32_t>& ready() const noexcept { return heap_; }

  uint32_t pop() noexcept {
    const uint32_t rank = heap_.front();
    place_[rank] = kNowhere;
    const uint32_t last = heap_.back();
    heap_.pop_back();
    if (last != rank) {
      put(0, last);
      sink(0);
    }
    return rank;
  }

 private:
  static constexpr uint32_t kNowhere = ~0U;

  [[nodiscard]] bool is_before(uint32_t a, uint32_t b) const {
    return std::pair(deadline_ns_[a], a) < std::pair(deadline_ns_[b], b);
  }
  void put(uint32_t at, uint32_t rank) {
    heap_[at] = rank;
    place_[rank] = at;
  }
  void rise(uint32_t at) {
    const uint32_t rank = heap_[at];
    for (; at > 0 && is_before(rank, heap_[(at - 1) / 2]); at = (at - 1) / 2) {
      put(at, heap_[(at - 1) / 2]);
    }
    put(at, rank);
  }
  void sink(uint32_t at) {
    const uint32_t rank = heap_[at];
    const auto n = static_cast<uint32_t>(heap_.size());
    for (uint32_t child = 2 * at + 1; child < n; child = 2 * at + 1) {
      if (child + 1 < n && is_before(heap_[child + 1], heap_[child])) ++child;
      if (!is_before(heap_[child], rank)) break;
      put(at, heap_[child]);
      at = child;
    }
    put(at, rank);
  }

  std::vector<uint32_t> heap_;         // ranks; memory reserved
  std::vector<uint32_t> place_;        // by rank: position in the heap
  std::vector<uint64_t> deadline_ns_;  // by rank
};

// Parameters of a task that runs by deadlines.
struct DeadlineRules {
  // A batch whose cost law gives at least this time is heavy: it waits until the input has been polled.
  uint64_t heavy_ns = 1000;
  // The input is polled only while at most this many packets are ready.
  uint32_t backlog_pkts = 0;
};

// Either order, chosen when a task is made: by depth (DepthOrder) or by deadline.
class EitherOrder {
 public:
  explicit EitherOrder(uint32_t n_nodes) : by_depth_(n_nodes), by_deadline_(n_nodes) {}

  // Call before the first mark.
  void choose_deadlines(const DeadlineRules& rules, uint32_t n_nodes) {
    is_by_deadline_ = true;
    rules_ = rules;
    budget_ns_.assign(n_nodes, kNeverNs);
  }
  [[nodiscard]] bool is_by_deadline() const noexcept { return is_by_deadline_; }
  [[nodiscard]] const DeadlineRules& rules() const noexcept { return rules_; }
  // Time from entry into the task within which a packet in front of this node should have left it.
  void set_budget(uint32_t rank, uint64_t budget_ns) { budget_ns_[rank] = budget_ns; }
  [[nodiscard]] uint64_t budget_ns(uint32_t rank) const { return budget_ns_[rank]; }
  [[nodiscard]] DeadlineOrder& by_deadline() noexcept { return by_deadline_; }
  [[nodiscard]] const DeadlineOrder& by_deadline() const noexcept { return by_deadline_; }

  void mark(uint32_t rank) noexcept { by_depth_.mark(rank); }
  [[nodiscard]] bool empty() const noexcept {
    return is_by_deadline_ ? by_deadline_.empty() : by_depth_.empty();
  }
  uint32_t pop() noexcept { return is_by_deadline_ ? by_deadline_.pop() : by_depth_.pop(); }

 private:
  DepthOrder by_depth_;
  DeadlineOrder by_deadline_;
  DeadlineRules rules_;
  std::vector<uint64_t> budget_ns_;  // by rank
  bool is_by_deadline_ = false;
};

static_assert(RunOrder<EitherOrder>);

// Orders that support deadlines. The executor compiles its code for deadlines only for these.
template <class T>
concept MayRunByDeadline = RunOrder<T> && requires(const T order) {
  { order.is_by_deadline() } noexcept -> std::same_as<bool>;
};

}  // namespace batchplane::exec
