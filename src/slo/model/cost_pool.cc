// SPDX-License-Identifier: BSD-3-Clause
#include "slo/model/cost_pool.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace batchplane::slo {
namespace {
// Weight of a period's comparison in the next period: branches hardly change.
constexpr double kKept = 0.998;
// Square of three standard deviations, beside those that the largest of n values has.
constexpr double kChance = 9;
}  // namespace

CostPool::CostPool(CostLaw prior, double shape, std::vector<uint32_t> modules)
    : modules_(std::move(modules)), members_(modules_.size()), common_(std::move(prior), shape) {}

void CostPool::add(const CostSamples& samples, Member& member) {
  const CostSums period(samples);
  const double told_ns = period.batches * common_.cost().ns(period.mean_pkts());
  if (told_ns <= 0) return;
  const double error = period.time_ns / (told_ns * member.ratio) - 1;
  const double square = period.batches * error * error;
  const bool is_far_off = square > kFarOff * kFarOff * member.noise.variance;
  member.noise.follow(square);
  if (is_far_off) return;
  member.batches += period.batches;
  member.took_ns += period.time_ns;
  member.told_ns += told_ns;
}

// A ratio is believed as far as it differs by more than the largest of n values differs by chance (the
// non-negative garrote).
void CostPool::compare(const exec::PeriodSnapshot& snapshot) {
  double took_ns = 0;
  double told_ns = 0;
  for (size_t i = 0; i < members_.size(); ++i) {
    Member& member = members_[i];
    for (double* sum : {&member.batches, &member.took_ns, &member.told_ns}) *sum *= kKept;
    const CostSamples& samples = snapshot.modules[modules_[i]].samples;
    if (samples.batches > 0 && samples.is_possible()) add(samples, member);
    took_ns += member.took_ns;
    told_ns += member.told_ns;
  }
  if (took_ns <= 0) return;
  const double most_chance = kChance + 2 * std::log(static_cast<double>(members_.size()));
  for (Member& member : members_) {
    if (member.told_ns <= 0) continue;
    const double differs = member.took_ns / member.told_ns * told_ns / took_ns - 1;
    const double chance = most_chance * member.noise.variance / member.batches;
    member.ratio = 1 + differs * std::max(0.0, 1 - chance / std::max(1e-12, differs * differs));
  }
}

void CostPool::update(exec::PeriodSnapshot& snapshot) {
  CostSamples all;
  for (const uint32_t m : modules_) {
    const CostSamples& samples = snapshot.modules[m].samples;
    if (samples.is_possible()) all += samples;
  }
  common_.add(all);
  if (members_.size() > 1) compare(snapshot);
  for (size_t i = 0; i < members_.size(); ++i) {
    snapshot.modules[modules_[i]].cost = members_[i].ratio == 1 ? common_.cost() : cost(i);
  }
}

CostEstimator::CostEstimator(const std::vector<Prior>& priors) : places_(priors.size()) {
  std::vector<std::vector<uint32_t>> pools;
  // By make, as laws are then compared with few others.
  std::map<std::string, std::vector<uint32_t>> of_make;
  for (uint32_t m = 0; m < priors.size(); ++m) {
    std::vector<uint32_t>& found = of_make[priors[m].make];
    const auto same = std::ranges::find_if(
        found, [&](uint32_t p) { return priors[pools[p].front()].law == priors[m].law; });
    if (same != found.end() && !priors[m].make.empty()) {
      pools[*same].push_back(m);
    } else {
      found.push_back(static_cast<uint32_t>(pools.size()));
      pools.push_back({m});
    }
  }
  for (std::vector<uint32_t>& modules : pools) {
    for (uint32_t i = 0; i < modules.size(); ++i) {
      places_[modules[i]] = {static_cast<uint32_t>(pools_.size()), i};
    }
    const Prior& prior = priors[modules.front()];
    pools_.emplace_back(prior.law, prior.shape, std::move(modules));
  }
}

void CostEstimator::update(exec::PeriodSnapshot& snapshot) {
  for (CostPool& pool : pools_) pool.update(snapshot);
}

CostLaw CostEstimator::cost(uint32_t module) const {
  const Place& place = places_[module];
  return pools_[place.pool].cost(place.member);
}

double CostEstimator::drift_ratio(uint32_t module) const {
  const Place& place = places_[module];
  return pools_[place.pool].common().drift_ratio() * pools_[place.pool].ratio(place.member);
}

const CostLaw& CostEstimator::common_cost(uint32_t module) const {
  return pools_[places_[module].pool].common().cost();
}

}  // namespace batchplane::slo
