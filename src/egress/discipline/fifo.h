// SPDX-License-Identifier: BSD-3-Clause
// fifo.h - first come, first served, as a port without a scheduler.
#pragma once

#include <vector>

#include "egress/discipline/flow_set.h"

namespace batchplane::egress {

// All flows share one ring, and weights have no effect. Limits are per flow. When the ring is full,
// the arriving packet is refused.
class Fifo {
 public:
  explicit Fifo(Capacity capacity) : ring_(capacity.pkts), flows_(capacity.flows) {}

  Configured configure(uint32_t flow, const FlowParams& params) {
    if (flow >= flows_.size()) return Configured::kBadFlow;
    if (const Configured range = check_range(params); range != Configured::kYes) return range;
    flows_[flow].params = params;
    flows_[flow].is_known = true;
    return Configured::kYes;
  }
  void remove(uint32_t flow, const TakeDescriptor& take) {
    uint32_t kept = 0;
    for (uint32_t k = 0; k < backlog_pkts_; ++k) {
      const Descriptor pkt = ring_[(first_ + k) % ring_.size()];
      if (pkt.flow == flow) {
        take(pkt);
      } else {
        ring_[(first_ + kept++) % ring_.size()] = pkt;
      }
    }
    backlog_pkts_ = kept;
    if (flow < flows_.size()) flows_[flow] = {};
  }
  void prefetch(uint32_t /*flow*/) const noexcept {}
  Enqueued enqueue(const Descriptor& pkt) noexcept {
    if (pkt.flow >= flows_.size() || !flows_[pkt.flow].is_known) return Enqueued::kNoFlow;
    Flow& flow = flows_[pkt.flow];
    if (pkt.len_bytes() > flow.params.lmax_bytes) return Enqueued::kTooLong;
    if (flow.backlog_pkts >= flow.params.limit_pkts || backlog_pkts_ == ring_.size()) {
      return Enqueued::kFull;
    }
    ++flow.backlog_pkts;
    const size_t at = size_t{first_} + backlog_pkts_++;
    ring_[at < ring_.size() ? at : at - ring_.size()] = pkt;
    return Enqueued::kYes;
  }
  bool dequeue(Descriptor& out) noexcept {
    if (backlog_pkts_ == 0) return false;
    out = ring_[first_];
    first_ = first_ + 1 == ring_.size() ? 0 : first_ + 1;
    --backlog_pkts_;
    --flows_[out.flow].backlog_pkts;
    return true;
  }
  [[nodiscard]] uint32_t backlog_pkts() const noexcept { return backlog_pkts_; }
  [[nodiscard]] uint32_t backlog_pkts(uint32_t flow) const noexcept {
    return flows_[flow].backlog_pkts.peek();
  }

 private:
  struct Flow {
    FlowParams params;
    Watched<uint32_t> backlog_pkts;
    bool is_known = false;
  };
  std::vector<Descriptor> ring_;
  std::vector<Flow> flows_;
  uint32_t first_ = 0;
  uint32_t backlog_pkts_ = 0;
};
static_assert(Discipline<Fifo>);

}  // namespace batchplane::egress
