// SPDX-License-Identifier: BSD-3-Clause
// whole_fit.cc - what the company of the others does to the costs of the parts.
#include <algorithm>

#include "profile/whole.h"

namespace batchplane::profile {
namespace {

// Weight of the belief that nothing changes, beside points that weigh 1 each.
constexpr double kBelief = 0.002;
constexpr double kMostFactor = 3;
constexpr double kLeastFactor = 1 / kMostFactor;

}  // namespace

// Least squares of the relative error, with both factors held to 1 by kBelief.
void fit_whole(WholeCheck& check) {
  double bb = kBelief, bp = 0, pp = kBelief, by = kBelief, py = kBelief;
  for (const WholePoint& point : check.points) {
    if (point.is_far || point.measured_ns_per_pkt <= 0) continue;
    const double b = point.batch_ns_per_pkt / point.measured_ns_per_pkt;
    const double p = point.pkt_ns_per_pkt / point.measured_ns_per_pkt;
    bb += b * b;
    bp += b * p;
    pp += p * p;
    by += b;
    py += p;
  }
  const double determinant = bb * pp - bp * bp;
  check.batch_factor = std::clamp((by * pp - py * bp) / determinant, kLeastFactor, kMostFactor);
  check.pkt_factor = std::clamp((py * bb - by * bp) / determinant, kLeastFactor, kMostFactor);
  double more_ns = 0;
  double points = 0;
  for (const WholePoint& point : check.points) {
    if (!point.is_far) continue;
    more_ns += point.measured_ns_per_pkt - check.at(point);
    points += 1;
  }
  check.far_per_pkt_ns = points > 0 ? std::max(0.0, more_ns / points) : 0;
}

}  // namespace batchplane::profile
