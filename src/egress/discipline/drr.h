// SPDX-License-Identifier: BSD-3-Clause
// drr.h - deficit round robin: least work per packet, but a flow waits for the quanta of all
// others.
#pragma once

#include "egress/discipline/scheduled.h"

namespace batchplane::egress {

struct DrrFlow {
  uint32_t next = kNone;
  uint32_t before = kNone;
  uint32_t weight = 0;
  uint32_t credit_bytes = 0;
  uint16_t lmax_bytes = 0;
};

class Drr : public Scheduled<Drr, DrrFlow> {
 public:
  explicit Drr(Capacity capacity) : Scheduled(capacity) {}

  bool dequeue(Descriptor& out) noexcept {
    if (ring_.is_empty()) return false;
    uint32_t at = ring_.first();
    while (flows_[at].head.len_bytes() > flows_[at].credit_bytes) {
      flows_[at].credit_bytes += quantum_bytes(flows_[at]);
      ring_.rotate(flows_);
      at = ring_.first();
    }
    auto& flow = flows_[at];
    out = flows_.pop(flow);
    out.flow = at;
    flow.credit_bytes -= out.len_bytes();
    if (flow.backlog_pkts == 0) leave(at);
    if (flow.backlog_pkts == 0 || flow.head.len_bytes() > flow.credit_bytes) prefetch_next();
    return true;
  }

 private:
  friend Scheduled<Drr, DrrFlow>;

  void prefetch_next() const noexcept {
    if (!ring_.is_empty()) flows_.prefetch(flows_[ring_.first()].next);
  }
  void fit(uint32_t flow) {
    fit_lmax(flow);
    flows_[flow].weight = flows_.params(flow).weight;
    quantum_bytes_ = std::max(quantum_bytes_, flows_.params(flow).lmax_bytes);
  }
  void join(uint32_t flow) noexcept {
    flows_[flow].credit_bytes = quantum_bytes(flows_[flow]);
    ring_.append(flows_, flow);
  }
  void leave(uint32_t flow) noexcept { ring_.erase(flows_, flow); }

  [[nodiscard]] uint32_t quantum_bytes(const DrrFlow& flow) const noexcept {
    return flow.weight * quantum_bytes_;
  }

  FlowRing<Flows> ring_;
  // Quantum of weight 1: the longest packet of any flow, so every turn sends at least one packet
  // and waits stay short.
  uint32_t quantum_bytes_ = 0;
};
static_assert(Discipline<Drr>);

}  // namespace batchplane::egress
