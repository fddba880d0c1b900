// SPDX-License-Identifier: BSD-3-Clause
// wf2q_plus.h - WF2Q+: the tightest delay bounds, at the cost of a heap.
#pragma once

#include <vector>

#include "egress/discipline/scheduled.h"
#include "egress/discipline/timed_heap.h"
#include "egress/discipline/virtual_time.h"

namespace batchplane::egress {

struct Wf2qFlow {
  uint64_t start = 0;
  uint64_t finish = 0;
  uint64_t inverse_weight = 0;
  uint16_t lmax_bytes = 0;
  bool is_eligible = false;
};

// Serves the flow that finishes first among those that have started in virtual time.
class Wf2qPlus : public Scheduled<Wf2qPlus, Wf2qFlow> {
 public:
  // `virtual_time` is the initial value, for tests of wrapping.
  explicit Wf2qPlus(Capacity capacity, uint64_t virtual_time = 0)
      : Scheduled(capacity),
        virtual_time_(virtual_time),
        eligible_(capacity.flows),
        waiting_(capacity.flows) {
    for (uint32_t flow = 0; flow < capacity.flows; ++flow) flows_[flow].finish = virtual_time;
  }

  bool dequeue(Descriptor& out) noexcept {
    if (eligible_.is_empty() && waiting_.is_empty()) return false;
    if (eligible_.is_empty()) virtual_time_ = later_of(virtual_time_, waiting_.first_time());
    while (!waiting_.is_empty() && !is_later(waiting_.first_time(), virtual_time_)) {
      const uint32_t flow = waiting_.first();
      waiting_.erase(flow);
      put(flow);
    }
    const uint32_t at = eligible_.first();
    auto& flow = flows_[at];
    out = flows_.pop(flow);
    out.flow = at;
    virtual_time_ += out.len_bytes() * inverse_sum_;
    flow.start = flow.finish;
    if (flow.backlog_pkts == 0) {
      eligible_.erase(at);
      return true;
    }
    flow.finish = flow.start + flow.head.len_bytes() * flow.inverse_weight;
    if (is_later(flow.start, virtual_time_)) {
      eligible_.erase(at);
      put(at);
    } else {
      eligible_.replace(at, flow.finish);
    }
    return true;
  }

 private:
  friend Scheduled<Wf2qPlus, Wf2qFlow>;

  void fit(uint32_t flow) {
    fit_lmax(flow);
    flows_[flow].inverse_weight = inverse_of_weight(flows_.params(flow).weight);
    inverse_sum_ = inverse_of_weight(flows_.weight_sum());
  }
  void join(uint32_t at) noexcept {
    auto& flow = flows_[at];
    // A flow is served only after it has started, so it is at most one packet ahead. One that seems
    // further ahead was idle until virtual time wrapped.
    const uint64_t ahead = flow.finish - virtual_time_;
    flow.start = ahead <= flow.lmax_bytes * flow.inverse_weight ? flow.finish : virtual_time_;
    flow.finish = flow.start + flow.head.len_bytes() * flow.inverse_weight;
    put(at);
  }
  // A flow is not charged for packets that were not served.
  void leave(uint32_t at) noexcept {
    auto& flow = flows_[at];
    (flow.is_eligible ? eligible_ : waiting_).erase(at);
    flow.finish = flow.start;
  }
  void put(uint32_t at) noexcept {
    auto& flow = flows_[at];
    flow.is_eligible = !is_later(flow.start, virtual_time_);
    if (flow.is_eligible) {
      eligible_.insert(at, flow.finish);
    } else {
      waiting_.insert(at, flow.start);
    }
  }

  uint64_t virtual_time_;
  uint64_t inverse_sum_ = 0;
  TimedHeap eligible_;  // by finish
  TimedHeap waiting_;   // by start
};
static_assert(Discipline<Wf2qPlus>);

}  // namespace batchplane::egress
