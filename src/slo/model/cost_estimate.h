// SPDX-License-Identifier: BSD-3-Clause
// cost_estimate.h - the present cost of a module: its profile, corrected by sampled executions.
#pragma once

#include <optional>

#include "base/cost_fit.h"

namespace batchplane::slo {

// Cost of a module that was never profiled, or by its profile costs nothing, until samples replace it.
inline constexpr CostLaw::Line kUnknownCost{40, 10};
// Standard deviation of the logarithm of each of its costs by itself: of a profiled one, and of an unknown one.
inline constexpr double kProfiledShape = 0.4;
inline constexpr double kUnknownShape = 1.5;
// Standard deviations beyond which a period's samples say nothing, unless the next ones say the same: another
// program had the core.
inline constexpr double kFarOff = 4;

// Variance of an execution's time, relative.
struct ExecutionNoise {
  double variance = 0.25;
  // Follows the square of a relative error, times the executions that it is the mean of. One interrupted
  // execution must not widen what is believed; what stays noisy must, in time.
  void follow(double error_squared);

 private:
  double step_ = 0.2;
};

// Cost estimate of one module: factors on the profile's costs per batch and per packet, from an extended Kalman
// filter on their logarithms. The level of both may change at any time, their proportion hardly does.
class ModuleCostEstimate {
 public:
  explicit ModuleCostEstimate(CostLaw prior, double shape = kProfiledShape);

  // Adds the samples of one period; a period without samples changes nothing.
  void add(const CostSamples& samples);

  [[nodiscard]] const CostLaw& cost() const { return cost_; }
  // Estimated over profiled time for the present batch sizes: 2 = twice as slow as profiled. 1
  // until something has been sampled, or if the profile says that the module costs nothing.
  [[nodiscard]] double drift_ratio() const;

 private:
  // Of a time, the parts that are costs per batch and per packet. Also how far each cost follows an error.
  struct Parts {
    double batch = 0;
    double pkt = 0;
  };
  // Of the factors' logarithms: variances, and their covariance.
  struct Doubt {
    double batch = 0;
    double both = 0;
    double pkt = 0;
    [[nodiscard]] double of(const Parts& parts) const;
    void add(const Parts& direction, double variance);
    // Takes in what was seen of such parts, with this variance.
    Parts learn(const Parts& parts, double variance);
  };

  [[nodiscard]] double told_ns(double size_pkts) const;
  [[nodiscard]] Parts parts_of(double size_pkts) const;
  void forget(const Parts& parts);
  bool learn_level(const CostSums& period, const Parts& parts);
  void learn_slope(const CostSums& period);
  void move(double batch_log, double pkt_log);

  CostLaw prior_;
  CostLaw base_;  // the profile, with neither cost 0: what is nothing would stay so
  CostLaw cost_;
  double shape_;
  double batch_factor_ = 1;
  double pkt_factor_ = 1;
  Doubt doubt_;
  ExecutionNoise noise_;
  double size_pkts_ = 0;             // last mean size; 0: nothing was sampled
  std::optional<double> far_error_;  // of the last period, if it was far off
};

}  // namespace batchplane::slo
