// SPDX-License-Identifier: BSD-3-Clause
// prio.h - strict priority: 64 levels, highest first; flows of one level take turns.
#pragma once

#include <array>
#include <bit>

#include "egress/discipline/scheduled.h"

namespace batchplane::egress {

struct PrioFlow {
  uint32_t next = kNone;
  uint32_t before = kNone;
  uint16_t lmax_bytes = 0;
  uint8_t level = 0;
};

// A flow's weight is its level, 1..64; larger weights count as 64. A level that is always
// backlogged starves those below it, so limit the traffic of the upper levels.
class Prio : public Scheduled<Prio, PrioFlow> {
 public:
  static constexpr uint32_t kLevels = 64;

  explicit Prio(Capacity capacity) : Scheduled(capacity) {}

  bool dequeue(Descriptor& out) noexcept {
    if (levels_ == 0) return false;
    Ring& ring = rings_[static_cast<uint32_t>(std::countr_zero(levels_))];
    const uint32_t at = ring.first();
    auto& flow = flows_[at];
    out = flows_.pop(flow);
    out.flow = at;
    if (flow.backlog_pkts == 0) {
      leave(at);
    } else {
      ring.rotate(flows_);
      flows_.prefetch(ring.first());
    }
    return true;
  }

 private:
  friend Scheduled<Prio, PrioFlow>;
  using Ring = FlowRing<Flows>;

  void fit(uint32_t flow) {
    fit_lmax(flow);
    const uint32_t weight = std::clamp(flows_.params(flow).weight, 1U, kLevels);
    flows_[flow].level = static_cast<uint8_t>(kLevels - weight);
  }
  void join(uint32_t flow) noexcept {
    const uint32_t level = flows_[flow].level;
    rings_[level].append(flows_, flow);
    levels_ |= 1ULL << level;
  }
  void leave(uint32_t flow) noexcept {
    const uint32_t level = flows_[flow].level;
    rings_[level].erase(flows_, flow);
    if (rings_[level].is_empty()) levels_ &= ~(1ULL << level);
  }

  std::array<Ring, kLevels> rings_;
  uint64_t levels_ = 0;  // bit k: level k, 0 the highest, has flows
};
static_assert(Discipline<Prio>);

}  // namespace batchplane::egress
