// SPDX-License-Identifier: BSD-3-Clause
// napt_timers.h - connection states and expiry: a timer wheel, and a list of transitory connections
// by age.
//
// A packet only records its arrival time. A connection that comes up on the wheel but was used in
// the meantime is rescheduled.
#pragma once

#include <array>

#include "modules/common/tally.h"
#include "modules/nat/napt_index.h"
#include "modules/nat/napt_session.h"

namespace batchplane::nat {

struct NaptStateRule {
  uint32_t limit = 2;   // expires after this many ticks without a packet
  uint8_t refresh = 3;  // bit per direction: packets that refresh the timer
  uint8_t quiet = 0;    // bit per direction: once set in `seen`, further packets change nothing
};
using NaptStateRules = std::array<NaptStateRule, kNaptStates>;

// Owner: the worker.
class NaptTimers {
 public:
  NaptTimers(BigArray<NaptSession>& sessions, const NaptStateRules& rules);

  void set_rules(const NaptStateRules& rules) { rules_ = rules; }
  [[nodiscard]] const NaptStateRules& rules() const { return rules_; }
  [[nodiscard]] const Tally& count(NaptState state) const {
    return counts_[static_cast<uint32_t>(state)];
  }

  void start(uint32_t index, NaptState state, uint32_t now) noexcept;
  void stop(uint32_t index) noexcept;
  void change(uint32_t index, NaptState state, uint32_t now) noexcept;
  [[nodiscard]] bool is_expired(const NaptSession& session, uint32_t now) const noexcept {
    return now - session.last_seen >= rules_[static_cast<uint32_t>(session.state)].limit;
  }
  // The connection that has been transitory for longest; 0 if there is none.
  [[nodiscard]] uint32_t oldest_transitory() const noexcept { return sessions_[0].age_next; }

  // Updates timer and state of a packet's connection.
  void track(uint32_t index, uint32_t direction, uint8_t tcp_flags, uint32_t now) noexcept;

  // Advances the wheel to `now` and calls `end(index)` for each expired connection. Processes at
  // most about `max_steps` connections and groups of empty slots; the next call continues.
  template <class EndIt>
  void turn(uint32_t now, uint64_t max_steps, EndIt end) noexcept {
    if (now - hand_ > kSlots) hand_ = now - kSlots;
    for (uint64_t steps = 0; hand_ != now && steps < 16 * max_steps; ++steps) {
      const uint32_t index = slots_[(hand_ + 1) % kSlots];
      if (index == 0) {
        ++hand_;
        continue;
      }
      steps += 15;
      if (is_expired(sessions_[index], now)) {
        end(index);
      } else {
        unlink_timer(index);
        link_timer(index, now);
      }
    }
  }

 private:
  static constexpr uint32_t kSlots =
      1U << 15;  // 2 h 26 min; longer timeouts are rescheduled on the way
  static constexpr uint32_t kIsHead = 1U << 31;

  void link_timer(uint32_t index, uint32_t now) noexcept;
  void unlink_timer(uint32_t index) noexcept;
  void link_age(uint32_t index) noexcept;
  void unlink_age(uint32_t index) noexcept;
  void track_tcp(uint32_t index, uint32_t direction, uint8_t tcp_flags, uint32_t now) noexcept;

  BigArray<NaptSession>& sessions_;  // [0] is the anchor of the age list
  NaptStateRules rules_;
  BigArray<uint32_t> slots_{kSlots};  // first connection in each slot
  uint32_t hand_ = 0;                 // last tick processed
  std::array<Tally, kNaptStates> counts_;
};

}  // namespace batchplane::nat
