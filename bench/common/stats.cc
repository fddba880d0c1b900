// SPDX-License-Identifier: BSD-3-Clause
#include "common/stats.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/rng.h"

namespace bench {

double median_of(std::vector<double> values) {
  std::ranges::sort(values);
  const size_t n = values.size();
  return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

Interval spread(const std::vector<double>& values) {
  return {median_of(values), percentile(values, 0), percentile(values, 1)};
}

std::vector<Interval> bootstrap(uint32_t n_trials, uint32_t resamples, const FiguresOf& figures) {
  std::vector<uint32_t> trials(n_trials);
  std::iota(trials.begin(), trials.end(), 0U);
  const std::vector<double> measured = figures(trials);
  std::vector<std::vector<double>> draws(measured.size());
  batchplane::Rng rng(1);
  for (uint32_t r = 0; r < resamples; ++r) {
    for (uint32_t& trial : trials) trial = rng.below(n_trials);
    const std::vector<double> drawn = figures(trials);
    for (size_t f = 0; f < drawn.size(); ++f) draws[f].push_back(drawn[f]);
  }
  std::vector<Interval> intervals;
  for (size_t f = 0; f < measured.size(); ++f) {
    const double low = resamples == 0 ? measured[f] : percentile(draws[f], 0.025);
    const double high = resamples == 0 ? measured[f] : percentile(draws[f], 0.975);
    // Of few or skewed trials the figure itself may lie outside of what resampling gives.
    intervals.push_back({measured[f], std::min(low, measured[f]), std::max(high, measured[f])});
  }
  return intervals;
}

std::string verdict_of(const Interval& figure, const Target& target) {
  const double best = target.is_at_most ? figure.low : figure.high;
  const double worst = target.is_at_most ? figure.high : figure.low;
  const auto keeps = [&](double value) {
    return target.is_at_most ? value <= target.limit : value >= target.limit;
  };
  if (keeps(worst)) return "good";
  return keeps(best) ? "open" : "missed";
}

}  // namespace bench
