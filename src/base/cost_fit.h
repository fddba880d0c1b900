// SPDX-License-Identifier: BSD-3-Clause
// cost_fit.h - fits the line of a cost law to measured batch times or to sampled executions, and tells how
// good the fit is.
#pragma once

#include <cstdint>
#include <span>

#include "base/cost_law.h"

namespace batchplane {

// Sums over sampled executions, as integers: enough to fit a line.
struct CostSamples {
  uint64_t batches = 0;
  uint64_t pkts = 0;
  uint64_t pkts_squared = 0;
  uint64_t cycles = 0;
  uint64_t cycles_pkts = 0;  // sum of cycles * batch size

  void add(uint64_t n_pkts, uint64_t n_cycles) {
    batches += 1;
    pkts += n_pkts;
    pkts_squared += n_pkts * n_pkts;
    cycles += n_cycles;
    cycles_pkts += n_cycles * n_pkts;
  }
  CostSamples& operator+=(const CostSamples& other);
  // With times in units of so many cycles, to the nearest: a slope is the difference of two sums, so what is always
  // lost would be one.
  [[nodiscard]] CostSamples in_units_of(double cycles_each) const;
  // The samples since `before`, an earlier reading of the same sums.
  [[nodiscard]] CostSamples since(const CostSamples& before) const;
  // False for sums that no set of batches can have: a torn read, or a counter that wrapped.
  [[nodiscard]] bool is_possible() const;
};

// Weighted CostSamples: sums of 1, n, n^2, t and t n over batches of n packets that took time t.
struct CostSums {
  double batches = 0;
  double pkts = 0;
  double pkts_squared = 0;
  double time_ns = 0;
  double time_pkts_ns = 0;

  CostSums() = default;
  explicit CostSums(const CostSamples& samples, double ns_per_cycle = 1);
  void add(double size_pkts, double ns, double weight);

  [[nodiscard]] double mean_pkts() const { return pkts / batches; }
  [[nodiscard]] double mean_ns() const { return time_ns / batches; }
  // Variance of the batch sizes.
  [[nodiscard]] double variance_pkts2() const;
  // Coefficient of variation of the batch sizes: standard deviation over mean.
  [[nodiscard]] double variation() const;
};

// Least squares over the sums, with neither cost negative. Batch sizes that hardly vary determine only the
// mean time: the line through it is then pulled towards one with the cost ratio of `shape`. Data and `shape`
// weigh the same at a variation of `even_variation`; 0: only the data count, if they determine a line.
[[nodiscard]] CostLaw::Line fit_line(const CostSums& sums, const CostLaw::Line& shape,
                                     double even_variation);

struct CostFit {
  CostLaw::Line line;
  CostLaw::Line free;       // the best if costs could be negative
  bool is_clamped = false;  // one of those costs is negative
  double r_squared = 0;     // share of the variance explained
  // Relative errors: the worst at sizes of 1 to 4 packets, where they matter most, and the mean at sizes left
  // out of the fit (cross-validation).
  double small_error_ratio = 0;
  double left_out_error_ratio = 0;
};

// The line of least relative error. Large errors count linearly, not squared, so that a few outliers do not
// move the line. Needs at least one point. Times below `min_ns` are noise and count as `min_ns`.
[[nodiscard]] CostFit fit_line(std::span<const CostLaw::Point> points, double min_ns = 1);

}  // namespace batchplane
