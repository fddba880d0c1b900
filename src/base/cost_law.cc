// SPDX-License-Identifier: BSD-3-Clause
// cost_law.cc - evaluation and arithmetic of cost laws.
#include "base/cost_law.h"

#include <algorithm>
#include <cmath>

#include "base/cost_fit.h"

namespace batchplane {
namespace {

using Point = CostLaw::Point;

double sane(double ns) { return std::isfinite(ns) && ns > 0 ? ns : 0; }

}  // namespace

CostLaw::CostLaw(double cost_per_batch_ns, double cost_per_pkt_ns)
    : line_{sane(cost_per_batch_ns), sane(cost_per_pkt_ns)} {}

CostLaw::CostLaw(std::vector<Point> points, const Line& line)
    : CostLaw(line.cost_per_batch_ns, line.cost_per_pkt_ns) {
  points_ = std::move(points);
  for (Point& point : points_) point.ns = sane(point.ns);
}

CostLaw::CostLaw(std::vector<Point> points) : CostLaw(std::move(points), Line{}) {
  if (!points_.empty()) line_ = fit_line(points_).line;
}

double CostLaw::table_ns(double size_pkts) const {
  const auto above = std::ranges::lower_bound(points_, size_pkts, {}, &Point::size_pkts);
  if (above != points_.end() && above->size_pkts == size_pkts) return above->ns;
  if (above == points_.begin() || above == points_.end()) {
    const Point& end = above == points_.begin() ? points_.front() : points_.back();
    return std::max(0.0, end.ns + line_.cost_per_pkt_ns * (size_pkts - end.size_pkts));
  }
  const Point& below = *(above - 1);
  const double share = (size_pkts - below.size_pkts) / (above->size_pkts - below.size_pkts);
  return below.ns + share * (above->ns - below.ns);
}

CostLaw CostLaw::scaled(double batch_factor, double pkt_factor) const {
  CostLaw law(batch_factor * line_.cost_per_batch_ns, pkt_factor * line_.cost_per_pkt_ns);
  law.points_ = points_;
  for (Point& point : law.points_) {
    const double pkt_ns = std::min(point.ns, line_.cost_per_pkt_ns * point.size_pkts);
    point.ns = sane(batch_factor * (point.ns - pkt_ns) + pkt_factor * pkt_ns);
  }
  return law;
}

CostLaw& CostLaw::operator+=(const CostLaw& other) {
  std::vector<Point> sum;
  for (const std::span<const Point> table : {points(), other.points()}) {
    for (const Point& point : table) {
      sum.push_back({point.size_pkts, ns(point.size_pkts) + other.ns(point.size_pkts)});
    }
  }
  std::ranges::sort(sum, {}, &Point::size_pkts);
  const auto twice = std::ranges::unique(sum, {}, &Point::size_pkts);
  sum.erase(twice.begin(), twice.end());
  points_ = std::move(sum);
  line_.cost_per_batch_ns += other.line_.cost_per_batch_ns;
  line_.cost_per_pkt_ns += other.line_.cost_per_pkt_ns;
  return *this;
}

double CostLaw::batchiness(uint32_t batch_limit_pkts) const {
  const double singles_ns = ns(1) * batch_limit_pkts;
  return singles_ns > 0 ? ns(batch_limit_pkts) / singles_ns : 1.0;
}

double CostLaw::error_ratio(std::span<const Point> measured, double min_ns) const {
  double worst = 0;
  for (const Point& point : measured) {
    const double error_ns = std::abs(ns(point.size_pkts) - point.ns);
    worst = std::max(worst, error_ns / std::max(point.ns, min_ns));
  }
  return worst;
}

std::vector<Point> points_of(std::span<const double> ns) {
  std::vector<Point> points;
  for (const double time_ns : ns) {
    points.push_back({static_cast<uint32_t>(points.size() + 1), time_ns});
  }
  return points;
}

}  // namespace batchplane
