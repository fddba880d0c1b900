// SPDX-License-Identifier: BSD-3-Clause
// egress_promises.h - the delay bounds that an egress scheduler guarantees to the pipeline's flows.
// Sampled packets map those to the scheduler's own flows.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "core/packet/packet.h"
#include "egress/bound/bound.h"
#include "exec/control.h"
#include "modules/egress/egress_count.h"
#include "modules/egress/egress_scheduler.h"

namespace batchplane {

class EgressPromises {
 public:
  EgressPromises(uint32_t n_workers, uint32_t n_flows)
      : bounds_(n_flows), keys_(n_flows), lasts_(n_flows), workers_(n_workers) {
    for (std::vector<std::atomic<uint32_t>>& worker : workers_) {
      worker = std::vector<std::atomic<uint32_t>>(kStates);
    }
  }

  // Any sending worker: a sampled packet of a batch belongs to `flow` of this scheduler; its path
  // state identifies the pipeline's flow.
  void note(uint32_t worker, Packet& pkt, uint32_t flow) noexcept {
    const uint16_t state = pkt.meta().path_state;
    if (state >= kStates) [[unlikely]]
      return;
    std::atomic<uint32_t>& seen = workers_[worker][state];
    const uint32_t last = seen.load(std::memory_order_relaxed);
    if (last == flow + 1) return;
    if (last == 0 || key(last - 1) < key(flow)) seen.store(flow + 1, std::memory_order_relaxed);
  }

  // Sets new bounds. This and all functions below: control thread.
  void set(std::vector<egress::Bound> bounds) {
    bounds_ = std::move(bounds);
    for (size_t f = 0; f < bounds_.size(); ++f) {
      keys_[f].store(static_cast<float>(bounds_[f].total_ns()), std::memory_order_relaxed);
    }
  }
  [[nodiscard]] const egress::Bound& bound_of(uint32_t flow) const { return bounds_[flow]; }
  // For each path state seen since the last call, reports the flow with the longest bound.
  void take(const EgressCounts& counts, const EgressScheduler& scheduler, uint32_t batch_pkts,
            const std::function<void(uint16_t state, const exec::EgressPromise&)>& use) {
    for (std::vector<std::atomic<uint32_t>>& worker : workers_) {
      for (uint32_t state = 0; state < kStates; ++state) {
        if (worker[state].load(std::memory_order_relaxed) == 0) continue;
        const uint32_t flow = worker[state].exchange(0, std::memory_order_relaxed) - 1;
        use(static_cast<uint16_t>(state),
            promise_to(flow, counts.refused_pkts(flow), scheduler.backlog_pkts(flow), batch_pkts));
      }
    }
    for (uint32_t f = 0; f < lasts_.size(); ++f) lasts_[f] = counts.refused_pkts(f);
  }

 private:
  // Path states of flows declared in a pipeline; far more than any pipeline has.
  static constexpr uint32_t kStates = 4096;

  [[nodiscard]] float key(uint32_t flow) const noexcept {
    return keys_[flow].load(std::memory_order_relaxed);
  }
  [[nodiscard]] exec::EgressPromise promise_to(uint32_t flow, uint64_t refused_pkts,
                                               uint32_t backlog_pkts, uint32_t batch_pkts) const {
    const egress::Bound& bound = bounds_[flow];
    exec::EgressPromise promise{
        .is_on_way = true, .flow = flow, .share_bps = static_cast<uint64_t>(bound.share_bps)};
    if (bound.has_one()) promise.bound_ns = static_cast<uint64_t>(bound.total_ns());
    promise.is_beyond_share =
        refused_pkts != lasts_[flow] || is_beyond_share(bound, backlog_pkts, batch_pkts);
    return promise;
  }

  std::vector<egress::Bound> bounds_;     // by flow, without rounds of the arbiter
  std::vector<std::atomic<float>> keys_;  // the bounds in ns, for workers to compare
  std::vector<uint64_t> lasts_;           // refused packets at the last call of take()
  // By worker and path state: flow + 1; 0: none seen.
  std::vector<std::vector<std::atomic<uint32_t>>> workers_;
};

}  // namespace batchplane
