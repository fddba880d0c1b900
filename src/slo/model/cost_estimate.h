// SPDX-License-Identifier: BSD-3-Clause
// cost_estimate.h - what each module costs now: the profile, corrected by the executions sampled
// while packets flow.
#pragma once

#include <vector>

#include "base/cost_fit.h"
#include "exec/control.h"

namespace batchplane::slo {

// One module: sums of its samples, older ones weigh less, and the line fitted through them, to
// which the profile is bent.
class ModuleCostEstimate {
 public:
  explicit ModuleCostEstimate(CostLaw prior);

  // The samples of one period; a period without any changes nothing.
  void add(const CostSamples& samples);

  [[nodiscard]] const CostLaw& cost() const { return cost_; }
  // Estimated over profiled time of the batches that come now: 2 = twice as slow as profiled. 1 as
  // long as nothing was sampled, or when the profile says that the module costs nothing.
  [[nodiscard]] double drift_ratio() const;

 private:
  // With the mean square of the distance of this period's sizes from the mean of all.
  void fit(double period_spread);

  CostLaw prior_;
  CostLaw::Line shape_;  // how the two costs relate where batch sizes do not tell
  CostLaw cost_;         // a profiled table keeps its shape
  CostSums sums_;
  bool has_samples_ = false;
};

class CostEstimator {
 public:
  // One prior for each module of the model, in its order.
  explicit CostEstimator(const std::vector<CostLaw>& priors);

  // Takes the samples of a period and puts the new estimates into it.
  void update(exec::PeriodSnapshot& snapshot);

  [[nodiscard]] const ModuleCostEstimate& of(uint32_t module) const { return modules_[module]; }

 private:
  std::vector<ModuleCostEstimate> modules_;
};

}  // namespace batchplane::slo
