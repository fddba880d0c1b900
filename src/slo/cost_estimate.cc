// SPDX-License-Identifier: BSD-3-Clause
// cost_estimate.cc - a least-squares line through decayed sums, drawn towards the line that keeps
// the two costs in proportion.
//
// With sizes that hardly vary only the mean time is known: the line through it with the known
// proportion scales both costs by the observed ratio. The more the sizes vary, the more the slope
// follows the samples. Both are one formula, so that nothing jumps between them.
#include "slo/cost_estimate.h"

#include <algorithm>
#include <cmath>

namespace batchplane::slo {
namespace {

// What a period's samples weigh in the next one: a change is followed by 90 % within 10 periods.
constexpr double kDecay = 0.8;
// The profile counts as this many sampled batches, and fades like them.
constexpr double kPriorBatches = 4;
// Variation of sizes (standard deviation over mean) at which samples and proportion weigh the same.
constexpr double kEvenVariation = 0.2;
// From here on the sizes vary enough for the proportion itself to be learned.
constexpr double kLearnedVariation = 0.3;

double sane(double value) { return std::isfinite(value) && value > 0 ? value : 0; }

double time_of(const exec::ModuleCost& cost, double batch_pkts) {
  return cost.cost_per_batch_ns + cost.cost_per_pkt_ns * batch_pkts;
}

// Sums that no set of batches can have: a counter that was torn or wrapped.
bool is_possible(const exec::CostSamples& samples) {
  const auto n = static_cast<double>(samples.batches);
  const auto pkts = static_cast<double>(samples.pkts);
  const auto squares = static_cast<double>(samples.pkts_squared);
  return samples.batches > 0 && pkts >= n && squares * n >= pkts * pkts * (1 - 1e-9) &&
         squares <= pkts * pkts;
}

}  // namespace

ModuleCostEstimate::ModuleCostEstimate(const exec::ModuleCost& prior)
    : prior_{sane(prior.cost_per_batch_ns), sane(prior.cost_per_pkt_ns)},
      shape_(prior_),
      cost_(prior_) {}

void ModuleCostEstimate::add(const exec::CostSamples& samples) {
  if (!is_possible(samples)) return;
  const auto n = static_cast<double>(samples.batches);
  const auto pkts = static_cast<double>(samples.pkts);
  if (!has_samples_ && time_of(prior_, 1) > 0) {
    // The profile's word on batches of the size that comes.
    const double size_pkts = pkts / n;
    batches_ = kPriorBatches;
    pkts_ = batches_ * size_pkts;
    pkts_squared_ = pkts_ * size_pkts;
    time_ns_ = batches_ * time_of(prior_, size_pkts);
    time_pkts_ns_ = time_ns_ * size_pkts;
  }
  has_samples_ = true;
  const auto merge = [](double& sum, double more) { sum = kDecay * sum + more; };
  merge(batches_, n);
  merge(pkts_, pkts);
  merge(pkts_squared_, static_cast<double>(samples.pkts_squared));
  merge(time_ns_, static_cast<double>(samples.cycles));
  merge(time_pkts_ns_, static_cast<double>(samples.cycles_pkts));
  // This period's sizes around the mean of all: old variation that only fades teaches nothing new,
  // and would mix a change of cost into the proportion.
  const double size_pkts = pkts_ / batches_;
  const double spread = static_cast<double>(samples.pkts_squared) / n - 2 * size_pkts * pkts / n +
                        size_pkts * size_pkts;
  fit(spread);
}

void ModuleCostEstimate::fit(double period_spread) {
  const double size_pkts = pkts_ / batches_;
  const double time_ns = time_ns_ / batches_;
  // Variance of sizes, and covariance of size and time.
  const double variance = std::max(0.0, pkts_squared_ / batches_ - size_pkts * size_pkts);
  const double covariance = time_pkts_ns_ / batches_ - time_ns * size_pkts;
  const double known_ns = time_of(shape_, size_pkts);
  const double slope_kept_ns = known_ns > 0 ? shape_.cost_per_pkt_ns * time_ns / known_ns : 0;
  const double strength = kEvenVariation * kEvenVariation * size_pkts * size_pkts;
  // Neither cost below zero: slopes from a flat line to one through the origin.
  const double slope_ns = std::clamp(
      (covariance + strength * slope_kept_ns) / (variance + strength), 0.0, time_ns / size_pkts);
  const exec::ModuleCost fitted{std::max(0.0, time_ns - slope_ns * size_pkts), slope_ns};
  if (!std::isfinite(fitted.cost_per_batch_ns) || !std::isfinite(fitted.cost_per_pkt_ns)) return;
  cost_ = fitted;
  const double learned = kLearnedVariation * kLearnedVariation * size_pkts * size_pkts;
  if (variance >= learned && period_spread >= learned && time_ns > 0) shape_ = fitted;
}

double ModuleCostEstimate::drift_ratio() const {
  if (!has_samples_) return 1;
  const double size_pkts = pkts_ / batches_;
  const double prior_ns = time_of(prior_, size_pkts);
  return prior_ns > 0 ? time_of(cost_, size_pkts) / prior_ns : 1;
}

CostEstimator::CostEstimator(const std::vector<exec::ModuleCost>& priors)
    : modules_(priors.begin(), priors.end()) {}

void CostEstimator::update(exec::PeriodSnapshot& snapshot) {
  const size_t n = std::min(modules_.size(), snapshot.modules.size());
  for (size_t m = 0; m < n; ++m) {
    modules_[m].add(snapshot.modules[m].samples);
    snapshot.modules[m].cost = modules_[m].cost();
  }
}

}  // namespace batchplane::slo
