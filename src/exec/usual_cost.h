// SPDX-License-Identifier: BSD-3-Clause
// usual_cost.h - tells measured executions from such that an interrupt or another program fell into.
#pragma once

#include <cstdint>

namespace batchplane::exec {

// What an execution usually takes: a median that each one moves by a step. A mean would not do, however it is
// capped: on a core that others use, too, what they take draws it up, and the cap with it.
class UsualCost {
 public:
  // Whether one of n packets is to be believed. A change of the cost itself by 16 times is believed 25
  // executions late. Less than usual is believed at once: nothing makes work take less than it takes.
  bool believes(uint64_t n_pkts, uint64_t cycles) {
    const float each = static_cast<float>(cycles + 1) / static_cast<float>(n_pkts + kPerBatch);
    if (each_ == 0 || each * kFarOff < each_) {
      each_ = each;
      return true;
    }
    const bool is_usual = each <= each_ * kFarOff;
    each_ = each > each_ ? each_ * kStep : each_ / kStep;
    return is_usual;
  }

 private:
  static constexpr uint64_t kPerBatch = 8;  // packets that a batch itself costs as much as
  static constexpr float kFarOff = 16;
  static constexpr float kStep = 1.125F;
  float each_ = 0;  // cycles; 0: none yet
};

}  // namespace batchplane::exec
