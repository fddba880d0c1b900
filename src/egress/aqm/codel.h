// SPDX-License-Identifier: BSD-3-Clause
// codel.h - CoDel (RFC 8289): drops or marks packets when the sojourn time has stayed above a
// target for too long.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace batchplane::egress {

struct CodelParams {
  uint64_t target_ns = 5'000'000;
  uint64_t interval_ns = 100'000'000;

  bool operator==(const CodelParams&) const = default;
};

// State of a queue; discarded once the queue has been empty for a while.
struct CodelState {
  uint32_t drop_next_ticks = 0;
  uint32_t late_since_ticks = 0;
  uint16_t count = 0;       // drops in the present dropping state
  uint16_t last_count = 0;  // count when that state began
  bool is_late = false;
  bool is_dropping = false;
};

enum class Verdict : uint8_t { kSend, kDrop, kMark };

// Judges the next packet, given its sojourn time and the bytes behind it. Never drops if fewer
// bytes than one longest packet remain, so drops alone never empty a queue.
class Codel {
 public:
  Codel(CodelParams params, uint32_t lmax_bytes)
      : target_ns_(params.target_ns),
        interval_ticks_(static_cast<uint32_t>(params.interval_ns >> kTickShift)),
        lmax_bytes_(lmax_bytes) {}

  // `target_ns`: this queue's own target; counts if it is longer than the common one.
  Verdict judge(CodelState& state, uint64_t waited_ns, uint64_t target_ns, uint32_t bytes_left,
                uint64_t now_ns, bool can_mark) const noexcept {
    const auto now = static_cast<uint32_t>(now_ns >> kTickShift);
    const bool is_late = waited_ns >= std::max(target_ns, target_ns_) && bytes_left > lmax_bytes_;
    if (!is_late) {
      state.is_late = state.is_dropping = false;
      return Verdict::kSend;
    }
    if (!state.is_late) {
      state.is_late = true;
      state.late_since_ticks = now;
      return Verdict::kSend;
    }
    const bool is_due = state.is_dropping ? is_past(now, state.drop_next_ticks)
                                          : now - state.late_since_ticks >= interval_ticks_;
    if (!is_due) return Verdict::kSend;
    if (state.is_dropping) {
      state.count += state.count == UINT16_MAX ? 0 : 1;
      state.drop_next_ticks += step_ticks(state.count);
    } else {
      begin(state, now);
    }
    return can_mark ? Verdict::kMark : Verdict::kDrop;
  }

 private:
  static constexpr uint32_t kTickShift = 10;
  static constexpr uint32_t kSoonIntervals = 16;

  static bool is_past(uint32_t now, uint32_t at) { return static_cast<int32_t>(now - at) >= 0; }
  [[nodiscard]] uint32_t step_ticks(uint16_t count) const noexcept {
    return static_cast<uint32_t>(static_cast<float>(interval_ticks_) /
                                 std::sqrt(static_cast<float>(count)));
  }
  // If the last dropping state ended recently, it resumes at nearly the same drop rate.
  void begin(CodelState& state, uint32_t now) const noexcept {
    const auto before = static_cast<uint16_t>(state.count - state.last_count);
    const bool is_soon = now - state.drop_next_ticks < kSoonIntervals * interval_ticks_;
    state.is_dropping = true;
    state.count = before > 1 && is_soon ? before : uint16_t{1};
    state.last_count = state.count;
    state.drop_next_ticks = now + step_ticks(state.count);
  }

  uint64_t target_ns_;
  uint32_t interval_ticks_;
  uint32_t lmax_bytes_;
};

}  // namespace batchplane::egress
