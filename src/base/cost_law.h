// SPDX-License-Identifier: BSD-3-Clause
// cost_law.h - how long a batch of n packets takes: a line, or a table over batch sizes that a line
// summarises.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace batchplane {

// Times are never negative and always finite: what is given otherwise counts as 0.
class CostLaw {
 public:
  struct Line {
    double cost_per_batch_ns = 0;
    double cost_per_pkt_ns = 0;

    [[nodiscard]] double ns(double size_pkts) const { return work_ns(1, size_pkts); }
    // Of so many batches with so many packets in them all.
    [[nodiscard]] double work_ns(double batches, double pkts) const {
      return cost_per_batch_ns * batches + cost_per_pkt_ns * pkts;
    }
    bool operator==(const Line&) const = default;
  };
  // One batch size and what it takes.
  struct Point {
    uint32_t size_pkts = 1;
    double ns = 0;
    bool operator==(const Point&) const = default;
  };

  CostLaw() = default;
  CostLaw(double cost_per_batch_ns, double cost_per_pkt_ns);
  explicit CostLaw(const Line& line) : CostLaw(line.cost_per_batch_ns, line.cost_per_pkt_ns) {}
  // Sizes ascend, the first is 1 or more. Without points: the line alone.
  CostLaw(std::vector<Point> points, const Line& line);
  // The line is fitted: see fit_line.
  explicit CostLaw(std::vector<Point> points);

  // What a batch takes, of a size in the mean, too: in proportion between two sizes of the table,
  // and outside of it from its end on as the line rises.
  [[nodiscard]] double ns(double size_pkts) const {
    return points_.empty() ? line_.ns(size_pkts) : table_ns(size_pkts);
  }
  // What the law is in two numbers, for whoever can do with no more.
  [[nodiscard]] const Line& line() const { return line_; }
  [[nodiscard]] bool is_table() const { return !points_.empty(); }
  [[nodiscard]] std::span<const Point> points() const { return points_; }

  // What is paid per packet, by the line, times one factor, and all else times the other.
  [[nodiscard]] CostLaw scaled(double batch_factor, double pkt_factor) const;
  [[nodiscard]] CostLaw scaled(double factor) const { return scaled(factor, factor); }
  // One module after the other on the same batch.
  CostLaw& operator+=(const CostLaw& other);
  friend CostLaw operator+(CostLaw a, const CostLaw& b) { return a += b; }
  // Another line, and a table that keeps its shape beside it and meets it at this size: what was
  // measured there belongs to both.
  [[nodiscard]] CostLaw bent_to(const Line& line, double size_pkts) const;
  // The table's lower convex hull: what splitting work into batches of several sizes comes to at
  // best. A line is its own.
  [[nodiscard]] CostLaw lower_hull() const;

  // A full batch against as many batches of one; small = batching pays, 1 = it is all the same.
  [[nodiscard]] double batchiness(uint32_t batch_limit_pkts) const;
  // The largest error at these sizes, over what was measured there; times below `min_ns` count as
  // that much.
  [[nodiscard]] double error_ratio(std::span<const Point> measured, double min_ns = 1) const;

  bool operator==(const CostLaw&) const = default;

 private:
  [[nodiscard]] double table_ns(double size_pkts) const;

  Line line_;
  std::vector<Point> points_;
};

// Times of batches of 1, 2, ... packets.
[[nodiscard]] std::vector<CostLaw::Point> points_of(std::span<const double> ns);

}  // namespace batchplane
