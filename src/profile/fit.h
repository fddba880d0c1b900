// SPDX-License-Identifier: BSD-3-Clause
// fit.h - turns repeated timings into a cost law: the undisturbed time of each batch size, and
// intervals from resampled rounds.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/cost_fit.h"
#include "profile/doubts.h"

namespace batchplane::profile {

struct Interval {
  double low = 0;
  double high = 0;
};

// Why a line does not describe these points; empty if it does. `noise_ns`: uncertainty of the times
// themselves.
[[nodiscard]] std::string reason_of(const CostFit& fit, std::span<const CostLaw::Point> points,
                                    double noise_ns);

// What repeated timings take when nothing disturbs them: their 10th percentile on a clock that tells any
// two times apart. A clock with steps measures 37 ns as 30 or 40, so the mean of all that lie within a few
// steps of that counts. Timings that were disturbed by less than that are among them.
[[nodiscard]] double undisturbed(const std::vector<double>& times, double step);

// Many rounds of measurements, each with every size once.
class Rounds {
 public:
  // `steps_ns`, by size: those of the clock, over the batches that are timed at once.
  explicit Rounds(std::vector<double> steps_ns)
      : steps_ns_(std::move(steps_ns)), ns_(steps_ns_.size()) {}
  void add(uint32_t size_index, double ns) { ns_[size_index].push_back(ns); }
  [[nodiscard]] size_t count() const { return ns_.empty() ? 0 : ns_.front().size(); }

  // The undisturbed time of each size, over all rounds, or over those chosen (repeats allowed).
  [[nodiscard]] std::vector<double> times() const;
  [[nodiscard]] std::vector<double> times_of(std::span<const uint32_t> rounds) const;

 private:
  std::vector<double> steps_ns_;
  std::vector<std::vector<double>> ns_;  // by size, then round
};

struct Fitted {
  CostLaw law;  // a table of the times, and the line
  CostFit fit;
  std::vector<CostLaw::Line> resampled;  // lines from resampled rounds
  double noise_ns = 0;                   // mean half width of the 95 % intervals of the times
  Doubts doubts;
};

// 95 % interval of a figure over the resampled lines, around the figure itself.
[[nodiscard]] Interval interval_of(const std::vector<CostLaw::Line>& resampled, double value,
                                   const std::function<double(const CostLaw::Line&)>& figure_of);

// The law of these sizes; resampling is seeded.
[[nodiscard]] Fitted fit_rounds(std::span<const uint32_t> sizes_pkts, const Rounds& rounds);

}  // namespace batchplane::profile
