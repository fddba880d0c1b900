// SPDX-License-Identifier: BSD-3-Clause
// whole_fit.cc - what the company of the others does to the costs of the parts, and what packets
// from another core take more.
#include <algorithm>
#include <array>
#include <limits>

#include "profile/whole.h"

namespace batchplane::profile {
namespace {

// Weight of the belief that nothing changes, and that both stretches change alike, beside points
// that weigh 1 each.
constexpr double kBelief = 0.002;
constexpr double kAlike = 0.004;
constexpr int kRounds = 20'000;  // of descent, some ms: unknowns much alike take their time
constexpr double kMaxFactor = 3;
constexpr double kMinFactor = 1 / kMaxFactor;

constexpr int kFactors = 2 * kStretches;  // batch and packet of each stretch
constexpr int kUnknowns = kFactors + 3;   // and the way from the other core
using Unknowns = std::array<double, kUnknowns>;

// What one of each unknown adds to a packet's time at this point.
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

// Least squares of the relative error: square x = right.
struct Equations {
  double square[kUnknowns][kUnknowns] = {};
  Unknowns right{};

  void add(const WholePoint& point) {
    Unknowns x = shares_of(point);
    for (double& share : x) share /= point.measured_ns_per_pkt;
    for (int a = 0; a < kUnknowns; ++a) {
      right[a] += point.weight * x[a];
      for (int b = 0; b < kUnknowns; ++b) square[a][b] += point.weight * x[a] * x[b];
    }
  }

  void believe() {
    for (int a = 0; a < kFactors; ++a) {
      const int alike = (a + 2) % kFactors;  // the same of the other stretch
      right[a] += kBelief;
      square[a][a] += kBelief + kAlike;
      square[a][alike] -= kAlike;
    }
  }

  // One unknown after the other, within its bounds.
  [[nodiscard]] Unknowns solve() const {
    Unknowns x{};
    std::fill_n(x.begin(), kFactors, 1.0);
    for (int round = 0; round < kRounds; ++round) {
      for (int a = 0; a < kUnknowns; ++a) {
        if (square[a][a] <= 0) continue;
        double left = right[a];
        for (int b = 0; b < kUnknowns; ++b) left -= b == a ? 0 : square[a][b] * x[b];
        const bool is_factor = a < kFactors;
        x[a] = std::clamp(left / square[a][a], is_factor ? kMinFactor : 0,
                          is_factor ? kMaxFactor : std::numeric_limits<double>::max());
      }
    }
    return x;
  }
};

}  // namespace

void fit_whole(WholeCheck& check) {
  Equations equations;
  for (const WholePoint& point : check.points) {
    if (point.measured_ns_per_pkt > 0) equations.add(point);
  }
  equations.believe();
  const Unknowns x = equations.solve();
  for (int s = 0; s < kStretches; ++s) check.factors[s] = {x[2 * s], x[2 * s + 1]};
  check.far = {x[kFactors], x[kFactors + 1], x[kFactors + 2]};
}

}  // namespace batchplane::profile
