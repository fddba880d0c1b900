// SPDX-License-Identifier: BSD-3-Clause
// cost_law.h - processing time of a batch of n packets: a line, or a table over batch sizes with a line that
// summarises it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace batchplane {

// Times are finite and never negative: any other input counts as 0.
class CostLaw {
 public:
  struct Line {
    double cost_per_batch_ns = 0;
    double cost_per_pkt_ns = 0;

    [[nodiscard]] double ns(double size_pkts) const { return work_ns(1, size_pkts); }
    // Time of `batches` batches that hold `pkts` packets in total.
    [[nodiscard]] double work_ns(double batches, double pkts) const {
      return cost_per_batch_ns * batches + cost_per_pkt_ns * pkts;
    }
    bool operator==(const Line&) const = default;
  };
  // Batch size and processing time.
  struct Point {
    uint32_t size_pkts = 1;
    double ns = 0;
    bool operator==(const Point&) const = default;
  };

  CostLaw() = default;
  CostLaw(double cost_per_batch_ns, double cost_per_pkt_ns);
  explicit CostLaw(const Line& line) : CostLaw(line.cost_per_batch_ns, line.cost_per_pkt_ns) {}
  // Sizes ascend from 1 or more. Without points, the law is the line alone.
  CostLaw(std::vector<Point> points, const Line& line);
  // Fits the line with fit_line.
  explicit CostLaw(std::vector<Point> points);

  // Time of a batch, also of a mean (fractional) size: interpolated between two table sizes, and extrapolated
  // beyond the table's ends with the slope of the line.
  [[nodiscard]] double ns(double size_pkts) const {
    return points_.empty() ? line_.ns(size_pkts) : table_ns(size_pkts);
  }
  // The two-number summary, for callers that cannot use a table.
  [[nodiscard]] const Line& line() const { return line_; }
  [[nodiscard]] bool is_table() const { return !points_.empty(); }
  [[nodiscard]] std::span<const Point> points() const { return points_; }

  // Multiplies the per-packet part (by the line) by pkt_factor, and the rest by batch_factor.
  [[nodiscard]] CostLaw scaled(double batch_factor, double pkt_factor) const;
  [[nodiscard]] CostLaw scaled(double factor) const { return scaled(factor, factor); }
  // Cost of two modules in a row on the same batch.
  CostLaw& operator+=(const CostLaw& other);
  friend CostLaw operator+(CostLaw a, const CostLaw& b) { return a += b; }

  // Time of a full batch over that of as many single packets; small = batching pays, 1 = no gain.
  [[nodiscard]] double batchiness(uint32_t batch_limit_pkts) const;
  // The largest relative error at the measured sizes; measured times below `min_ns` count as `min_ns`.
  [[nodiscard]] double error_ratio(std::span<const Point> measured, double min_ns = 1) const;

  bool operator==(const CostLaw&) const = default;

 private:
  [[nodiscard]] double table_ns(double size_pkts) const;

  Line line_;
  std::vector<Point> points_;
};

// Turns the times of batches of 1, 2, ... packets into points.
[[nodiscard]] std::vector<CostLaw::Point> points_of(std::span<const double> ns);

}  // namespace batchplane
