// SPDX-License-Identifier: BSD-3-Clause
// flow_set.h - the flows of a discipline: one packet FIFO each, in a shared store of nodes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/watched.h"
#include "egress/discipline/discipline.h"
#include "egress/discipline/long_queue.h"
#include "egress/discipline/pkt_store.h"

namespace batchplane::egress {

// The head packet is stored in the flow itself, so serving a flow with one packet touches one cache
// line.
struct FlowQueue : PktQueue {
  Watched<uint32_t> backlog_pkts;
  uint32_t limit_pkts = 0;
};

// `Extra` is the discipline's state of a flow. With 32 bytes of it, a flow is one cache line.
template <class Extra>
class FlowSet {
 public:
  struct alignas(64) Flow : FlowQueue, Extra {};
  static_assert(sizeof(Flow) == 64);

  explicit FlowSet(Capacity capacity)
      : flows_(capacity.flows),
        params_(capacity.flows, FlowParams{.weight = 0}),
        pkts_(capacity.pkts),
        long_queue_(capacity.flows) {}

  Flow& operator[](uint32_t flow) { return flows_[flow]; }
  const Flow& operator[](uint32_t flow) const { return flows_[flow]; }
  [[nodiscard]] const FlowParams& params(uint32_t flow) const { return params_[flow]; }
  [[nodiscard]] bool has(uint32_t flow) const {
    return flow < flows_.size() && params_[flow].weight != 0;
  }
  [[nodiscard]] uint32_t size() const { return static_cast<uint32_t>(flows_.size()); }
  [[nodiscard]] uint64_t weight_sum() const { return weight_sum_; }
  [[nodiscard]] uint32_t backlog_pkts() const { return pkts_.size_pkts(); }
  void prefetch(uint32_t flow) const {
    if (flow < flows_.size()) __builtin_prefetch(&flows_[flow], 1);
  }

  // Checks whether a flow may have these parameters; changes nothing.
  [[nodiscard]] Configured check(uint32_t flow, const FlowParams& params) const {
    if (flow >= flows_.size()) return Configured::kBadFlow;
    if (const Configured range = check_range(params); range != Configured::kYes) return range;
    const uint64_t others = weight_sum_ - params_[flow].weight;
    return others + params.weight > kMaxWeightSum ? Configured::kWeightSum : Configured::kYes;
  }
  void set_params(uint32_t flow, const FlowParams& params) {
    weight_sum_ += params.weight;
    weight_sum_ -= params_[flow].weight;
    params_[flow] = params;
    flows_[flow].limit_pkts = params.limit_pkts;
  }
  void forget(uint32_t flow) { set_params(flow, {.weight = 0, .limit_pkts = 0}); }

  // Appends a packet to its flow.
  Enqueued push(const Descriptor& pkt) noexcept {
    Flow& flow = flows_[pkt.flow];
    if (flow.backlog_pkts >= flow.limit_pkts) [[unlikely]]
      return Enqueued::kFull;
    if (pkts_.is_nearly_full()) [[unlikely]]
      return push_where_full(flow, pkt);
    put(flow, pkt);
    return Enqueued::kYes;
  }
  // The packet dropped for the last packet accepted with kPushedOut.
  [[nodiscard]] const Descriptor& pushed_out() const { return pushed_out_; }
  // Removes the head of a backlogged flow; the packet behind it becomes the head.
  Descriptor pop(Flow& flow) noexcept {
    const Descriptor pkt = pkts_.pop(flow);
    --flow.backlog_pkts;
    return pkt;
  }

 private:
  void put(Flow& flow, const Descriptor& pkt) noexcept {
    pkts_.put(flow, flow.backlog_pkts == 0, pkt);
    ++flow.backlog_pkts;
  }
  // Push when the store is full or nearly full. The packet dropped is one behind a head, so the
  // order of flows is not affected.
  [[gnu::noinline]] Enqueued push_where_full(Flow& flow, const Descriptor& pkt) noexcept {
    const uint32_t at = long_queue_.find(
        pkt.flow, [this](uint32_t f) -> uint32_t { return flows_[f].backlog_pkts; });
    const bool is_full = pkts_.is_full();
    if (is_full) {
      Flow& longest = flows_[at];
      if (longest.backlog_pkts <= flow.backlog_pkts + 1) return Enqueued::kFull;
      pushed_out_ = pkts_.pop_behind(longest);
      pushed_out_.flow = at;
      --longest.backlog_pkts;
    }
    put(flow, pkt);
    return is_full ? Enqueued::kPushedOut : Enqueued::kYes;
  }

  std::vector<Flow> flows_;
  std::vector<FlowParams> params_;  // weight 0: no such flow
  PktStore pkts_;
  LongQueue long_queue_;
  Descriptor pushed_out_;
  uint64_t weight_sum_ = 0;
};

}  // namespace batchplane::egress
