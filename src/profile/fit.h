// SPDX-License-Identifier: BSD-3-Clause
// fit.h - from rounds of times to a cost law: the time of each size when nothing gets in the way,
// and intervals from resampled rounds.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/cost_fit.h"

namespace batchplane::profile {

struct Interval {
  double low = 0;
  double high = 0;
};

// What is wrong with a line through these points; empty when it says all that there is. `noise_ns`:
// how far the times themselves are uncertain.
[[nodiscard]] std::string reason_of(const CostFit& fit, std::span<const CostLaw::Point> points,
                                    double noise_ns);

// By nearest rank; at least one value.
[[nodiscard]] double percentile(std::vector<double> values, double p);

// What many rounds measured: in each, every size once.
class Rounds {
 public:
  explicit Rounds(uint32_t n_sizes) : ns_(n_sizes) {}
  void add(uint32_t size_index, double ns) { ns_[size_index].push_back(ns); }
  [[nodiscard]] size_t count() const { return ns_.empty() ? 0 : ns_.front().size(); }

  // The time of each size when nothing gets in the way: 10th percentile over the rounds, or over
  // those chosen (repeats allowed).
  [[nodiscard]] std::vector<double> times() const;
  [[nodiscard]] std::vector<double> times_of(std::span<const uint32_t> rounds) const;

 private:
  std::vector<std::vector<double>> ns_;  // by size, then round
};

struct Fitted {
  CostLaw law;  // the time of each size, and the line
  CostFit fit;
  std::vector<CostLaw::Line> resampled;  // lines of rounds drawn anew
  double noise_ns = 0;                   // mean half width of the times' own 95 % intervals
};

// Of a figure of resampled lines: 95 % of them, and the figure itself.
[[nodiscard]] Interval interval_of(const std::vector<CostLaw::Line>& resampled, double value,
                                   const std::function<double(const CostLaw::Line&)>& figure_of);

// The law of these sizes; what may be drawn is seeded.
[[nodiscard]] Fitted fit_rounds(std::span<const uint32_t> sizes_pkts, const Rounds& rounds);

}  // namespace batchplane::profile
