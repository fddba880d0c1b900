// SPDX-License-Identifier: BSD-3-Clause
// qfq.h - QFQ: delay bounds close to those of WF2Q+, at constant cost for any number of flows.
#pragma once

#include "egress/discipline/qfq_groups.h"
#include "egress/discipline/scheduled.h"

namespace batchplane::egress {

class Qfq : public Scheduled<Qfq, QfqTimes> {
 public:
  explicit Qfq(Capacity capacity, uint64_t virtual_time = 0)
      : Scheduled(capacity), groups_(virtual_time) {
    for (uint32_t flow = 0; flow < capacity.flows; ++flow) flows_[flow].finish = virtual_time;
  }

  bool dequeue(Descriptor& out) noexcept {
    const uint32_t at = groups_.first();
    if (at == QfqTimes::kNobody) return false;
    auto& flow = flows_[at];
    out = flows_.pop(flow);
    out.flow = at;
    groups_.advance(out.len_bytes());
    flow.start = flow.finish;
    if (flow.backlog_pkts == 0) {
      groups_.erase_first(flows_, at);
    } else {
      flow.finish = flow.start + flow.head.len_bytes() * flow.inverse_weight;
      groups_.settle_first(flows_, at);
    }
    groups_.prefetch_first(flows_);
    return true;
  }

 private:
  friend Scheduled<Qfq, QfqTimes>;

  void fit(uint32_t at) {
    fit_lmax(at);
    auto& flow = flows_[at];
    const FlowParams& params = flows_.params(at);
    groups_.set_weight_sum(flows_.weight_sum());
    if (params.weight == 0) return;
    const uint64_t inverse = inverse_of_weight(params.weight);
    const uint32_t lmax_bytes = std::max(params.lmax_bytes, kMinLmaxBytes);
    flow.set_rate(inverse, QfqGroups<Flows>::group_of(lmax_bytes * inverse));
  }
  void join(uint32_t at) noexcept {
    auto& flow = flows_[at];
    flow.start = groups_.start_of_idle(flow);
    flow.finish = flow.start + flow.head.len_bytes() * flow.inverse_weight;
    groups_.insert(flows_, at);
  }
  // A flow is not charged for packets that were not served.
  void leave(uint32_t at) noexcept {
    groups_.erase(flows_, at);
    flows_[at].finish = flows_[at].start;
  }

  QfqGroups<Flows> groups_;
};
static_assert(Discipline<Qfq>);

}  // namespace batchplane::egress
