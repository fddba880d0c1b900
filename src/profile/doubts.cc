// SPDX-License-Identifier: BSD-3-Clause
#include "profile/doubts.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/cost_fit.h"

namespace batchplane::profile {
namespace {

// Two medians of the same work differ by so much on a quiet machine.
constexpr double kNoiseShare = 0.05;

std::string ns_text(double ns) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f ns", ns);
  return text;
}

double noise_of(double ns) { return std::max(kLeastNoiseNs, kNoiseShare * std::abs(ns)); }

}  // namespace

double at_least_0(double ns, double noise_ns, const std::string& what, Doubts& doubts) {
  if (ns < -noise_ns) doubts.push_back(what + ": " + ns_text(ns) + ", which cannot be: 0 is used");
  return std::max(ns, 0.0);
}

double extra_ns(double far_ns, double near_ns, const std::string& what, Doubts& doubts) {
  if (far_ns < near_ns - noise_of(near_ns)) {
    doubts.push_back(what + ": " + ns_text(far_ns) + ", less than the " + ns_text(near_ns) +
                     " of packets of the same core, which cannot be: no extra cost is used");
  }
  return std::max(far_ns - near_ns, 0.0);
}

double at_least_part(double whole_ns, const std::string& whole, double part_ns,
                     const std::string& part, Doubts& doubts) {
  if (whole_ns < part_ns - noise_of(part_ns)) {
    doubts.push_back(whole + ": " + ns_text(whole_ns) + ", less than " + part +
                     ", a part of it, alone: " + ns_text(part_ns) + " is used");
  }
  return std::max(whole_ns, part_ns);
}

CostLaw::Line line_of(std::span<const CostLaw::Point> points, double noise_ns,
                      const LineNames& names, Doubts& doubts) {
  const CostFit fit = fit_line(points, noise_ns);
  if (fit.is_clamped) {
    const double most_pkts = points.back().size_pkts;
    (void)at_least_0(fit.free.cost_per_batch_ns, noise_ns, names.per_batch, doubts);
    (void)at_least_0(fit.free.cost_per_pkt_ns, noise_ns / most_pkts, names.per_pkt, doubts);
  }
  return fit.line;
}

}  // namespace batchplane::profile
