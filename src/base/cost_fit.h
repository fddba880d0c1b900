// SPDX-License-Identifier: BSD-3-Clause
// cost_fit.h - the line of a cost law, from times of batch sizes or from sampled executions, and
// how far it is to be trusted.
#pragma once

#include <cstdint>
#include <span>

#include "base/cost_law.h"

namespace batchplane {

// What sampled executions left behind, in whole units of time: enough for a line.
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
  // What came after `before`, which is an earlier reading of the same sums.
  [[nodiscard]] CostSamples since(const CostSamples& before) const;
  // False of sums that no batches can have: a counter was torn, or wrapped.
  [[nodiscard]] bool is_possible() const;
};

// The same with weights: of batches of size n and time t the sums of 1, n, n^2, t and t n.
struct CostSums {
  double batches = 0;
  double pkts = 0;
  double pkts_squared = 0;
  double time_ns = 0;
  double time_pkts_ns = 0;

  CostSums() = default;
  explicit CostSums(const CostSamples& samples, double ns_per_cycle = 1);
  void add(double size_pkts, double ns, double weight);
  // What was known before weighs `kept` of what it did, and more is known.
  void fade_into(double kept, const CostSums& more);

  [[nodiscard]] double mean_pkts() const { return pkts / batches; }
  [[nodiscard]] double mean_ns() const { return time_ns / batches; }
  // Of the sizes.
  [[nodiscard]] double variance_pkts2() const;
  // Standard deviation of the sizes, over their mean.
  [[nodiscard]] double variation() const;
};

// Least squares through the sums, neither cost negative. Sizes that hardly vary tell the mean time
// only: the line through it is then drawn towards one whose costs are in the proportion of `shape`.
// Both weigh the same at a variation of `even_variation`; 0: the sums alone tell, if they can.
[[nodiscard]] CostLaw::Line fit_line(const CostSums& sums, const CostLaw::Line& shape,
                                     double even_variation);

struct CostFit {
  CostLaw::Line line;
  bool is_clamped = false;  // without bounds, one of both costs would be negative
  double r_squared = 0;     // share of the variance explained
  // Relative errors: the worst at sizes of 1 to 4 packets, where they matter most, and the mean at
  // sizes that a fit of the others was not shown.
  double small_error_ratio = 0;
  double left_out_error_ratio = 0;
};

// The line of least relative errors; large errors count by themselves, not by their squares, so
// that a few sizes which do not fit move nothing. One point at least. Times below `min_ns` weigh
// as that much: below it they are noise.
[[nodiscard]] CostFit fit_line(std::span<const CostLaw::Point> points, double min_ns = 1);

}  // namespace batchplane
