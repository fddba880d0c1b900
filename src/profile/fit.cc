// SPDX-License-Identifier: BSD-3-Clause
#include "profile/fit.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>

#include "base/percentile.h"
#include "base/rng.h"

namespace batchplane::profile {
namespace {

constexpr double kQuiet = 0.1;  // low percentile, which stalls and slow phases do not reach
// A time is the difference of two readings, less that of two others.
constexpr double kStepsOff = 3;
constexpr uint32_t kResamples = 100;
constexpr double kLowTail = 0.025;
constexpr double kHighTail = 0.975;
// If the time grows less than this over all sizes, the slope is lost in the cost of one call or in
// the clock's resolution.
constexpr double kFlatShare = 0.1;
constexpr double kFlatNs = 5;

// A line at least this good needs no reason.
constexpr double kGoodError = 0.1;

bool is_good(const CostFit& fit) {
  return fit.small_error_ratio <= kGoodError && fit.left_out_error_ratio <= kGoodError;
}

std::string text(const char* format, double a, double b = 0, double c = 0) {
  char line[160];
  std::snprintf(line, sizeof line, format, a, b, c);
  return line;
}

// With few or skewed rounds the value itself may lie outside the resampled interval.
Interval interval(const std::vector<double>& draws, double value) {
  return {std::min(percentile(draws, kLowTail), value),
          std::max(percentile(draws, kHighTail), value)};
}

}  // namespace

std::string reason_of(const CostFit& fit, std::span<const CostLaw::Point> points, double noise_ns) {
  const CostLaw::Line& line = fit.line;
  std::string clamped;
  if (fit.is_clamped) {
    clamped =
        line.cost_per_pkt_ns > 0
            ? text("a negative cost per batch, %.1f ns, was set to 0; ", fit.free.cost_per_batch_ns)
            : text("a negative cost per packet, %.1f ns, was set to 0; ", fit.free.cost_per_pkt_ns);
  }
  if (is_good(fit)) return clamped.empty() ? "" : clamped + "the line fits all the same";
  const CostLaw law(line);
  const auto error_of = [&](const CostLaw::Point& point) {
    return law.error_ratio(std::span(&point, 1));
  };
  const CostLaw::Point& worst = *std::ranges::max_element(points, {}, error_of);
  const double growth_ns =
      line.cost_per_pkt_ns * (points.back().size_pkts - points.front().size_pkts);
  const double worst_ns = std::abs(law.ns(worst.size_pkts) - worst.ns);
  if (growth_ns <= std::max(kFlatShare * law.ns(points.back().size_pkts), kFlatNs)) {
    return clamped + text(
                         "the time hardly depends on the batch size: it grows by %.1f ns from %g "
                         "packet to %g",
                         growth_ns, points.front().size_pkts, points.back().size_pkts);
  }
  if (worst_ns <= 3 * noise_ns) {
    return clamped + text("the machine was not quiet: times are uncertain by %.1f ns", noise_ns);
  }
  return clamped + text(
                       "the time does not grow in a straight line: %.1f ns or %.0f %% off at %g "
                       "packets, where the table holds",
                       worst_ns, 100 * error_of(worst), worst.size_pkts);
}

double undisturbed(const std::vector<double>& times, double step) {
  const double quiet = percentile(times, kQuiet);
  double sum = 0;
  uint32_t n = 0;
  for (const double time : times) {
    if (std::abs(time - quiet) > kStepsOff * step) continue;
    sum += time;
    ++n;
  }
  return sum / n;
}

std::vector<double> Rounds::times() const {
  std::vector<uint32_t> all(count());
  std::iota(all.begin(), all.end(), 0U);
  return times_of(all);
}

std::vector<double> Rounds::times_of(std::span<const uint32_t> rounds) const {
  std::vector<double> times;
  std::vector<double> chosen(rounds.size());
  for (size_t s = 0; s < ns_.size(); ++s) {
    std::ranges::transform(rounds, chosen.begin(), [&](uint32_t r) { return ns_[s][r]; });
    times.push_back(undisturbed(chosen, steps_ns_[s]));
  }
  return times;
}

Interval interval_of(const std::vector<CostLaw::Line>& resampled, double value,
                     const std::function<double(const CostLaw::Line&)>& figure_of) {
  std::vector<double> draws;
  for (const CostLaw::Line& line : resampled) draws.push_back(figure_of(line));
  return interval(draws, value);
}

Fitted fit_rounds(std::span<const uint32_t> sizes_pkts, const Rounds& rounds) {
  const auto points_of = [&](const std::vector<double>& times) {
    std::vector<CostLaw::Point> points;
    for (size_t s = 0; s < times.size(); ++s) {
      points.push_back({sizes_pkts[s], std::max(times[s], 0.0)});
    }
    return points;
  };
  Fitted fitted;
  const std::vector<double> ns = rounds.times();
  for (size_t s = 0; s < ns.size(); ++s) {
    (void)at_least_0(ns[s], kLeastNoiseNs,
                     "batches of " + std::to_string(sizes_pkts[s]) + " packets", fitted.doubts);
  }
  fitted.fit = fit_line(points_of(ns));
  fitted.law = CostLaw(points_of(ns), fitted.fit.line);
  const auto n_rounds = static_cast<uint32_t>(rounds.count());
  std::vector<uint32_t> chosen(n_rounds);
  std::vector<std::vector<double>> of_size(ns.size());
  Rng rng(1);
  for (uint32_t i = 0; i < kResamples; ++i) {
    for (uint32_t& round : chosen) round = rng.below(n_rounds);
    const std::vector<double> times = rounds.times_of(chosen);
    fitted.resampled.push_back(fit_line(points_of(times)).line);
    for (size_t s = 0; s < times.size(); ++s) of_size[s].push_back(times[s]);
  }
  for (size_t s = 0; s < of_size.size(); ++s) {
    const Interval i = interval(of_size[s], ns[s]);
    fitted.noise_ns += (i.high - i.low) / 2 / static_cast<double>(of_size.size());
  }
  return fitted;
}

}  // namespace batchplane::profile
