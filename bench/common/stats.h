// SPDX-License-Identifier: BSD-3-Clause
// stats.h - percentiles and bootstrap intervals of what trials measured.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/percentile.h"

namespace bench {

// A figure with its 95 % bootstrap interval.
struct Interval {
  double median = 0;  // the figure itself
  double low = 0;
  double high = 0;
};

using batchplane::percentile;
[[nodiscard]] double median_of(std::vector<double> values);
// Median, least and most.
[[nodiscard]] Interval spread(const std::vector<double>& values);

// Figures computed from trials chosen by index. Called once with all trials in order for the
// figures themselves, then with resamples (of whole trials, so that what ran together stays
// together).
using FiguresOf = std::function<std::vector<double>(const std::vector<uint32_t>& trials)>;
[[nodiscard]] std::vector<Interval> bootstrap(uint32_t n_trials, uint32_t resamples,
                                              const FiguresOf& figures);

// A bound that a figure must keep.
struct Target {
  double limit = 0;
  bool is_at_most = true;
};
// "good" when the whole interval keeps the bound, "missed" when all of it breaks it, else "open".
[[nodiscard]] std::string verdict_of(const Interval& figure, const Target& target);

}  // namespace bench
