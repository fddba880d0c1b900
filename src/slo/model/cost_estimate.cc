// SPDX-License-Identifier: BSD-3-Clause
// cost_estimate.cc - executions of one size differ by a third to two thirds on a real machine, and few are
// sampled, most of them of one size. So a period tells the level of both costs, and of their proportion only as
// much as its sizes vary, beside what the profile and earlier periods told.
#include "slo/model/cost_estimate.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace batchplane::slo {
namespace {

constexpr double square(double x) { return x * x; }

// Standard deviations of logarithms: of the profile's level; of what the level and the proportion change by from
// period to period.
constexpr double kPriorLevel = 0.5;
constexpr double kLevelStep = 0.03;
constexpr double kShapeStep = 0.005;
// Step of an execution's variance towards that of a period, after a while.
constexpr double kNoiseStep = 0.01;
// A period counts as so many times the variance at most.
constexpr double kMostRise = 5;
// Without noise.
constexpr double kLeastVariance = 1e-4;
// Of the other cost, for one that the profile has as 0; of the line, for points below it.
constexpr double kLeastShare = 0.02;
// What one period may leave of a cost per packet, at least.
constexpr double kLeastLeft = 0.1;

CostLaw without_zeros(const CostLaw& law) {
  CostLaw::Line line = law.line();
  if (line.ns(1) <= 0) return CostLaw(kUnknownCost);
  const double more_ns = std::max(0.0, kLeastShare * line.cost_per_pkt_ns - line.cost_per_batch_ns);
  line.cost_per_batch_ns += more_ns;
  line.cost_per_pkt_ns = std::max(line.cost_per_pkt_ns, kLeastShare * line.cost_per_batch_ns);
  std::vector<CostLaw::Point> points(law.points().begin(), law.points().end());
  for (CostLaw::Point& point : points) {
    point.ns = std::max(point.ns + more_ns, kLeastShare * line.ns(point.size_pkts));
  }
  return {std::move(points), line};
}

}  // namespace

void ExecutionNoise::follow(double error_squared) {
  const double seen = std::min(error_squared, kMostRise * variance);
  variance = std::max(kLeastVariance, variance + step_ * (seen - variance));
  step_ = std::max(kNoiseStep, step_ / (1 + step_));
}

double ModuleCostEstimate::Doubt::of(const Parts& parts) const {
  return square(parts.batch) * batch + 2 * parts.batch * parts.pkt * both + square(parts.pkt) * pkt;
}

void ModuleCostEstimate::Doubt::add(const Parts& direction, double variance) {
  batch += square(direction.batch) * variance;
  both += direction.batch * direction.pkt * variance;
  pkt += square(direction.pkt) * variance;
}

ModuleCostEstimate::Parts ModuleCostEstimate::Doubt::learn(const Parts& parts, double variance) {
  const double all = of(parts) + variance;
  const Parts gain{(parts.batch * batch + parts.pkt * both) / all,
                   (parts.batch * both + parts.pkt * pkt) / all};
  add(gain, -all);
  return gain;
}

ModuleCostEstimate::ModuleCostEstimate(CostLaw prior, double shape)
    : prior_(std::move(prior)),
      base_(without_zeros(prior_)),
      cost_(prior_),
      shape_(prior_.line().ns(1) > 0 ? shape : kUnknownShape) {
  doubt_ = {.batch = square(shape_), .pkt = square(shape_)};
  doubt_.add({1, 1}, square(kPriorLevel));
}

void ModuleCostEstimate::add(const CostSamples& samples) {
  if (!samples.is_possible() || samples.cycles == 0) return;
  const CostSums period(samples);
  if (size_pkts_ == 0) cost_ = base_;
  size_pkts_ = period.mean_pkts();
  const Parts parts = parts_of(size_pkts_);
  forget(parts);
  if (learn_level(period, parts)) learn_slope(period);
}

// Of a table that falls, what lies beyond its ends may be nothing.
double ModuleCostEstimate::told_ns(double size_pkts) const {
  return std::max(cost_.ns(size_pkts), kLeastShare * cost_.line().ns(size_pkts));
}

ModuleCostEstimate::Parts ModuleCostEstimate::parts_of(double size_pkts) const {
  const double pkts_ns = cost_.line().cost_per_pkt_ns * size_pkts;
  const double pkt_part = std::min(1.0, pkts_ns / told_ns(size_pkts));
  return {1 - pkt_part, pkt_part};
}

// What may have changed since the last period. The proportion changes at the same time for the present size:
// otherwise each error of the level would move the larger cost more, in the long run all the way. It is never
// less known than before the first sample.
void ModuleCostEstimate::forget(const Parts& parts) {
  doubt_.add({1, 1}, square(kLevelStep));
  if (doubt_.of({1, -1}) < 2 * square(shape_)) {
    doubt_.add({parts.pkt, -parts.batch}, square(kShapeStep));
  }
}

// The mean time of batches of the mean size. A period far off is an interruption; two that say the same are a
// change of speed, and of nothing else.
bool ModuleCostEstimate::learn_level(const CostSums& period, const Parts& parts) {
  const double noise = noise_.variance / period.batches;
  // The mean of a logarithm is less than the logarithm of the mean.
  const double error =
      std::log(period.mean_ns() / told_ns(period.mean_pkts())) + std::min(noise, 1.0) / 2;
  const bool is_far_off = square(error) > square(kFarOff) * (doubt_.of(parts) + noise);
  noise_.follow(period.batches * square(error));
  const auto last = std::exchange(far_error_, is_far_off ? std::optional(error) : std::nullopt);
  if (is_far_off) {
    const bool is_the_same = last && square(error - *last) < 2 * square(kFarOff) * noise;
    if (!is_the_same) return false;
    doubt_.add({1, 1}, square(error));
    far_error_.reset();
  }
  const Parts gain = doubt_.learn(parts, noise);
  move(gain.batch * error, gain.pkt * error);
  return true;
}

// What a packet more takes, from sizes that vary about their mean.
void ModuleCostEstimate::learn_slope(const CostSums& period) {
  const double deviation_pkts = std::sqrt(period.variance_pkts2());
  if (deviation_pkts <= 0) return;
  const double size_pkts = period.mean_pkts();
  const double covariance = period.time_pkts_ns / period.batches - period.mean_ns() * size_pkts;
  const double told_slope_ns =
      (cost_.ns(size_pkts + deviation_pkts) - cost_.ns(size_pkts - deviation_pkts)) /
      (2 * deviation_pkts);
  const double pkt_ns = cost_.line().cost_per_pkt_ns;
  const double error = (covariance / square(deviation_pkts) - told_slope_ns) / pkt_ns;
  // Large batches are the noisiest, and decide.
  const double usual_ns = told_ns(period.pkts_squared / period.pkts);
  const double variance =
      noise_.variance * square(usual_ns / deviation_pkts / pkt_ns) / period.batches;
  // Of a table, steps that no line has are costs of batches.
  const Parts gain = doubt_.learn({told_slope_ns / pkt_ns - 1, 1}, variance);
  const double change = gain.pkt * error;
  // A factor, not its logarithm, is what the slope is proportional to.
  const double share = change == 0 ? 1 : std::log(std::max(kLeastLeft, 1 + change)) / change;
  move(share * gain.batch * error, share * change);
}

void ModuleCostEstimate::move(double batch_log, double pkt_log) {
  batch_factor_ *= std::exp(batch_log);
  pkt_factor_ *= std::exp(pkt_log);
  cost_ = base_.scaled(batch_factor_, pkt_factor_);
}

double ModuleCostEstimate::drift_ratio() const {
  if (size_pkts_ == 0) return 1;
  const double prior_ns = prior_.ns(size_pkts_);
  return prior_ns > 0 ? cost_.ns(size_pkts_) / prior_ns : 1;
}

}  // namespace batchplane::slo
