// SPDX-License-Identifier: BSD-3-Clause
// cost_fit.cc - least squares for cost laws: a single weighted fit for sampled executions, an iteratively
// reweighted one for measured batch times.
#include "base/cost_fit.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace batchplane {
namespace {

using Line = CostLaw::Line;
using Point = CostLaw::Point;

// Relative error up to which the loss is quadratic.
constexpr double kUsualError = 0.05;
constexpr int kMaxRounds = 200;
constexpr double kSettled = 1e-12;
constexpr uint32_t kSmallPkts = 4;
constexpr size_t kFolds = 4;

enum class Bound : uint8_t { kNone, kNoBatchCost, kNoPktCost };

Line least_squares(const CostSums& sums, Bound bound) {
  if (bound == Bound::kNoBatchCost) return {0, sums.time_pkts_ns / sums.pkts_squared};
  const double variance = sums.variance_pkts2();
  if (bound == Bound::kNoPktCost || variance <= 0) return {sums.mean_ns(), 0};
  const double slope_ns =
      (sums.time_pkts_ns / sums.batches - sums.mean_ns() * sums.mean_pkts()) / variance;
  return {sums.mean_ns() - slope_ns * sums.mean_pkts(), slope_ns};
}

double relative_error(const Line& line, const Point& point, double min_ns) {
  return std::abs(line.ns(point.size_pkts) - point.ns) / std::max(point.ns, min_ns);
}

// Minimises Huber's loss of the relative errors by iteratively reweighted least squares.
Line settle(std::span<const Point> points, double min_ns, Bound bound) {
  Line line;
  for (int round = 0; round < kMaxRounds; ++round) {
    CostSums sums;
    for (const Point& point : points) {
      const double unit_ns = std::max(point.ns, min_ns);
      const double error = round == 0 ? 0 : relative_error(line, point, min_ns);
      const double trust = error > kUsualError ? kUsualError / error : 1;
      sums.add(point.size_pkts, point.ns, trust / (unit_ns * unit_ns));
    }
    const Line next = least_squares(sums, bound);
    const double scale_ns = std::max(sums.mean_ns(), min_ns);
    const double moved_ns =
        std::abs(next.ns(0) - line.ns(0)) +
        std::abs(next.cost_per_pkt_ns - line.cost_per_pkt_ns) * sums.mean_pkts();
    line = next;
    if (round != 0 && moved_ns <= kSettled * scale_ns) break;
  }
  return line;
}

// The lines with and without bounds.
CostFit lines_of(std::span<const Point> points, double min_ns) {
  const Line line = settle(points, min_ns, Bound::kNone);
  // Costs that are negative only by rounding count as 0.
  const double zero_ns = 1e-9 * (std::abs(line.cost_per_batch_ns) + std::abs(line.cost_per_pkt_ns));
  const Bound bound = line.cost_per_pkt_ns < 0     ? Bound::kNoPktCost
                      : line.cost_per_batch_ns < 0 ? Bound::kNoBatchCost
                                                   : Bound::kNone;
  return {.line = bound == Bound::kNone ? line : settle(points, min_ns, bound),
          .free = line,
          .is_clamped = std::min(line.cost_per_batch_ns, line.cost_per_pkt_ns) < -zero_ns};
}

double explained(const Line& line, std::span<const Point> points) {
  double mean_ns = 0;
  for (const Point& point : points) mean_ns += point.ns / static_cast<double>(points.size());
  double left = 0;
  double spread = 0;
  for (const Point& point : points) {
    left += std::pow(point.ns - line.ns(point.size_pkts), 2);
    spread += std::pow(point.ns - mean_ns, 2);
  }
  // Any line through equal values explains them.
  return spread > 0 ? std::max(1 - left / spread, 0.0) : 1.0;
}

double left_out_error(std::span<const Point> points, double min_ns) {
  double sum = 0;
  size_t n = 0;
  for (size_t fold = 0; fold < kFolds; ++fold) {
    std::vector<Point> shown;
    for (size_t i = 0; i < points.size(); ++i) {
      if (i % kFolds != fold) shown.push_back(points[i]);
    }
    if (shown.size() < 2) continue;
    const Line line = lines_of(shown, min_ns).line;
    for (size_t i = fold; i < points.size(); i += kFolds, ++n) {
      sum += relative_error(line, points[i], min_ns);
    }
  }
  return n == 0 ? 0 : sum / static_cast<double>(n);
}

}  // namespace

CostSamples& CostSamples::operator+=(const CostSamples& other) {
  batches += other.batches;
  pkts += other.pkts;
  pkts_squared += other.pkts_squared;
  cycles += other.cycles;
  cycles_pkts += other.cycles_pkts;
  return *this;
}

CostSamples CostSamples::since(const CostSamples& before) const {
  return {batches - before.batches, pkts - before.pkts, pkts_squared - before.pkts_squared,
          cycles - before.cycles, cycles_pkts - before.cycles_pkts};
}

CostSamples CostSamples::in_units_of(double cycles_each) const {
  CostSamples scaled = *this;
  for (uint64_t* sum : {&scaled.cycles, &scaled.cycles_pkts}) {
    *sum = static_cast<uint64_t>(std::llround(static_cast<double>(*sum) / cycles_each));
  }
  return scaled;
}

bool CostSamples::is_possible() const {
  const CostSums sums(*this);
  return batches > 0 && sums.pkts >= sums.batches &&
         sums.pkts_squared * sums.batches >= sums.pkts * sums.pkts * (1 - 1e-9) &&
         sums.pkts_squared <= sums.pkts * sums.pkts;
}

CostSums::CostSums(const CostSamples& samples, double ns_per_cycle)
    : batches(static_cast<double>(samples.batches)),
      pkts(static_cast<double>(samples.pkts)),
      pkts_squared(static_cast<double>(samples.pkts_squared)),
      time_ns(static_cast<double>(samples.cycles) * ns_per_cycle),
      time_pkts_ns(static_cast<double>(samples.cycles_pkts) * ns_per_cycle) {}

void CostSums::add(double size_pkts, double ns, double weight) {
  batches += weight;
  pkts += weight * size_pkts;
  pkts_squared += weight * size_pkts * size_pkts;
  time_ns += weight * ns;
  time_pkts_ns += weight * ns * size_pkts;
}

double CostSums::variance_pkts2() const {
  const double size_pkts = mean_pkts();
  return std::max(0.0, pkts_squared / batches - size_pkts * size_pkts);
}

double CostSums::variation() const {
  return pkts > 0 ? std::sqrt(variance_pkts2()) / mean_pkts() : 0;
}

Line fit_line(const CostSums& sums, const Line& shape, double even_variation) {
  const double size_pkts = sums.mean_pkts();
  const double time_ns = sums.mean_ns();
  const double variance = sums.variance_pkts2();
  const double covariance = sums.time_pkts_ns / sums.batches - time_ns * size_pkts;
  const double shape_ns = shape.ns(size_pkts);
  const double kept_ns = shape_ns > 0 ? shape.cost_per_pkt_ns * time_ns / shape_ns : 0;
  const double strength = even_variation * even_variation * size_pkts * size_pkts;
  const double told_ns =
      variance + strength > 0 ? (covariance + strength * kept_ns) / (variance + strength) : kept_ns;
  // Neither cost is negative: the slope lies between a flat line's and that of a line through the origin.
  const double slope_ns = std::clamp(told_ns, 0.0, time_ns / size_pkts);
  return {std::max(0.0, time_ns - slope_ns * size_pkts), slope_ns};
}

CostFit fit_line(std::span<const Point> points, double min_ns) {
  CostFit fit = lines_of(points, min_ns);
  fit.r_squared = explained(fit.line, points);
  for (const Point& point : points) {
    if (point.size_pkts > kSmallPkts) break;
    fit.small_error_ratio =
        std::max(fit.small_error_ratio, relative_error(fit.line, point, min_ns));
  }
  fit.left_out_error_ratio = left_out_error(points, min_ns);
  return fit;
}

}  // namespace batchplane
