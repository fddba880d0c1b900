// SPDX-License-Identifier: BSD-3-Clause
// arrivals.h - arrival schedules in virtual time: constant, Poisson or on-off.
//
// Shared by the traffic generator and the simulator. The due time of each arrival depends only on the
// parameters and the seed, never on when it is asked for.
#pragma once

#include <algorithm>
#include <cstdint>

#include "exec/batch.h"

namespace batchplane::exec {

// A generator enqueues at most this many packets at a time.
inline constexpr uint32_t kGeneratorBurstPkts = 32;

enum class ArrivalKind : uint8_t { kConstant, kPoisson, kOnOff };

struct ArrivalSpec {
  ArrivalKind kind = ArrivalKind::kConstant;
  double rate_per_s = 0;       // mean over on and off phases; 0 = nothing arrives
  uint64_t on_ns = 1'000'000;  // on-off: constant spacing within `on`, nothing within `off`
  uint64_t off_ns = 1'000'000;
};

// Random supplies exponential(mean). Owner: one thread.
template <class Random>
class Arrivals {
 public:
  Arrivals(const ArrivalSpec& spec, Random random)
      : spec_(spec), random_(random), mean_gap_ns_(mean_gap_ns()) {}

  // Starts the schedule now: the first constant arrival is due at once, the first Poisson arrival after a
  // gap, and an on-off source begins with its `on` phase.
  void start(uint64_t now_ns) {
    start_ns_ = now_ns;
    active_ns_ = 0;
    fraction_ns_ = 0;
    if (spec_.kind == ArrivalKind::kPoisson && spec_.rate_per_s > 0) step();
    due_ns_ = spec_.rate_per_s > 0 ? real_time_ns() : kNeverNs;
  }

  [[nodiscard]] uint64_t due_ns() const { return due_ns_; }

  // Moves on to the next arrival.
  void advance() {
    if (due_ns_ == kNeverNs) return;
    step();
    due_ns_ = real_time_ns();
  }

  // Takes effect at the next arrival, or at once if that makes the next arrival earlier.
  void set_rate(double rate_per_s, uint64_t now_ns) {
    if (rate_per_s == spec_.rate_per_s) return;
    spec_.rate_per_s = rate_per_s;
    mean_gap_ns_ = mean_gap_ns();
    if (rate_per_s <= 0) {
      due_ns_ = kNeverNs;
    } else if (due_ns_ == kNeverNs ||
               static_cast<double>(due_ns_ - std::min(due_ns_, now_ns)) > mean_gap_ns_) {
      start(now_ns);
    }
  }

  [[nodiscard]] const ArrivalSpec& spec() const { return spec_; }

 private:
  [[nodiscard]] bool is_on_off() const { return spec_.kind == ArrivalKind::kOnOff; }

  // Mean gap between arrivals, in time that passes only while the source is on.
  [[nodiscard]] double mean_gap_ns() const {
    const double gap_ns = 1e9 / spec_.rate_per_s;
    if (!is_on_off()) return gap_ns;
    return gap_ns * static_cast<double>(spec_.on_ns) /
           static_cast<double>(spec_.on_ns + spec_.off_ns);
  }

  // Whole and fractional nanoseconds are kept apart, so that no precision is lost over hours.
  void step() {
    const double gap_ns =
        spec_.kind == ArrivalKind::kPoisson ? random_.exponential(mean_gap_ns_) : mean_gap_ns_;
    const double sum_ns = fraction_ns_ + std::min(gap_ns, 1e18);
    const auto whole_ns = static_cast<uint64_t>(sum_ns);
    active_ns_ += whole_ns;
    fraction_ns_ = sum_ns - static_cast<double>(whole_ns);
  }

  [[nodiscard]] uint64_t real_time_ns() const {
    if (!is_on_off() || spec_.on_ns == 0) return start_ns_ + active_ns_;
    return start_ns_ + active_ns_ / spec_.on_ns * (spec_.on_ns + spec_.off_ns) +
           active_ns_ % spec_.on_ns;
  }

  ArrivalSpec spec_;
  Random random_;
  double mean_gap_ns_;  // infinite when nothing arrives
  uint64_t start_ns_ = 0;
  uint64_t active_ns_ = 0;
  double fraction_ns_ = 0;
  uint64_t due_ns_ = kNeverNs;
};

// Counts the arrivals that are due but not yet taken. It advances a copy of the schedule, so the schedule
// itself stays where it is. Free while nothing is waiting.
template <class Random>
class DueCount {
 public:
  // Advances the copy to now_ns, by at most `max_steps` arrivals.
  void look(const Arrivals<Random>& schedule, uint64_t now_ns, uint64_t max_steps = ~0ULL) {
    if (ahead_ == 0) scout_ = schedule;
    for (; max_steps != 0 && scout_.due_ns() <= now_ns; --max_steps) {
      scout_.advance();
      ++ahead_;
    }
  }
  // The schedule has advanced by one arrival.
  void note_taken() { ahead_ -= ahead_ != 0; }
  // The schedule has been replaced.
  void reset() { ahead_ = 0; }
  [[nodiscard]] uint64_t due() const { return ahead_; }

 private:
  Arrivals<Random> scout_{{}, Random(0)};
  uint64_t ahead_ = 0;
};

}  // namespace batchplane::exec
