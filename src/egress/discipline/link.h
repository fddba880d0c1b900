// SPDX-License-Identifier: BSD-3-Clause
// link.h - when a link of a given rate is free: a leaky bucket without credit.
#pragma once

#include <algorithm>
#include <cstdint>

#include "egress/discipline/framing.h"
#include "egress/discipline/pace.h"

namespace batchplane::egress {

// Works like a Pace, but is not one: in the arbiter's loop a Pace would cost a tenth of the
// throughput.
class Link {
 public:
  static constexpr uint64_t kMinRateBps = 8'000;
  static constexpr uint64_t kMaxRateBps = kMaxPaceBps;
  // Longer than a round of a busy worker, so such rounds cost no throughput; after a longer stall
  // no burst is sent.
  static constexpr uint64_t kMaxLagNs = 200'000;

  // `rate_bps` 0: no limit.
  explicit Link(uint64_t rate_bps = 0, Framing framing = {}) : framing_(framing) {
    set_rate_bps(rate_bps);
  }

  // The packet in transmission keeps its old duration.
  void set_rate_bps(uint64_t rate_bps) {
    if (rate_bps == 0) {
      units_per_byte_ = 0;
      return;
    }
    units_per_byte_ = time_units_per_byte(std::clamp(rate_bps, kMinRateBps, kMaxRateBps));
  }

  [[nodiscard]] bool is_free(uint64_t now_ns) const {
    return free_at_ns_ < now_ns || (free_at_ns_ == now_ns && part_ == 0);
  }
  // The time from which is_free() holds.
  [[nodiscard]] uint64_t free_at_ns() const { return free_at_ns_ + (part_ != 0 ? 1 : 0); }

  // A packet begins when the link becomes free, or now if the link was idle, which earns it no
  // credit.
  void carry(uint32_t len_bytes) {
    if (units_per_byte_ == 0) return;
    const uint64_t units = part_ + framing_.wire_bytes(len_bytes) * units_per_byte_;
    free_at_ns_ += units >> kTimeUnitShift;
    part_ = units & ((1ULL << kTimeUnitShift) - 1);
  }
  void idle_until(uint64_t now_ns) {
    if (is_free(now_ns)) begin_at(now_ns);
  }
  // The link was free with packets waiting, but the worker did not release them: that time is lost
  // except for kMaxLagNs.
  void lag_until(uint64_t now_ns) {
    if (free_at_ns_ + kMaxLagNs < now_ns) begin_at(now_ns - kMaxLagNs);
  }

 private:
  void begin_at(uint64_t at_ns) {
    free_at_ns_ = at_ns;
    part_ = 0;
  }

  uint64_t units_per_byte_ = 0;
  uint64_t free_at_ns_ = 0;
  uint64_t part_ = 0;  // of a nanosecond
  Framing framing_;
};

}  // namespace batchplane::egress
