// SPDX-License-Identifier: BSD-3-Clause
// whole_fit.cc - how running all modules together changes their costs, and what packets from
// another core cost in addition.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "base/least_squares.h"
#include "profile/whole.h"

namespace batchplane::profile {
namespace {

// Weights of the prior that no cost changes, and of the prior that both stretches change alike; a
// measured point weighs 1.
constexpr double kBelief = 0.002;
constexpr double kAlike = 0.004;
constexpr double kMaxFactor = 3;
constexpr double kMinFactor = 1 / kMaxFactor;
constexpr double kFitNoiseShare = 0.01;  // of a time
// Packets from another core over those of the same core. Stretches of a point differ by a tenth; more than
// the most is longer than any transfers of cache lines.
constexpr double kLeastOfNear = 0.9;
constexpr double kMostOfNear = 20;

constexpr int kFactors = 2 * kStretches;  // cost per batch and per packet of each stretch
constexpr int kUnknowns = kFactors + 3;   // and the costs of packets from the other core
using Fit = LeastSquares<kUnknowns>;
using Unknowns = Fit::Row;

// What one unit of each unknown adds to a packet's time at this point.
Unknowns shares_of(const WholePoint& point) {
  Unknowns x{};
  for (int s = 0; s < kStretches; ++s) {
    x[2 * s] = point.parts[s].cost_per_batch_ns;
    x[2 * s + 1] = point.parts[s].cost_per_pkt_ns;
  }
  if (!point.is_far || point.pkts_per_loop <= 0) return x;
  x[kFactors] = 1 / point.pkts_per_loop;
  x[kFactors + 1] = 1;
  x[kFactors + 2] = std::min<double>(point.pkts_per_loop, kFarEarlyPkts) / point.pkts_per_loop;
  return x;
}

// Adds the point's relative error.
void add(const WholePoint& point, Fit& fit) {
  Unknowns x = shares_of(point);
  for (double& share : x) share /= point.measured_ns_per_pkt;
  fit.add(x, 1, point.weight);
}

void believe(Fit& fit) {
  for (int a = 0; a < kFactors; ++a) {
    Unknowns one{};
    one[a] = 1;
    fit.add(one, 1, kBelief);
    const int alike = a + 2;  // the same cost of the other stretch
    if (alike >= kFactors) continue;
    one[alike] = -1;
    fit.add(one, 0, kAlike);
  }
}

// The best value of one unknown, without bounds, beside the others as they are.
double free_value(const Fit& fit, const Unknowns& x, int unknown) {
  constexpr double kMost = std::numeric_limits<double>::max();
  Unknowns low = x;
  Unknowns high = x;
  low[unknown] = -kMost;
  high[unknown] = kMost;
  return fit.solve(x, low, high)[unknown];
}

// Whether `more` of an unknown changes the time at any point beyond noise.
bool has_effect(const WholeCheck& check, int unknown, double more) {
  return std::ranges::any_of(check.points, [&](const WholePoint& point) {
    return std::abs(more * shares_of(point)[unknown]) > kFitNoiseShare * point.measured_ns_per_pkt;
  });
}

// Tells which unknowns a bound keeps from their best value.
void doubt_bounds(const Fit& fit, const Unknowns& x, WholeCheck& check) {
  constexpr const char* kNames[kUnknowns] = {
      "costs per batch up to the first splitter",
      "costs per packet up to the first splitter",
      "costs per batch behind splitters",
      "costs per packet behind splitters",
      "the extra cost of a poll from another core",
      "the extra cost of a packet from another core",
      "the extra cost of the first packets of a poll from another core"};
  for (int a = 0; a < kUnknowns; ++a) {
    const double best = free_value(fit, x, a);
    if (!has_effect(check, a, best - x[a])) continue;
    char line[200];
    if (a < kFactors) {
      std::snprintf(
          line, sizeof line,
          "%s: best with %.2f times those measured alone, beyond the limits: %.2f times is used",
          kNames[a], best, x[a]);
    } else {
      std::snprintf(line, sizeof line, "%s: %.1f ns, which cannot be: 0 is used", kNames[a], best);
    }
    check.doubts.emplace_back(line);
  }
}

}  // namespace

void reject_impossible(WholeCheck& check) {
  double most_ns = 0;  // of packets of the same core
  for (const WholePoint& point : check.points) {
    if (!point.is_far) most_ns = std::max(most_ns, point.measured_ns_per_pkt);
  }
  if (most_ns <= 0) return;
  const auto near_of = [&](const WholePoint& far) {
    double near_ns = most_ns;
    // The largest polls are the cheapest.
    for (const WholePoint& point : check.points) {
      if (point.is_far || point.trigger_pkts != far.trigger_pkts) continue;
      near_ns = std::min(near_ns, point.measured_ns_per_pkt);
    }
    return near_ns;
  };
  std::vector<WholePoint> kept;
  for (const WholePoint& point : check.points) {
    const double ns = point.measured_ns_per_pkt;
    const double least_ns = near_of(point);
    const bool is_cheap = ns < kLeastOfNear * least_ns;
    if (!point.is_far || (!is_cheap && ns <= kMostOfNear * most_ns)) {
      kept.push_back(point);
      continue;
    }
    char line[240];
    std::snprintf(
        line, sizeof line,
        "packets from another core, trigger %u, polls of %.1f: %.1f ns per packet, where packets "
        "of the same core take %.1f ns, which cannot be: this point is left out",
        point.trigger_pkts, point.pkts_per_loop, ns, is_cheap ? least_ns : most_ns);
    check.doubts.emplace_back(line);
    ++check.n_rejected;
  }
  check.points = std::move(kept);
}

void fit_whole(WholeCheck& check) {
  Fit fit;
  for (const WholePoint& point : check.points) {
    if (point.measured_ns_per_pkt > 0) add(point, fit);
  }
  believe(fit);
  Unknowns start{};
  Unknowns low{};
  Unknowns high;
  high.fill(std::numeric_limits<double>::max());
  std::fill_n(start.begin(), kFactors, 1.0);
  std::fill_n(low.begin(), kFactors, kMinFactor);
  std::fill_n(high.begin(), kFactors, kMaxFactor);
  const Unknowns x = fit.solve(start, low, high);
  doubt_bounds(fit, x, check);
  for (int s = 0; s < kStretches; ++s) check.factors[s] = {x[2 * s], x[2 * s + 1]};
  check.far = {x[kFactors], x[kFactors + 1], x[kFactors + 2]};
}

}  // namespace batchplane::profile
