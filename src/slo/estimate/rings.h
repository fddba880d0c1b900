// SPDX-License-Identifier: BSD-3-Clause
// rings.h - how much each ring between tasks may hold, and how long packets wait there.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "slo/estimate/load.h"
#include "slo/model/budget.h"
#include "slo/model/controller.h"

namespace batchplane::slo {

// One credit for all of them, in batches: the fewer, the less packets wait, and the more workers
// wait for each other. What they lose by that is measured; of credits that were never tried it is
// taken as nothing, so that the next larger and the next smaller one are tried where the model sees
// a gain.
class Rings {
 public:
  static constexpr uint32_t kMaxCreditBatches = 8;
  explicit Rings(const Model& model);
  [[nodiscard]] bool any() const { return has_rings_; }

  // Which rings are full in this period, and what the credit in force costs.
  void update(const Load& load, const Program& program);
  // Packets wait as at this credit from now on.
  void set_credit(uint32_t batches);
  // ... for so long, where packets enter at this rate; by task.
  void set_rate(const Load& load, double rate_pkts_per_ns);
  // Packets that wait before a task, at the credit.
  [[nodiscard]] double left_pkts(uint32_t task) const { return ring_pkts_[task]; }
  [[nodiscard]] double wait_ns(uint32_t task) const { return wait_ns_[task]; }
  // Share of the rate that waiting for others takes at a credit.
  [[nodiscard]] double waste(uint32_t credit_batches) const { return waste_[credit_batches]; }
  // In force since the last decision; kUsual before the first one.
  [[nodiscard]] uint32_t in_force() const { return in_force_ == 0 ? kUsual : in_force_; }
  // Another one was set for the next decision.
  [[nodiscard]] bool is_changing() const {
    return has_rings_ && in_force_ != 0 && credit_batches_ != in_force_;
  }
  // Another credit that is worth looking at in this period; 0: none.
  [[nodiscard]] uint32_t other_to_look_at(bool is_saturated);
  // Whether the last decision changed the credit: the period tells of two.
  [[nodiscard]] bool is_fresh() const { return is_fresh_; }
  // Puts the credit that was set last into force.
  void decide(Decision& decision);

 private:
  static constexpr uint32_t kUsual = 2;  // one batch goes in beside one that is taken out

  const Model& model_;
  bool has_rings_ = false;
  std::vector<bool> holds_back_;  // by task: its feeders, while its ring is full
  std::vector<bool> is_full_;     // by task: the ring before it is never empty
  std::vector<double> ring_pkts_;
  std::vector<double> wait_ns_;
  std::array<double, kMaxCreditBatches + 1> waste_ = {};
  uint32_t credit_batches_ = 0;  // set last
  uint32_t in_force_ = 0;        // 0: as the pipeline says
  uint32_t periods_ = 0;         // since it changed
  uint32_t dwell_periods_ = 1;   // that it stays
  bool is_fresh_ = false;
};

}  // namespace batchplane::slo
