// SPDX-License-Identifier: BSD-3-Clause
// cost_estimate.cc - the scale of a module's cost follows the samples at once, its proportion of
// cost per batch and per packet only as far as the samples are beyond their noise.
//
// Executions of one size differ by a third to two thirds on a real machine, and few are sampled. A
// slope through them would be chance. So the known proportion counts as a measurement, too, with an
// uncertainty of its own: one formula covers sizes that vary and those that do not.
#include "slo/model/cost_estimate.h"

#include <algorithm>
#include <cmath>

namespace batchplane::slo {
namespace {

// Weight of a period's samples in the next period, for the scale: a change is followed by 90 % within
// 10 periods.
constexpr double kDecay = 0.8;
// The same for the proportion, which hardly changes.
constexpr double kShapeDecay = 0.99;
// The profile counts as this many sampled batches, and fades like them.
constexpr double kPriorBatches = 4;
// Standard deviation of the profiled slope, in parts of the mean time per packet.
constexpr double kShapeError = 0.4;
// How quickly the noise of an execution's time follows the samples.
constexpr double kNoiseStep = 1 - kShapeDecay;

}  // namespace

ModuleCostEstimate::ModuleCostEstimate(CostLaw prior)
    : prior_(std::move(prior)),
      shape_(prior_.line()),
      cost_(prior_),
      variance_(kUsualNoise * kUsualNoise) {}

void ModuleCostEstimate::add(const CostSamples& samples) {
  if (!samples.is_possible()) return;
  const CostSums period(samples);
  if (!has_samples_ && prior_.line().ns(1) > 0) {
    // The profile's time for batches of the arriving size.
    sums_.add(period.mean_pkts(), prior_.line().ns(period.mean_pkts()), kPriorBatches);
  }
  has_samples_ = true;
  learn_shape(period);
  sums_.fade_into(kDecay, period);
  fit();
}

// With the level as it was before the period: if the module's speed changed in it, that counts as noise.
void ModuleCostEstimate::learn_shape(const CostSums& period) {
  const double told_ns = shape_.ns(period.mean_pkts());
  if (told_ns > 0) {
    const double error = period.mean_ns() / told_ns - 1;
    const double square = period.batches * error * error;
    const bool is_far_off = square > kFarOff * kFarOff * variance_;
    variance_ += kNoiseStep * (square - variance_);
    if (is_far_off) return;
  }
  shape_sums_.fade_into(kShapeDecay, period);
  const double noise = std::sqrt(variance_ / shape_sums_.batches);
  const CostLaw::Line line = fit_line(shape_sums_, prior_.line(), noise / kShapeError);
  if (line.ns(1) > 0 && std::isfinite(line.ns(1))) shape_ = line;
}

// Brings the proportion, and the samples that it comes from, to the level of recent samples.
void ModuleCostEstimate::fit() {
  const double size_pkts = sums_.mean_pkts();
  const double shape_ns = shape_.ns(size_pkts);
  const double scale = shape_ns > 0 ? sums_.mean_ns() / shape_ns : 1;
  if (!std::isfinite(scale) || scale <= 0) return;
  shape_ = {scale * shape_.cost_per_batch_ns, scale * shape_.cost_per_pkt_ns};
  shape_sums_.time_ns *= scale;
  shape_sums_.time_pkts_ns *= scale;
  cost_ = prior_.bent_to(shape_, size_pkts);
}

double ModuleCostEstimate::drift_ratio() const {
  if (!has_samples_) return 1;
  const double size_pkts = sums_.mean_pkts();
  const double prior_ns = prior_.line().ns(size_pkts);
  return prior_ns > 0 ? cost_.line().ns(size_pkts) / prior_ns : 1;
}

}  // namespace batchplane::slo
