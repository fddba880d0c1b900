// SPDX-License-Identifier: BSD-3-Clause
// cost_estimate.h - the present cost of a module: its profile, corrected by sampled executions.
#pragma once

#include "base/cost_fit.h"

namespace batchplane::slo {

// Of an execution's time, relative, before there are samples.
inline constexpr double kUsualNoise = 0.5;
// Standard deviations beyond which a period's samples say nothing: another program had the core.
inline constexpr double kFarOff = 4;

// Cost estimate of one module: the profile, scaled by what is sampled, and bent where samples of
// different sizes tell more than their noise.
class ModuleCostEstimate {
 public:
  explicit ModuleCostEstimate(CostLaw prior);

  // Adds the samples of one period; a period without samples changes nothing.
  void add(const CostSamples& samples);

  [[nodiscard]] const CostLaw& cost() const { return cost_; }
  // Estimated over profiled time for the present batch sizes: 2 = twice as slow as profiled. 1
  // until something has been sampled, or if the profile says that the module costs nothing.
  [[nodiscard]] double drift_ratio() const;

 private:
  void learn_shape(const CostSums& period);
  void fit();

  CostLaw prior_;
  CostLaw::Line shape_;
  CostLaw cost_;         // keeps the shape of a profiled table
  CostSums sums_;        // recent samples
  CostSums shape_sums_;  // older ones as well, at the level of the recent ones
  double variance_;      // of one execution's time, relative
  bool has_samples_ = false;
};

}  // namespace batchplane::slo
