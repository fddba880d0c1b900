// SPDX-License-Identifier: BSD-3-Clause
// scheduled.h - the common part of all disciplines with one queue per flow.
#pragma once

#include "egress/discipline/flow_set.h"

namespace batchplane::egress {

// `Self` orders backlogged flows:
// void fit(uint32_t flow)              its parameters have changed; it is not in the order
// void join(uint32_t flow) noexcept    it became backlogged: insert it into the order
// void leave(uint32_t flow) noexcept   remove it from the order, backlogged or just emptied
// A backlogged flow is changed by leave, fit, join, so the order never holds stale parameters.
template <class Self, class Extra>
class Scheduled {
 public:
  Configured configure(uint32_t flow, const FlowParams& params) {
    const Configured checked = flows_.check(flow, params);
    if (checked != Configured::kYes) return checked;
    if (flows_.has(flow) && flows_.params(flow) == params) return Configured::kYes;
    const bool is_backlogged = flows_[flow].backlog_pkts != 0;
    if (is_backlogged) self().leave(flow);
    flows_.set_params(flow, params);
    self().fit(flow);
    if (is_backlogged) self().join(flow);
    return Configured::kYes;
  }

  void remove(uint32_t flow, const TakeDescriptor& take) {
    if (!flows_.has(flow)) return;
    if (flows_[flow].backlog_pkts != 0) self().leave(flow);
    while (flows_[flow].backlog_pkts != 0) {
      Descriptor pkt = flows_.pop(flows_[flow]);
      pkt.flow = flow;
      take(pkt);
    }
    flows_.forget(flow);
    self().fit(flow);
  }

  void prefetch(uint32_t flow) const noexcept { flows_.prefetch(flow); }

  Enqueued enqueue(const Descriptor& pkt) noexcept {
    if (pkt.flow >= flows_.size()) [[unlikely]]
      return Enqueued::kNoFlow;
    const auto& flow = flows_[pkt.flow];
    if (pkt.len_bytes() > flow.lmax_bytes) [[unlikely]]
      return flows_.has(pkt.flow) ? Enqueued::kTooLong : Enqueued::kNoFlow;
    const Enqueued pushed = flows_.push(pkt);
    if (is_in(pushed) && flow.backlog_pkts == 1) self().join(pkt.flow);
    return pushed;
  }
  [[nodiscard]] const Descriptor& pushed_out() const noexcept { return flows_.pushed_out(); }

  [[nodiscard]] uint32_t backlog_pkts() const noexcept { return flows_.backlog_pkts(); }
  [[nodiscard]] uint32_t backlog_pkts(uint32_t flow) const noexcept {
    return flows_[flow].backlog_pkts.peek();
  }

 protected:
  using Flows = FlowSet<Extra>;
  explicit Scheduled(Capacity capacity) : flows_(capacity) {}
  // Sets the length that enqueue checks; part of fit().
  void fit_lmax(uint32_t flow) {
    const FlowParams& params = flows_.params(flow);
    flows_[flow].lmax_bytes = static_cast<uint16_t>(params.weight == 0 ? 0 : params.lmax_bytes);
  }

  Flows flows_;

 private:
  Self& self() { return static_cast<Self&>(*this); }
};

// A ring of flows in the order in which they joined. Flows keep `next` and `before`.
template <class Flows>
class FlowRing {
 public:
  [[nodiscard]] bool is_empty() const { return first_ == kNone; }
  [[nodiscard]] uint32_t first() const { return first_; }
  void rotate(const Flows& flows) { first_ = flows[first_].next; }
  void append(Flows& flows, uint32_t flow) {
    if (first_ == kNone) {
      first_ = flow;
      flows[flow].next = flows[flow].before = flow;
      return;
    }
    const uint32_t last = flows[first_].before;
    flows[flow].next = first_;
    flows[flow].before = last;
    flows[last].next = flow;
    flows[first_].before = flow;
  }
  void erase(Flows& flows, uint32_t flow) {
    const uint32_t next = flows[flow].next;
    if (next == flow) {
      first_ = kNone;
      return;
    }
    flows[flows[flow].before].next = next;
    flows[next].before = flows[flow].before;
    if (first_ == flow) first_ = next;
  }

 private:
  uint32_t first_ = kNone;
};

}  // namespace batchplane::egress
