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

// Least squares of the relative error once more: a poll's share and a packet's of what comes on
// top.
void fit_far(WholeCheck& check) {
  double bb = 0, bp = 0, pp = 0, by = 0, py = 0;
  for (const WholePoint& point : check.points) {
    if (!point.is_far || point.measured_ns_per_pkt <= 0 || point.pkts_per_loop <= 0) continue;
    const double p = 1 / point.measured_ns_per_pkt;
    const double b = p / point.pkts_per_loop;
    const double y = 1 - check.at(point) * p;
    bb += b * b;
    bp += b * p;
    pp += p * p;
    by += b * y;
    py += p * y;
  }
  if (pp <= 0) return;
  const double determinant = bb * pp - bp * bp;
  // Polls of one size only tell both apart as little as rounding does.
  const bool is_apart = determinant > 1e-6 * bb * pp;
  double per_batch_ns = is_apart ? (by * pp - py * bp) / determinant : 0;
  double per_pkt_ns = is_apart ? (py * bb - by * bp) / determinant : py / pp;
  if (per_batch_ns < 0) {
    per_batch_ns = 0;
    per_pkt_ns = py / pp;
  } else if (per_pkt_ns < 0) {
    per_batch_ns = by / bb;
    per_pkt_ns = 0;
  }
  check.far_per_batch_ns = std::max(0.0, per_batch_ns);
  check.far_per_pkt_ns = std::max(0.0, per_pkt_ns);
}

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
  fit_far(check);
}

}  // namespace batchplane::profile
