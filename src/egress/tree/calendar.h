// SPDX-License-Identifier: BSD-3-Clause
// calendar.h - packets leave at times of their own: so long after they came as their flow says. What paths far
// away do to packets, and what spaces them out.
//
// Order within a flow holds; among flows whose packets are due at once, first come, first served.
#pragma once

#include <algorithm>

#include "base/rng.h"
#include "egress/discipline/scheduled.h"
#include "egress/tree/time_wheel.h"

namespace batchplane::egress {

struct CalendarFlow {
  uint64_t due_ns = 0;  // of the first packet
  WheelLink wheel;
  uint32_t next = kNone;  // of flows whose first packet is due
  uint32_t before = kNone;
  uint16_t lmax_bytes = 0;
};

class Calendar : public Scheduled<Calendar, CalendarFlow> {
 public:
  explicit Calendar(Capacity capacity) : Scheduled(capacity) {}

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
  // Whether due or not.
  bool drain(Descriptor& out) noexcept {
    if (backlog_pkts() == 0) return false;
    while (flows_[drained_].backlog_pkts == 0) drained_ = (drained_ + 1) % flows_.size();
    take(drained_, out);
    return true;
  }
  void prefetch_path(uint32_t /*flow*/) const noexcept {}
  // When dequeue() may find something, or a little earlier.
  [[nodiscard]] uint64_t next_ready_ns() noexcept {
    if (!due_.is_empty()) return now_ns_;
    Waiting waiting{flows_};
    return wheel_.next_due_ns(waiting);
  }

 private:
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
    if (flow.backlog_pkts != 0) join(at);
  }
  void fit(uint32_t flow) { fit_lmax(flow); }
  void join(uint32_t at) noexcept {
    auto& flow = flows_[at];
    const FlowParams& params = flows_.params(at);
    const uint64_t came_ns = flow.head.entry_ns(now_ns_);
    const uint64_t jitter_ns =
        params.jitter_us == 0 ? 0 : uint64_t{rng_.below(params.jitter_us)} * 1000;
    flow.due_ns = std::max(flow.due_ns, came_ns + uint64_t{params.delay_us} * 1000 + jitter_ns);
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

  FlowRing<Flows> due_;
  TimeWheel<Waiting> wheel_;
  Rng rng_{1};
  uint64_t now_ns_ = 0;
  uint32_t drained_ = 0;
};
static_assert(Discipline<Calendar> && TimedOrder<Calendar>);

}  // namespace batchplane::egress
