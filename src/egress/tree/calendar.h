// SPDX-License-Identifier: BSD-3-Clause
// calendar.h - a calendar queue: each packet leaves a given delay after its arrival, or after its
// departure time if it has one, and no faster than its flow's rate. Emulates long paths and paces
// senders.
//
// Keeps order within a flow. Flows whose packets are due at the same time go first come, first
// served.
#pragma once

#include <algorithm>
#include <vector>

#include "base/rng.h"
#include "egress/discipline/pace.h"
#include "egress/discipline/scheduled.h"
#include "egress/tree/time_wheel.h"

namespace batchplane::egress {

struct CalendarFlow {
  uint64_t due_ns = 0;  // of the first packet
  WheelLink wheel;
  uint32_t next = kNone;  // list of flows whose first packet is due
  uint32_t before = kNone;
  uint16_t lmax_bytes = 0;
};

class Calendar : public Scheduled<Calendar, CalendarFlow> {
 public:
  explicit Calendar(Capacity capacity) : Scheduled(capacity), paces_(capacity.flows) {}

  void advance(uint64_t now_ns) noexcept {
    now_ns_ = std::max(now_ns_, now_ns);
    Waiting waiting{flows_};
    wheel_.advance(waiting, now_ns_, [this](uint32_t flow) { due_.append(flows_, flow); });
  }
  bool dequeue(Descriptor& out) noexcept {
    if (due_.is_empty()) return false;
    take(due_.first(), out);
    return true;
  }
  // Returns packets whether due or not.
  bool drain(Descriptor& out) noexcept {
    if (backlog_pkts() == 0) return false;
    while (flows_[drained_].backlog_pkts == 0) drained_ = (drained_ + 1) % flows_.size();
    take(drained_, out);
    return true;
  }
  void prefetch_path(uint32_t /*flow*/) const noexcept {}
  // When dequeue() may find a packet, or slightly earlier.
  [[nodiscard]] uint64_t next_ready_ns() noexcept {
    if (!due_.is_empty()) return now_ns_;
    Waiting waiting{flows_};
    return wheel_.next_due_ns(waiting);
  }

 private:
  static constexpr uint64_t kMostAheadNs = 1'000'000'000;  // allowed lead of other workers' clocks
  friend Scheduled<Calendar, CalendarFlow>;
  struct Waiting {
    Flows& flows;
    Flows::Flow& operator[](uint32_t flow) const { return flows[flow]; }
    [[nodiscard]] uint64_t due_ns(uint32_t flow) const { return flows[flow].due_ns; }
  };

  void take(uint32_t at, Descriptor& out) noexcept {
    auto& flow = flows_[at];
    leave(at);
    out = flows_.pop(flow);
    out.flow = at;
    // A late packet does not delay the next one.
    if (flows_.params(at).pace_bps != 0) {
      Pace& pace = paces_[at];
      if (flow.due_ns > pace.paid_at_ns()) pace.forget_before(flow.due_ns);
      pace.charge(out.len_bytes());
    }
    if (flow.backlog_pkts == 0) return;
    // The packet behind it arrived before now.
    make_due(at, flow.head.has_departure() ? since_ns(at) : std::min(since_ns(at), now_ns_));
  }
  void fit(uint32_t flow) {
    fit_lmax(flow);
    paces_[flow].set_rate_bps(flows_.params(flow).pace_bps, now_ns_);
  }
  // The departure time of the flow's first packet, or its arrival. One that seems farther ahead than
  // it can be passed so long ago that it wrapped. What is held up for nearly the 68 s of a wrap
  // after its departure may seem to lie ahead, and leaves up to 11 s later.
  [[nodiscard]] uint64_t since_ns(uint32_t at) const noexcept {
    const Descriptor& head = flows_[at].head;
    const uint64_t ns = head.entry_ns(now_ns_);
    const uint64_t most_ahead_ns = kMostAheadNs + (head.has_departure() ? kMaxDepartureAheadNs : 0);
    return ns > now_ns_ + most_ahead_ns ? 0 : ns;
  }
  void join(uint32_t at) noexcept { make_due(at, since_ns(at)); }
  void make_due(uint32_t at, uint64_t from_ns) noexcept {
    auto& flow = flows_[at];
    const FlowParams& params = flows_.params(at);
    const uint64_t jitter_ns =
        params.jitter_us == 0 ? 0 : uint64_t{rng_.below(params.jitter_us)} * 1000;
    flow.due_ns = std::max(flow.due_ns, from_ns + uint64_t{params.delay_us} * 1000 + jitter_ns);
    if (params.pace_bps != 0) flow.due_ns = std::max(flow.due_ns, paces_[at].paid_at_ns());
    if (flow.due_ns <= now_ns_) {
      due_.append(flows_, at);
      return;
    }
    Waiting waiting{flows_};
    wheel_.put(waiting, at);
  }
  void leave(uint32_t at) noexcept {
    if (flows_[at].wheel.slot == kNone) {
      due_.erase(flows_, at);
      return;
    }
    Waiting waiting{flows_};
    wheel_.take_out(waiting, at);
  }

  std::vector<Pace> paces_;  // by flow
  FlowRing<Flows> due_;
  TimeWheel<Waiting> wheel_;
  Rng rng_{1};
  uint64_t now_ns_ = 0;
  uint32_t drained_ = 0;
};
static_assert(Discipline<Calendar> && TimedOrder<Calendar>);

}  // namespace batchplane::egress
