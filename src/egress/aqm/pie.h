// SPDX-License-Identifier: BSD-3-Clause
// pie.h - PIE (RFC 8033): drops or marks packets with a probability that a controller adjusts to
// keep the queueing delay near a target.
//
// Unlike the RFC, it judges packets when they leave, not when they arrive. Their delay is then
// known instead of estimated, and a dropped packet leaves its turn to the next one.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/rng.h"
#include "egress/aqm/codel.h"

namespace batchplane::egress {

inline constexpr uint64_t kPieTargetNs = 15'000'000;

// State of a queue; discarded once the queue is empty.
struct PieState {
  float probability = 0;
  float sum = 0;               // of probabilities since the last drop
  uint32_t updated_ticks = 0;  // 0: not yet
  uint16_t before_us16 = 0;    // delay at the last update, in steps of 16 us
  uint16_t burst_ms = 150;     // remaining time without drops
};

class Pie {
 public:
  Pie(uint64_t target_ns, uint32_t lmax_bytes) : target_ns_(target_ns), lmax_bytes_(lmax_bytes) {}

  // As Codel::judge().
  Verdict judge(PieState& state, uint64_t waited_ns, uint64_t target_ns, uint32_t bytes_left,
                uint64_t now_ns, bool can_mark) noexcept {
    target_ns = std::max(target_ns, target_ns_);
    update(state, seconds(waited_ns), seconds(target_ns), now_ns);
    const bool is_calm = before_s(state) < seconds(target_ns) / 2 && state.probability < 0.2F;
    if (state.burst_ms != 0 || is_calm || bytes_left <= 2 * lmax_bytes_) return Verdict::kSend;
    if (!is_hit(state)) return Verdict::kSend;
    state.sum = 0;
    return can_mark && state.probability <= kMostToMark ? Verdict::kMark : Verdict::kDrop;
  }

 private:
  static constexpr uint32_t kTickShift = 10;
  static constexpr uint32_t kUpdateMs = 15;
  static constexpr uint32_t kUpdateTicks = kUpdateMs * 1'000'000 >> kTickShift;
  static constexpr uint32_t kMostUpdatesAtOnce = 32;
  static constexpr uint16_t kBurstMs = 150;
  static constexpr float kAlpha = 0.125F;  // per second of delay above the target
  static constexpr float kBeta = 1.25F;    // per second of increase since the last update
  static constexpr float kMostToMark = 0.1F;
  static constexpr float kMostStep = 0.02F;  // limits the step once the probability is large
  static constexpr float kLongDelayS = 0.25F;
  static constexpr float kMostDelayS = 1.0F;  // longer delays count as this

  static float seconds(uint64_t ns) { return static_cast<float>(ns) * 1e-9F; }
  static float before_s(const PieState& state) {
    return static_cast<float>(state.before_us16) * 16e-6F;
  }

  // Derandomised: no two drops in a row while the probability is low, and no long gap without one.
  bool is_hit(PieState& state) noexcept {
    state.sum += state.probability;
    if (state.sum < 0.85F) return false;
    return state.sum >= 8.5F || rng_.uniform() < static_cast<double>(state.probability);
  }
  static void update(PieState& state, float delay_s, float target_s, uint64_t now_ns) noexcept {
    const auto now = static_cast<uint32_t>(now_ns >> kTickShift);
    if (state.updated_ticks == 0) state.updated_ticks = now - kUpdateTicks;
    for (uint32_t n = 0; now - state.updated_ticks >= kUpdateTicks; ++n) {
      state.updated_ticks += kUpdateTicks;
      if (n == kMostUpdatesAtOnce) state.updated_ticks = now;
      step(state, delay_s, target_s);
    }
  }
  static void step(PieState& state, float delay_s, float target_s) noexcept {
    delay_s = std::min(delay_s, kMostDelayS);
    float step = kAlpha * (delay_s - target_s) + kBeta * (delay_s - before_s(state));
    step /= caution(state.probability);
    if (state.probability >= 0.1F) step = std::min(step, kMostStep);
    if (delay_s > kLongDelayS) step += kMostStep;
    state.probability = std::clamp(state.probability + step, 0.0F, 1.0F);
    const bool was_short = before_s(state) < target_s / 2;
    state.before_us16 = static_cast<uint16_t>(delay_s * 62'500.0F + 0.5F);
    if (state.probability == 0) state.sum = 0;
    state.burst_ms -= std::min<uint16_t>(state.burst_ms, kUpdateMs);
    if (state.probability == 0 && was_short && delay_s < target_s / 2) state.burst_ms = kBurstMs;
  }
  // Small probabilities change in small steps.
  static float caution(float probability) noexcept {
    if (probability >= 0.1F) return 1;
    if (probability >= 0.01F) return 2;
    if (probability >= 1e-3F) return 8;
    if (probability >= 1e-4F) return 32;
    if (probability >= 1e-5F) return 128;
    return probability >= 1e-6F ? 512 : 2048;
  }

  uint64_t target_ns_;
  uint32_t lmax_bytes_;
  Rng rng_{1};
};

}  // namespace batchplane::egress
