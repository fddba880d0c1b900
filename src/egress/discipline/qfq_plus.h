// SPDX-License-Identifier: BSD-3-Clause
// qfq_plus.h - QFQ+: aggregates of equal flows in QFQ's order, round robin within each.
//
// Most packets are served without touching QFQ's groups, at the price of a bound that is one
// longest packet of the flow worse. (P. Valente: Reducing the execution time of fair-queueing
// packet schedulers.) Here an aggregate counts only its *backlogged* flows, so if one of eight
// flows has packets, it gets one share, not eight.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "egress/discipline/qfq_groups.h"
#include "egress/discipline/scheduled.h"

namespace batchplane::egress {

struct QfqPlusFlow {
  uint32_t next = kNone;  // backlogged flows of its aggregate
  uint32_t before = kNone;
  uint32_t credit_bytes = 0;
  uint32_t aggregate = kNone;
  uint16_t lmax_bytes = 0;
};

class QfqPlus : public Scheduled<QfqPlus, QfqPlusFlow> {
 public:
  static constexpr uint32_t kMaxFlowsOfAggregate = 8;

  explicit QfqPlus(Capacity capacity, uint64_t virtual_time = 0)
      : Scheduled(capacity),
        groups_(virtual_time),
        aggregates_(capacity.flows),
        likeness_(capacity.flows) {
    kinds_.reserve(capacity.flows + 1);
    for (Aggregate& aggregate : aggregates_.all) aggregate.finish = virtual_time;
    unused_.reserve(capacity.flows);
    for (uint32_t id = capacity.flows; id-- > 0;) unused_.push_back(id);
  }

  bool dequeue(Descriptor& out) noexcept {
    for (;;) {
      if (in_service_ == kNone) {
        in_service_ = groups_.first();
        if (in_service_ == QfqTimes::kNobody) return false;
        groups_.erase_first(aggregates_, in_service_);
        groups_.prefetch_first(aggregates_);
        has_served_ = false;
      }
      Aggregate& aggregate = aggregates_[in_service_];
      const uint32_t at = turn_of(aggregate);
      const uint64_t cost = flows_[at].head.len_bytes() * aggregate.inverse_share;
      // A packet enqueued before its flow's lmax was lowered may not fit at all.
      if (!has_served_ || !is_later(aggregate.start + cost, aggregate.finish)) {
        has_served_ = true;
        serve(aggregate, at, cost, out);
        return true;
      }
      aggregate.finish = aggregate.start + aggregate.longest;
      groups_.insert(aggregates_, in_service_);
      in_service_ = kNone;
    }
  }

 private:
  friend Scheduled<QfqPlus, QfqPlusFlow>;

  struct alignas(64) Aggregate : QfqTimes {
    FlowRing<Flows> backlogged;
    uint16_t n_flows = 0;
    uint16_t n_backlogged = 0;
    uint64_t longest = 0;             // of one packet of one flow, in virtual time
    uint64_t inverse_share = 0;       // of the weights of the backlogged flows
    uint32_t next_with_room = kNone;  // of its kind
    uint32_t before_with_room = kNone;
  };
  struct Aggregates {
    explicit Aggregates(uint32_t n) : all(n) {}
    Aggregate& operator[](uint32_t id) { return all[id]; }
    void prefetch(uint32_t id) const { __builtin_prefetch(&all[id], 1); }
    std::vector<Aggregate> all;
  };
  // Flows with equal weight and lmax_bytes, and an aggregate of them with room for more.
  struct Kind {
    uint64_t likeness = 0;  // weight << 32 | lmax_bytes
    uint32_t with_room = kNone;
  };

  // The flow whose turn it is: deficit round robin with the longest packet as quantum.
  uint32_t turn_of(Aggregate& aggregate) noexcept {
    uint32_t at = aggregate.backlogged.first();
    while (flows_[at].head.len_bytes() > flows_[at].credit_bytes) {
      const uint32_t lmax_bytes = flows_[at].lmax_bytes;
      flows_[at].credit_bytes += std::max(lmax_bytes, flows_[at].head.len_bytes());
      aggregate.backlogged.rotate(flows_);
      at = aggregate.backlogged.first();
    }
    return at;
  }
  void serve(Aggregate& aggregate, uint32_t at, uint64_t cost, Descriptor& out) noexcept {
    auto& flow = flows_[at];
    out = flows_.pop(flow);
    out.flow = at;
    flow.credit_bytes -= out.len_bytes();
    aggregate.start += cost;
    groups_.advance(out.len_bytes());
    if (flow.backlog_pkts != 0) return;
    drop_from_ring(aggregate, at);
    if (aggregate.n_backlogged != 0) return;
    aggregate.finish = aggregate.start;
    in_service_ = kNone;
  }
  void share_out(Aggregate& aggregate, int32_t change) noexcept {
    aggregate.n_backlogged = static_cast<uint16_t>(aggregate.n_backlogged + change);
    const uint64_t n = aggregate.n_backlogged;
    if (n > 1) {
      aggregate.inverse_share = (aggregate.inverse_weight + n / 2) / n;
    } else {
      aggregate.inverse_share = aggregate.inverse_weight;
    }
  }
  void drop_from_ring(Aggregate& aggregate, uint32_t flow) noexcept {
    aggregate.backlogged.erase(flows_, flow);
    share_out(aggregate, -1);
  }

  void fit(uint32_t flow) {
    fit_lmax(flow);
    if (flows_[flow].aggregate != kNone) give_up(flow);
    const FlowParams& params = flows_.params(flow);
    groups_.set_weight_sum(flows_.weight_sum());
    if (params.weight != 0) {
      take_up(flow, uint64_t{params.weight} << 32 | params.lmax_bytes);
    }
  }
  void take_up(uint32_t flow, uint64_t likeness) {
    Kind& kind = *kind_of(likeness);
    if (kind.with_room == kNone) {
      kind.with_room = unused_.back();
      unused_.pop_back();
      Aggregate& made = aggregates_[kind.with_room];
      made.next_with_room = made.before_with_room = kNone;
      const uint64_t inverse = inverse_of_weight(likeness >> 32);
      const auto lmax_bytes = static_cast<uint32_t>(likeness);
      made.longest = std::max(lmax_bytes, kMinLmaxBytes) * inverse;
      made.set_rate(inverse, QfqGroups<Aggregates>::group_of(made.longest));
    }
    const uint32_t id = kind.with_room;
    flows_[flow].aggregate = id;
    likeness_[flow] = likeness;
    if (++aggregates_[id].n_flows == kMaxFlowsOfAggregate) unlink_room(kind, id);
  }
  void give_up(uint32_t flow) {
    const uint32_t id = std::exchange(flows_[flow].aggregate, kNone);
    const auto at = kind_of(likeness_[flow]);
    Aggregate& aggregate = aggregates_[id];
    if (aggregate.n_flows-- == kMaxFlowsOfAggregate) link_room(*at, id);
    if (aggregate.n_flows != 0) return;
    unlink_room(*at, id);
    unused_.push_back(id);
    if (at->with_room == kNone) kinds_.erase(at);
  }

  // The kind with this likeness, inserted if missing.
  std::vector<Kind>::iterator kind_of(uint64_t likeness) {
    const auto at = std::ranges::lower_bound(kinds_, likeness, {}, &Kind::likeness);
    if (at != kinds_.end() && at->likeness == likeness) return at;
    return kinds_.insert(at, {likeness, kNone});
  }
  void link_room(Kind& kind, uint32_t id) {
    Aggregate& aggregate = aggregates_[id];
    aggregate.before_with_room = kNone;
    aggregate.next_with_room = kind.with_room;
    if (kind.with_room != kNone) aggregates_[kind.with_room].before_with_room = id;
    kind.with_room = id;
  }
  void unlink_room(Kind& kind, uint32_t id) {
    const Aggregate& aggregate = aggregates_[id];
    if (aggregate.before_with_room == kNone) {
      kind.with_room = aggregate.next_with_room;
    } else {
      aggregates_[aggregate.before_with_room].next_with_room = aggregate.next_with_room;
    }
    if (aggregate.next_with_room != kNone) {
      aggregates_[aggregate.next_with_room].before_with_room = aggregate.before_with_room;
    }
  }

  void join(uint32_t at) noexcept {
    auto& flow = flows_[at];
    flow.credit_bytes = flow.lmax_bytes;
    Aggregate& aggregate = aggregates_[flow.aggregate];
    aggregate.backlogged.append(flows_, at);
    share_out(aggregate, 1);
    if (aggregate.n_backlogged != 1) return;
    aggregate.start = groups_.start_of_idle(aggregate);
    aggregate.finish = aggregate.start + aggregate.longest;
    groups_.insert(aggregates_, flow.aggregate);
  }
  void leave(uint32_t at) noexcept {
    const uint32_t id = flows_[at].aggregate;
    Aggregate& aggregate = aggregates_[id];
    drop_from_ring(aggregate, at);
    if (aggregate.n_backlogged != 0) return;
    if (in_service_ == id) {
      in_service_ = kNone;
    } else {
      groups_.erase(aggregates_, id);
    }
    aggregate.finish = aggregate.start;
  }

  QfqGroups<Aggregates> groups_;
  Aggregates aggregates_;
  uint32_t in_service_ = kNone;  // not in the groups
  bool has_served_ = false;      // the aggregate in service has sent a packet
  // All three are reserved for every flow, so changes under load do not allocate.
  std::vector<Kind> kinds_;         // by likeness
  std::vector<uint64_t> likeness_;  // by flow
  std::vector<uint32_t> unused_;    // aggregates
};
static_assert(Discipline<QfqPlus>);

}  // namespace batchplane::egress
