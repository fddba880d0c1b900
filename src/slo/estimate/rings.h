// SPDX-License-Identifier: BSD-3-Clause
// rings.h - how much each ring between tasks may hold, and how long packets wait in it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "slo/estimate/load.h"
#include "slo/model/budget.h"
#include "slo/model/controller.h"

namespace batchplane::slo {

// All rings share one credit, in batches. With a smaller credit packets wait less, but workers wait
// for each other more often. That loss is measured; for credits larger than any tried it is assumed to be 0,
// so these are tried where the model predicts a gain. A credit that fails goes back.
class Rings {
 public:
  static constexpr uint32_t kMaxCreditBatches = 8;  // waste hardly falls beyond
  Rings(const Model& model, const Load& load);
  [[nodiscard]] bool any() const { return has_rings_; }

  // Finds the rings that are full in this period, and what the credit in force costs.
  void update(const Program& program);
  // Sets the credit that waits are modelled for from now on.
  void set_credit(uint32_t batches);
  // Sets the waits by task, for packets entering at this rate.
  void set_rate(double rate_pkts_per_ns);
  // Packets waiting in front of a task, at the credit set.
  [[nodiscard]] double left_pkts(uint32_t task) const { return ring_pkts_[task]; }
  [[nodiscard]] double wait_ns(uint32_t task) const { return wait_ns_[task]; }
  // Share of the rate that a credit loses to workers that wait for each other; never less than a larger one.
  [[nodiscard]] double waste(uint32_t credit_batches) const {
    return *std::max_element(waste_.begin() + credit_batches, waste_.end());
  }
  // Credit in force since the last decision; kUsual before the first.
  [[nodiscard]] uint32_t in_force() const { return in_force_ == 0 ? kUsual : in_force_; }
  // What a credit carried with all SLOs kept, and with which triggers.
  struct Point {
    uint32_t credit_batches = 0;
    Triggers triggers_pkts;
    double pkts_per_ns = 0;
  };
  // To be called when another credit is set and all SLOs are kept.
  void leave(Point before) { before_ = std::move(before); }
  void forget() { before_.reset(); }
  // What should come back until the credit in force has kept all SLOs and carried no less than the one before:
  // it carries less, or `is_stuck`: SLOs stay late with it.
  [[nodiscard]] std::optional<Point> way_back(bool is_kept, bool is_stuck, double pkts_per_ns);
  // A credit other than the one in force was set for the next decision.
  [[nodiscard]] bool is_changing() const {
    return has_rings_ && in_force_ != 0 && credit_batches_ != in_force_;
  }
  // Another credit worth evaluating in this period; 0: none. Where flows stay late under this one, soon.
  [[nodiscard]] uint32_t other_to_look_at(bool is_saturated, bool is_stuck);
  // The last decision changed the credit, so the period covers two of them.
  [[nodiscard]] bool is_fresh() const { return is_fresh_; }
  // Puts the last credit set into force.
  void decide(Decision& decision);

 private:
  static constexpr uint32_t kUsual = 2;  // one batch is put in while another is taken out

  const Model& model_;
  const Load& load_;
  bool has_rings_ = false;
  std::vector<bool> holds_back_;  // by task: its feeders stop while its ring is full
  std::vector<bool> is_full_;     // by task: the ring before it is never empty
  std::vector<double> ring_pkts_;
  std::vector<double> wait_ns_;
  std::array<double, kMaxCreditBatches + 1> waste_ = {};
  uint32_t credit_batches_ = 0;  // set last
  uint32_t in_force_ = 0;        // 0: as in the pipeline
  std::optional<Point> before_;  // the credit in force, which has not proved itself yet
  uint32_t periods_ = 0;         // since it changed, as far as they tell anything
  uint32_t dwell_periods_ = 1;   // periods for which it stays
  bool is_fresh_ = false;
};

}  // namespace batchplane::slo
