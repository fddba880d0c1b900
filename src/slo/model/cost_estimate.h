// SPDX-License-Identifier: BSD-3-Clause
// cost_estimate.h - the present cost of a module: its profile, corrected by sampled executions.
#pragma once

#include "base/cost_fit.h"

namespace batchplane::slo {

// Of an execution's time, relative, before there are samples.
inline constexpr double kUsualNoise = 0.5;

// Variance of an execution's time, relative.
struct ExecutionNoise {
  double variance = kUsualNoise * kUsualNoise;
  // Follows the square of a relative error, times the executions that it is the mean of. One interrupted
  // execution must not widen what is believed; what stays noisy must, in time.
  void follow(double square);

 private:
  double step_ = kFirstStep;
  static constexpr double kFirstStep = 0.2;
};

// Standard deviations beyond which a period's samples say nothing: another program had the core.
inline constexpr double kFarOff = 4;

// Cost estimate of one module: factors on the profile's costs per batch and per packet, from an extended Kalman
// filter on their logarithms. The level of both may change at any time, their ratio hardly does.
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
  // Of the factors' logarithms: variances, and their covariance.
  struct Doubt {
    double batch = 0;
    double both = 0;
    double pkt = 0;
    void add_level(double variance);
  };

  bool learn_level(const CostSums& period);
  void learn_slope(const CostSums& period);
  void move(double batch_log, double pkt_log);

  CostLaw prior_;
  CostLaw cost_;
  CostLaw base_;  // the profile, with neither cost 0: what is nothing would stay so
  double batch_factor_ = 1;
  double pkt_factor_ = 1;
  Doubt doubt_;
  ExecutionNoise noise_;
  double size_pkts_ = 0;  // last mean size; 0: nothing was sampled
  bool was_far_off_ = false;
};

}  // namespace batchplane::slo
