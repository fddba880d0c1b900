// SPDX-License-Identifier: BSD-3-Clause
// cost_estimate.cc - executions of one size differ by a third to two thirds on a real machine, and few are
// sampled, most of them of one size. So a period tells the level of both costs, and of their ratio only as
// much as its sizes vary, beside what the profile and earlier periods told.
#include "slo/model/cost_estimate.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace batchplane::slo {
namespace {

constexpr double square(double x) { return x * x; }

// Standard deviations of logarithms. Of the profile's level, and of each cost by itself: profiles of two
// machines, or of hot and cold caches, differ by about so much.
constexpr double kPriorLevel = kUsualNoise;
constexpr double kPriorShape = 0.4;
// What they change by from period to period.
constexpr double kLevelStep = 0.03;
constexpr double kShapeStep = 0.003;
// Step of an execution's variance towards a period's, after a while; that counts as so many times the variance at
// most.
// Without noise it is this at least.
constexpr double kNoiseStep = 0.01;
constexpr double kMostRise = 5;
constexpr double kLeastVariance = 1e-4;
// Of the other cost, for one that the profile has as 0.
constexpr double kLeastShare = 0.02;
// Of a module that costs nothing by its profile, and the standard deviation of each of these costs.
constexpr CostLaw::Line kAnything{40, 10};
constexpr double kAnyShape = 1.5;
// The least part of a cost per packet that one period may leave of it.
constexpr double kMostFall = 0.1;

CostLaw without_zeros(const CostLaw& law) {
  CostLaw::Line line = law.line();
  if (line.ns(1) <= 0) return CostLaw(kAnything);
  line.cost_per_batch_ns = std::max(line.cost_per_batch_ns, kLeastShare * line.cost_per_pkt_ns);
  line.cost_per_pkt_ns = std::max(line.cost_per_pkt_ns, kLeastShare * line.cost_per_batch_ns);
  return {{law.points().begin(), law.points().end()}, line};
}

}  // namespace

void ExecutionNoise::follow(double square) {
  const double most = kMostRise * variance + kLeastVariance;
  variance += step_ * (std::min(square, most) - variance);
  step_ = std::max(kNoiseStep, step_ / (1 + step_));
}

void ModuleCostEstimate::Doubt::add_level(double variance) {
  for (double* part : {&batch, &both, &pkt}) *part += variance;
}

ModuleCostEstimate::ModuleCostEstimate(CostLaw prior)
    : prior_(std::move(prior)), cost_(prior_), base_(without_zeros(prior_)) {
  doubt_.batch = doubt_.pkt = square(prior_.line().ns(1) > 0 ? kPriorShape : kAnyShape);
  doubt_.add_level(square(kPriorLevel));
}

void ModuleCostEstimate::add(const CostSamples& samples) {
  if (!samples.is_possible() || samples.cycles == 0) return;
  const CostSums period(samples);
  if (size_pkts_ == 0) cost_ = base_;
  size_pkts_ = period.mean_pkts();
  doubt_.add_level(square(kLevelStep));
  doubt_.batch += square(kShapeStep);
  doubt_.pkt += square(kShapeStep);
  if (learn_level(period)) learn_slope(period);
}

// The mean time of batches of the mean size. One period far off is an interruption; the second is a change of
// speed, and of nothing else.
bool ModuleCostEstimate::learn_level(const CostSums& period) {
  const double told_ns = cost_.ns(period.mean_pkts());
  const double pkts_ns = cost_.line().cost_per_pkt_ns * period.mean_pkts();
  const double pkt_share = std::min(1.0, pkts_ns / told_ns);
  const double batch_share = 1 - pkt_share;
  const double error = std::log(period.mean_ns() / told_ns);
  const double noise = noise_.variance / period.batches;
  const auto doubt_of_batch = [&] { return batch_share * doubt_.batch + pkt_share * doubt_.both; };
  const auto doubt_of_pkt = [&] { return batch_share * doubt_.both + pkt_share * doubt_.pkt; };
  const auto doubt = [&] { return batch_share * doubt_of_batch() + pkt_share * doubt_of_pkt(); };
  const bool is_far_off = square(error) > square(kFarOff) * (doubt() + noise);
  noise_.follow(period.batches * square(error));
  if (is_far_off && !std::exchange(was_far_off_, true)) return false;
  if (is_far_off) doubt_.add_level(square(error));
  was_far_off_ = false;
  const double all = doubt() + noise;
  const double batch_gain = doubt_of_batch() / all;
  const double pkt_gain = doubt_of_pkt() / all;
  doubt_.batch -= square(batch_gain) * all;
  doubt_.both -= batch_gain * pkt_gain * all;
  doubt_.pkt -= square(pkt_gain) * all;
  move(batch_gain * error, pkt_gain * error);
  return true;
}

// What a packet more takes, from sizes that vary about their mean.
void ModuleCostEstimate::learn_slope(const CostSums& period) {
  const double deviation_pkts = std::sqrt(period.variance_pkts2());
  if (deviation_pkts <= 0 || doubt_.pkt <= 0) return;
  const double size_pkts = period.mean_pkts();
  const double covariance = period.time_pkts_ns / period.batches - period.mean_ns() * size_pkts;
  const double told_ns =
      (cost_.ns(size_pkts + deviation_pkts) - cost_.ns(size_pkts - deviation_pkts)) /
      (2 * deviation_pkts);
  const double error_ns = covariance / square(deviation_pkts) - told_ns;
  const double pkt_ns = cost_.line().cost_per_pkt_ns;
  // Large batches are the noisiest, and decide.
  const double usual_ns = cost_.ns(period.pkts_squared / period.pkts);
  const double noise_ns2 = noise_.variance * square(usual_ns / deviation_pkts) / period.batches;
  const double doubt_ns2 = square(pkt_ns) * doubt_.pkt;
  const double gain = doubt_ns2 / (doubt_ns2 + noise_ns2);
  const double pkt_log = std::log(std::max(kMostFall, 1 + gain * error_ns / pkt_ns));
  const double batch_per_pkt = doubt_.both / doubt_.pkt;
  doubt_.batch -= gain * batch_per_pkt * doubt_.both;
  doubt_.both -= gain * doubt_.both;
  doubt_.pkt -= gain * doubt_.pkt;
  move(batch_per_pkt * pkt_log, pkt_log);
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
