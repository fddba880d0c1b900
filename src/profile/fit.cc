// SPDX-License-Identifier: BSD-3-Clause
#include "profile/fit.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>

#include "base/rng.h"

namespace batchplane::profile {
namespace {

constexpr double kQuiet = 0.1;  // percentile that stalls and slow spells do not reach
constexpr uint32_t kResamples = 100;
constexpr double kLowTail = 0.025;
constexpr double kHighTail = 0.975;
// Below this growth over the whole range the slope is lost in what one call costs, or in what a
// clock can tell.
constexpr double kFlatShare = 0.1;
constexpr double kFlatNs = 5;

double mean_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double explained(const CostLaw& law, std::span<const double> pkts, std::span<const double> ns) {
  const double mean = mean_of(ns);
  double left = 0;
  double spread = 0;
  for (size_t i = 0; i < ns.size(); ++i) {
    left += (ns[i] - law.at(pkts[i])) * (ns[i] - law.at(pkts[i]));
    spread += (ns[i] - mean) * (ns[i] - mean);
  }
  // Equal values are explained by any line through them.
  return spread > 0 ? std::max(1 - left / spread, 0.0) : 1.0;
}

std::string text(const char* format, double a, double b = 0, double c = 0) {
  char line[160];
  std::snprintf(line, sizeof line, format, a, b, c);
  return line;
}

}  // namespace

double CostLaw::batchiness(uint32_t batch_limit_pkts) const {
  const double of_one = at(1) * batch_limit_pkts;
  return of_one > 0 ? at(batch_limit_pkts) / of_one : 1.0;
}

CostLaw fit_law(std::span<const double> pkts, std::span<const double> ns) {
  const double mean_x = mean_of(pkts);
  const double mean_y = mean_of(ns);
  double xx = 0;
  double xy = 0;
  double at_origin_xx = 0;
  double at_origin_xy = 0;
  for (size_t i = 0; i < pkts.size(); ++i) {
    xx += (pkts[i] - mean_x) * (pkts[i] - mean_x);
    xy += (pkts[i] - mean_x) * (ns[i] - mean_y);
    at_origin_xx += pkts[i] * pkts[i];
    at_origin_xy += pkts[i] * ns[i];
  }
  CostLaw law;
  law.per_pkt_ns = xx > 0 ? xy / xx : 0;
  law.per_batch_ns = mean_y - law.per_pkt_ns * mean_x;
  if (law.per_pkt_ns < 0) {
    law = {.per_batch_ns = std::max(mean_y, 0.0), .is_clamped = true};
  } else if (law.per_batch_ns < 0) {
    law = {.per_pkt_ns = std::max(at_origin_xy / at_origin_xx, 0.0), .is_clamped = true};
  }
  law.r_squared = explained(law, pkts, ns);
  return law;
}

std::string reason_of(const CostLaw& law, std::span<const double> pkts, std::span<const double> ns,
                      double noise_ns) {
  std::string clamped;
  if (law.is_clamped) {
    clamped = law.per_pkt_ns > 0 ? "a negative cost per batch was set to 0; "
                                 : "a negative cost per packet was set to 0; ";
  }
  if (law.r_squared > kGoodRSquared && clamped.empty()) return "";
  const double growth_ns = law.per_pkt_ns * (pkts.back() - pkts.front());
  double worst_ns = 0;
  double worst_pkts = pkts.front();
  for (size_t i = 0; i < ns.size(); ++i) {
    if (std::abs(ns[i] - law.at(pkts[i])) <= worst_ns) continue;
    worst_ns = std::abs(ns[i] - law.at(pkts[i]));
    worst_pkts = pkts[i];
  }
  if (law.r_squared > kGoodRSquared) return clamped + "the line fits all the same";
  if (growth_ns <= std::max(kFlatShare * law.at(pkts.back()), kFlatNs)) {
    return clamped + text(
                         "the time hardly depends on the batch size: it grows by %.1f ns from %g "
                         "packet to %g",
                         growth_ns, pkts.front(), pkts.back());
  }
  if (worst_ns <= 3 * noise_ns) {
    return clamped + text("the machine was not quiet: times are uncertain by %.1f ns", noise_ns);
  }
  return clamped + text(
                       "the time does not grow in a straight line: %.1f ns off at %g packets, "
                       "where the table holds",
                       worst_ns, worst_pkts);
}

double percentile(std::vector<double> values, double p) {
  const auto rank = static_cast<std::ptrdiff_t>(p * static_cast<double>(values.size() - 1) + 0.5);
  std::nth_element(values.begin(), values.begin() + rank, values.end());
  return values[static_cast<size_t>(rank)];
}

std::vector<double> Rounds::times() const {
  std::vector<uint32_t> all(count());
  std::iota(all.begin(), all.end(), 0U);
  return times_of(all);
}

std::vector<double> Rounds::times_of(std::span<const uint32_t> rounds) const {
  std::vector<double> times;
  std::vector<double> chosen(rounds.size());
  for (const std::vector<double>& of_size : ns_) {
    std::ranges::transform(rounds, chosen.begin(), [&](uint32_t r) { return of_size[r]; });
    times.push_back(percentile(chosen, kQuiet));
  }
  return times;
}

Fitted fit_rounds(std::span<const double> pkts, const Rounds& rounds) {
  Fitted fitted;
  fitted.ns = rounds.times();
  fitted.law = fit_law(pkts, fitted.ns);
  const auto n_rounds = static_cast<uint32_t>(rounds.count());
  std::vector<uint32_t> chosen(n_rounds);
  std::vector<double> per_batch;
  std::vector<double> per_pkt;
  std::vector<std::vector<double>> of_size(fitted.ns.size());
  Rng rng(1);
  for (uint32_t i = 0; i < kResamples; ++i) {
    for (uint32_t& round : chosen) round = rng.below(n_rounds);
    const std::vector<double> times = rounds.times_of(chosen);
    const CostLaw law = fit_law(pkts, times);
    per_batch.push_back(law.per_batch_ns);
    per_pkt.push_back(law.per_pkt_ns);
    for (size_t s = 0; s < times.size(); ++s) of_size[s].push_back(times[s]);
  }
  // Of few or skewed rounds the figure itself may lie outside of what resampling gives.
  const auto interval = [](const std::vector<double>& draws, double value) {
    return Interval{std::min(percentile(draws, kLowTail), value),
                    std::max(percentile(draws, kHighTail), value)};
  };
  fitted.per_batch_ns = interval(per_batch, fitted.law.per_batch_ns);
  fitted.per_pkt_ns = interval(per_pkt, fitted.law.per_pkt_ns);
  for (size_t s = 0; s < of_size.size(); ++s) {
    const Interval i = interval(of_size[s], fitted.ns[s]);
    fitted.noise_ns += (i.high - i.low) / 2 / static_cast<double>(of_size.size());
  }
  return fitted;
}

}  // namespace batchplane::profile
