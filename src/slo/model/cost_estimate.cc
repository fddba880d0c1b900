// SPDX-License-Identifier: BSD-3-Clause
// cost_estimate.cc - a regression line through decayed sums, drawn towards the line that keeps the
// two costs in proportion.
//
// If sizes hardly vary, only the mean time is known: the line through it with the known proportion
// scales both costs by the observed ratio. The more sizes vary, the more the slope follows the
// samples. One formula covers both, so nothing jumps between them.
#include "slo/model/cost_estimate.h"

#include <algorithm>
#include <cmath>

namespace batchplane::slo {
namespace {

// Weight of a period's samples in the next period: a change is followed by 90 % within 10 periods.
constexpr double kDecay = 0.8;
// The profile counts as this many sampled batches, and fades like them.
constexpr double kPriorBatches = 4;
// Variation of sizes (standard deviation over mean) at which samples and proportion weigh the same.
constexpr double kEvenVariation = 0.2;
// From here on the sizes vary enough to learn the proportion itself.
constexpr double kLearnedVariation = 0.3;

}  // namespace

ModuleCostEstimate::ModuleCostEstimate(CostLaw prior)
    : prior_(std::move(prior)), shape_(prior_.line()), cost_(prior_) {}

void ModuleCostEstimate::add(const CostSamples& samples) {
  if (!samples.is_possible()) return;
  const CostSums period(samples);
  if (!has_samples_ && prior_.line().ns(1) > 0) {
    // The profile's time for batches of the arriving size.
    sums_.add(period.mean_pkts(), prior_.line().ns(period.mean_pkts()), kPriorBatches);
  }
  has_samples_ = true;
  sums_.fade_into(kDecay, period);
  // Only this period's sizes count, around the mean of all: older variation that only fades teaches
  // nothing new, and would mix a change of cost into the proportion.
  const double size_pkts = sums_.mean_pkts();
  const double spread = period.pkts_squared / period.batches -
                        2 * size_pkts * period.pkts / period.batches + size_pkts * size_pkts;
  fit(spread);
}

void ModuleCostEstimate::fit(double period_spread) {
  const CostLaw::Line fitted = fit_line(sums_, shape_, kEvenVariation);
  if (!std::isfinite(fitted.cost_per_batch_ns) || !std::isfinite(fitted.cost_per_pkt_ns)) return;
  cost_ = prior_.bent_to(fitted, sums_.mean_pkts());
  const double size_pkts = sums_.mean_pkts();
  const double learned = kLearnedVariation * kLearnedVariation * size_pkts * size_pkts;
  const bool is_varied = sums_.variance_pkts2() >= learned && period_spread >= learned;
  if (is_varied && sums_.time_ns > 0) shape_ = fitted;
}

double ModuleCostEstimate::drift_ratio() const {
  if (!has_samples_) return 1;
  const double size_pkts = sums_.mean_pkts();
  const double prior_ns = prior_.line().ns(size_pkts);
  return prior_ns > 0 ? cost_.line().ns(size_pkts) / prior_ns : 1;
}

CostEstimator::CostEstimator(const std::vector<CostLaw>& priors)
    : modules_(priors.begin(), priors.end()) {}

void CostEstimator::update(exec::PeriodSnapshot& snapshot) {
  const size_t n = std::min(modules_.size(), snapshot.modules.size());
  for (size_t m = 0; m < n; ++m) {
    modules_[m].add(snapshot.modules[m].samples);
    snapshot.modules[m].cost = modules_[m].cost();
  }
}

}  // namespace batchplane::slo
