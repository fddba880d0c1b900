// SPDX-License-Identifier: BSD-3-Clause
// arbiter.h - one round of a scheduler: take all that clients have put, then release at link rate.
//
// Taking everything first makes weights hold even when the scheduler, not the link, is the
// bottleneck, because there is a backlog to choose from (PSPAT). Time is an argument: the engine,
// the simulator and tests run the same code.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "egress/discipline/discipline.h"
#include "egress/discipline/link.h"

namespace batchplane::egress {

struct ArbiterCounts {
  uint64_t taken_pkts = 0;
  uint64_t released_pkts = 0;
  uint64_t released_bytes = 0;
  std::array<uint64_t, kEnqueued> refused_pkts{};  // by Enqueued
};

// Owner: one thread at a time.
template <PacketOrder D>
class Arbiter {
 public:
  Arbiter(D discipline, Link link) : discipline_(std::move(discipline)), link_(link) {}

  D& discipline() { return discipline_; }
  [[nodiscard]] const D& discipline() const { return discipline_; }
  Link& link() { return link_; }
  [[nodiscard]] const Link& link() const { return link_; }
  [[nodiscard]] const ArbiterCounts& counts() const { return counts_; }

  // For timed orders: packets are taken and released at this time until the next call.
  void begin_round(uint64_t now_ns) {
    if constexpr (TimedOrder<D>) discipline_.advance(now_ns);
  }
  // Takes what a mailbox holds, up to a limit, so that a client that keeps putting packets cannot
  // occupy the arbiter. refuse(pkt, why) receives packets that the discipline refuses or pushes
  // out. Returns the number taken.
  template <class Mailbox, class Refuse>
  uint32_t take_from(Mailbox& mailbox, uint32_t limit_pkts, Refuse&& refuse) {
    uint32_t taken = 0;
    Descriptor pkts[kAtOnce];
    while (taken < limit_pkts) {
      const uint32_t n = mailbox.take(pkts, std::min(kAtOnce, limit_pkts - taken));
      if (n == 0) break;
      put_in(pkts, n, refuse);
      taken += n;
    }
    if (taken != 0) mailbox.clear();
    return taken;
  }
  // The same for packets that do not come from a mailbox.
  template <class Refuse>
  void put_in(const Descriptor* pkts, uint32_t n, Refuse&& refuse) {
    for (uint32_t i = 0; i < n; ++i) discipline_.prefetch(pkts[i].flow);
    if constexpr (TimedOrder<D>) {
      for (uint32_t i = 0; i < n; ++i) discipline_.prefetch_path(pkts[i].flow);
    }
    for (uint32_t i = 0; i < n; ++i) {
      const Enqueued done = discipline_.enqueue(pkts[i]);
      if (done == Enqueued::kYes) [[likely]]
        continue;
      ++counts_.refused_pkts[static_cast<size_t>(done)];
      refuse(given_back(pkts[i], done), done);
    }
    counts_.taken_pkts += n;
  }

  // Calls deliver(pkt) for the packets that the link can send by now, at most `limit_pkts`. Returns
  // their number.
  template <class Deliver>
  uint32_t release(uint64_t now_ns, uint32_t limit_pkts, Deliver&& deliver) {
    // Nothing waited since the last round, so packets that arrived since then begin now, no
    // earlier.
    if (is_idle_) {
      link_.idle_until(now_ns);
    } else {
      link_.lag_until(now_ns);
    }
    uint32_t n = 0;
    Descriptor pkt;
    bool has_run_dry = false;
    while (n < limit_pkts && link_.is_free(now_ns)) {
      if (!discipline_.dequeue(pkt)) {
        has_run_dry = true;
        break;
      }
      const uint32_t len_bytes = pkt.len_bytes();
      link_.carry(len_bytes);
      counts_.released_bytes += len_bytes;
      deliver(pkt);
      ++n;
    }
    counts_.released_pkts += n;
    is_idle_ = has_run_dry || discipline_.backlog_pkts() == 0;
    return n;
  }
  // Passes packets dropped by queues since the last call to refuse(pkt, kShed).
  template <class Refuse>
  void take_shed(Refuse&& refuse) {
    if constexpr (requires(D d) { d.shed(); }) {
      auto& shed = discipline_.shed();
      counts_.refused_pkts[static_cast<size_t>(Enqueued::kShed)] += shed.n;
      for (uint32_t i = 0; i < shed.n; ++i) refuse(shed.all[i], Enqueued::kShed);
      shed.n = 0;
    }
  }
  // The next packet regardless of link and rates; false if there is none.
  bool drain(Descriptor& pkt) noexcept {
    if constexpr (TimedOrder<D>) return discipline_.drain(pkt);
    return discipline_.dequeue(pkt);
  }

 private:
  static constexpr uint32_t kAtOnce = 32;

  [[nodiscard]] const Descriptor& given_back(const Descriptor& pkt, Enqueued done) const noexcept {
    if constexpr (requires(const D d) { d.pushed_out(); }) {
      if (done == Enqueued::kPushedOut) return discipline_.pushed_out();
    }
    return pkt;
  }

  D discipline_;
  Link link_;
  ArbiterCounts counts_;
  bool is_idle_ = true;
};

}  // namespace batchplane::egress
