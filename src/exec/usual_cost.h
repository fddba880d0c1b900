// SPDX-License-Identifier: BSD-3-Clause
// usual_cost.h - rejects measured executions that an interrupt or another program has lengthened.
#pragma once

#include <cstdint>

namespace batchplane::exec {

// The usual cost of an execution: a running median that each execution moves by one step. A mean would not
// work even if outliers were capped: on a shared core, other programs' time raises the mean, and the cap with
// it.
class UsualCost {
 public:
  // Whether to believe a measurement of n packets. A genuine 16-fold rise in cost is believed only after 25
  // executions. A lower cost is believed at once: nothing makes work take less time than it needs.
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
  static constexpr uint64_t kPerBatch = 8;  // cost of a batch itself, in packets
  static constexpr float kFarOff = 16;
  static constexpr float kStep = 1.125F;
  float each_ = 0;  // cycles; 0: none yet
};

}  // namespace batchplane::exec
