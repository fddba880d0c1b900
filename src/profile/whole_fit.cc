// SPDX-License-Identifier: BSD-3-Clause
// whole_fit.cc - what the company of the others does to the costs of the parts.
#include <algorithm>

#include "profile/whole.h"

namespace batchplane::profile {
namespace {

// Weight of the belief that nothing changes, and that both stretches change alike, beside points
// that weigh 1 each.
constexpr double kBelief = 0.002;
constexpr double kAlike = 0.004;
constexpr int kRounds = 2000;  // of descent, far beyond what four factors need
constexpr double kMostFactor = 3;
constexpr double kLeastFactor = 1 / kMostFactor;

// Least squares of the relative error once more: a poll's share and a packet's of what comes on
// top.
void fit_far(WholeCheck& check) {
  double bb = 0, bp = 0, pp = 0, by = 0, py = 0;
  for (const WholePoint& point : check.points) {
    if (!point.is_far || point.measured_ns_per_pkt <= 0 || point.pkts_per_loop <= 0) continue;
    const double p = point.weight / point.measured_ns_per_pkt;
    const double b = p / point.pkts_per_loop;
    const double y = point.weight - check.at(point) * p;
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

// Least squares of the relative error, factor after factor within its bounds.
void fit_whole(WholeCheck& check) {
  constexpr int kFactors = 2 * kStretches;  // batch and packet of each stretch
  double square[kFactors][kFactors] = {};
  double right[kFactors] = {};
  for (const WholePoint& point : check.points) {
    if (point.is_far || point.measured_ns_per_pkt <= 0) continue;
    double x[kFactors];
    for (int s = 0; s < kStretches; ++s) {
      x[2 * s] = point.laws_ns_per_pkt[s].batch_ns / point.measured_ns_per_pkt;
      x[2 * s + 1] = point.laws_ns_per_pkt[s].pkt_ns / point.measured_ns_per_pkt;
    }
    for (int a = 0; a < kFactors; ++a) {
      right[a] += x[a];
      for (int b = 0; b < kFactors; ++b) square[a][b] += x[a] * x[b];
    }
  }
  for (int a = 0; a < kFactors; ++a) {
    const int alike = (a + 2) % kFactors;  // the same of the other stretch
    right[a] += kBelief;
    square[a][a] += kBelief + kAlike;
    square[a][alike] -= kAlike;
  }
  double factor[kFactors];
  std::fill_n(factor, kFactors, 1.0);
  for (int round = 0; round < kRounds; ++round) {
    for (int a = 0; a < kFactors; ++a) {
      double left = right[a];
      for (int b = 0; b < kFactors; ++b) left -= b == a ? 0 : square[a][b] * factor[b];
      factor[a] = std::clamp(left / square[a][a], kLeastFactor, kMostFactor);
    }
  }
  for (int s = 0; s < kStretches; ++s) check.factors[s] = {factor[2 * s], factor[2 * s + 1]};
  fit_far(check);
}

}  // namespace batchplane::profile
