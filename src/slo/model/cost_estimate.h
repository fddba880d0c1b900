// SPDX-License-Identifier: BSD-3-Clause
// cost_estimate.h - what each module costs now: the profile, corrected by the executions sampled
// while packets flow.
#pragma once

#include <vector>

#include "exec/control.h"

namespace batchplane::slo {

// One module: sums of its samples, older ones weigh less, and a line fitted through them.
class ModuleCostEstimate {
 public:
  explicit ModuleCostEstimate(const exec::ModuleCost& prior);

  // The samples of one period; a period without any changes nothing.
  void add(const exec::CostSamples& samples);

  [[nodiscard]] const exec::ModuleCost& cost() const { return cost_; }
  // Estimated over profiled time of the batches that come now: 2 = twice as slow as profiled. 1 as
  // long as nothing was sampled, or when the profile says that the module costs nothing.
  [[nodiscard]] double drift_ratio() const;

 private:
  // With the mean square of the distance of this period's sizes from the mean of all.
  void fit(double period_spread);

  exec::ModuleCost prior_;
  exec::ModuleCost shape_;  // how the two costs relate where batch sizes do not tell
  exec::ModuleCost cost_;
  // Weighted sums over sampled batches of size n and time t: of 1, n, n^2, t, t * n.
  double batches_ = 0;
  double pkts_ = 0;
  double pkts_squared_ = 0;
  double time_ns_ = 0;
  double time_pkts_ns_ = 0;
  bool has_samples_ = false;
};

class CostEstimator {
 public:
  // One prior for each module of the model, in its order.
  explicit CostEstimator(const std::vector<exec::ModuleCost>& priors);

  // Takes the samples of a period and puts the new estimates into it.
  void update(exec::PeriodSnapshot& snapshot);

  [[nodiscard]] const ModuleCostEstimate& of(uint32_t module) const { return modules_[module]; }

 private:
  std::vector<ModuleCostEstimate> modules_;
};

}  // namespace batchplane::slo
