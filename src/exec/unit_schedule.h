// SPDX-License-Identifier: BSD-3-Clause
// unit_schedule.h - stride scheduling over the units of a task.
//
// Each unit has a pass, which grows by the cost of its turns over its weight; the runnable unit with the
// least pass is next. Virtual time is the pass of the unit last chosen this way: a unit that could not run
// re-enters there, and unused share is lost. A unit whose age limit has passed goes first, by deadline, but
// at most one turn ahead of its share: a limit never buys more than that.
#pragma once

#include <cassert>
#include <cstdint>
#include <vector>

#include "exec/scheduling.h"

namespace batchplane::exec {

// Owner: one worker. Allocates only at construction. Unit 0 is the task's input: it always counts as
// runnable, since only polling it can tell.
class UnitSchedule {
 public:
  static constexpr uint32_t kInput = 0;
  static constexpr uint32_t kNobody = ~0U;
  // One in units of pass: the largest weight is rounded by 0.05 %.
  static constexpr uint64_t kOne = 1U << 20;

  explicit UnitSchedule(uint32_t n_units) : units_(n_units) {
    runnable_.reserve(n_units);
    activate(kInput);
  }

  // 1..kMaxWeight.
  void set_weight(uint32_t unit, uint32_t weight) {
    assert(weight >= 1 && weight <= kMaxWeight);
    units_[unit].weight = weight;
    units_[unit].stride = (kOne + weight / 2) / weight;
  }

  // The unit has packets to run, or no longer has any.
  void activate(uint32_t unit) {
    if (units_[unit].is_active) return;
    units_[unit].is_active = true;
    if (units_[unit].blocked_by == 0) enter(unit);
  }
  void deactivate(uint32_t unit) {
    if (!units_[unit].is_active) return;
    units_[unit].is_active = false;
    if (units_[unit].blocked_by == 0) leave(unit);
  }

  // Counted: each block() needs its unblock().
  void block(uint32_t unit) {
    if (units_[unit].blocked_by++ == 0 && units_[unit].is_active) leave(unit);
  }
  void unblock(uint32_t unit) {
    assert(units_[unit].blocked_by > 0);
    if (--units_[unit].blocked_by == 0 && units_[unit].is_active) enter(unit);
  }

  void expire(uint32_t unit, uint64_t deadline_ns) {
    if (!units_[unit].is_expired) ++n_expired_;
    units_[unit].is_expired = true;
    units_[unit].deadline_ns = deadline_ns;
  }
  void unexpire(uint32_t unit) {
    if (units_[unit].is_expired) --n_expired_;
    units_[unit].is_expired = false;
  }

  // The next unit, or kNobody. Without the input: polling it found nothing, and its unused share is lost.
  uint32_t pick(bool with_input) {
    if (with_input && was_input_empty_) catch_up(kInput);
    if (with_input) was_input_empty_ = false;
    if (!with_input) was_input_empty_ = true;
    uint32_t best = kNobody;
    for (const uint32_t unit : runnable_) {
      if (unit == kInput && !with_input) continue;
      if (best == kNobody || is_before(unit, best)) best = unit;
    }
    if (n_expired_ != 0) {
      const uint32_t due = most_urgent(with_input);
      if (due != kNobody) return due;
    }
    if (best != kNobody && is_later(units_[best].pass, now_)) now_ = units_[best].pass;
    return best;
  }

  // Charges a unit's turn, in nanoseconds or turns.
  void charge(uint32_t unit, uint64_t amount) {
    units_[unit].last_step = amount * units_[unit].stride;
    units_[unit].pass += units_[unit].last_step;
    units_[unit].charged += amount;
    ++units_[unit].turns;
  }

  [[nodiscard]] uint32_t weight(uint32_t unit) const { return units_[unit].weight; }
  [[nodiscard]] uint64_t charged(uint32_t unit) const { return units_[unit].charged; }
  [[nodiscard]] uint64_t turns(uint32_t unit) const { return units_[unit].turns; }
  [[nodiscard]] bool is_active(uint32_t unit) const { return units_[unit].is_active; }
  [[nodiscard]] bool is_blocked(uint32_t unit) const { return units_[unit].blocked_by != 0; }
  [[nodiscard]] bool is_expired(uint32_t unit) const { return units_[unit].is_expired; }
  [[nodiscard]] uint64_t deadline_ns(uint32_t unit) const { return units_[unit].deadline_ns; }
  // Whether any unit other than the input can run now.
  [[nodiscard]] bool has_runnable() const {
    return runnable_.size() > (units_[kInput].blocked_by == 0 ? 1U : 0U);
  }
  [[nodiscard]] uint32_t n_units() const { return static_cast<uint32_t>(units_.size()); }

 private:
  struct Unit {
    uint64_t pass = 0;  // compared modulo 2^64
    uint64_t stride = kOne;
    uint64_t last_step = 0;  // of its pass
    uint64_t deadline_ns = 0;
    uint64_t charged = 0;
    uint64_t turns = 0;
    uint32_t weight = 1;
    uint32_t blocked_by = 0;
    uint32_t position = 0;  // in runnable_
    bool is_active = false;
    bool is_expired = false;
  };

  static bool is_later(uint64_t a, uint64_t b) { return static_cast<int64_t>(a - b) > 0; }
  [[nodiscard]] bool is_before(uint32_t a, uint32_t b) const {
    if (units_[a].pass == units_[b].pass) return a < b;
    return is_later(units_[b].pass, units_[a].pass);
  }
  void catch_up(uint32_t unit) {
    if (is_later(now_, units_[unit].pass)) units_[unit].pass = now_;
  }
  void enter(uint32_t unit) {
    catch_up(unit);
    units_[unit].position = static_cast<uint32_t>(runnable_.size());
    runnable_.push_back(unit);
  }
  void leave(uint32_t unit) {
    const uint32_t last = runnable_.back();
    runnable_[units_[unit].position] = last;
    units_[last].position = units_[unit].position;
    runnable_.pop_back();
  }
  [[nodiscard]] uint32_t most_urgent(bool with_input) const {
    uint32_t due = kNobody;
    for (const uint32_t unit : runnable_) {
      if (!units_[unit].is_expired || (unit == kInput && !with_input)) continue;
      if (is_later(units_[unit].pass - units_[unit].last_step, now_)) continue;
      const bool is_earlier = due == kNobody ||
                              units_[unit].deadline_ns < units_[due].deadline_ns ||
                              (units_[unit].deadline_ns == units_[due].deadline_ns && unit < due);
      if (is_earlier) due = unit;
    }
    return due;
  }

  std::vector<Unit> units_;
  std::vector<uint32_t> runnable_;  // active and not blocked
  uint64_t now_ = 0;                // virtual time
  uint32_t n_expired_ = 0;
  bool was_input_empty_ = false;
};

}  // namespace batchplane::exec
