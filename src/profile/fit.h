// SPDX-License-Identifier: BSD-3-Clause
// fit.h - from times of batches to the cost law: least squares, bounds that a cost must keep, and
// intervals from resampled rounds.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace batchplane::profile {

// A law with this or a higher share of the variance explained stands without a reason.
inline constexpr double kGoodRSquared = 0.99;

struct Interval {
  double low = 0;
  double high = 0;
};

// Time of a batch of n packets = per_batch_ns + per_pkt_ns * n. Neither is ever negative.
struct CostLaw {
  double per_batch_ns = 0;
  double per_pkt_ns = 0;
  double r_squared = 0;
  bool is_clamped = false;  // the straight line had a negative slope or a negative value at 0

  [[nodiscard]] double at(double n_pkts) const { return per_batch_ns + per_pkt_ns * n_pkts; }
  // A full batch against as many batches of one: (a + B b) / (B (a + b)); small = batching pays.
  [[nodiscard]] double batchiness(uint32_t batch_limit_pkts) const;
};

// Least squares over the points (pkts[i], ns[i]); at least one. A negative slope becomes 0 at the
// mean, a negative value at 0 becomes a line through the origin.
[[nodiscard]] CostLaw fit_law(std::span<const double> pkts, std::span<const double> ns);

// Why a law explains less than it should; empty when it explains enough. `noise_ns`: how far the
// times themselves are uncertain.
[[nodiscard]] std::string reason_of(const CostLaw& law, std::span<const double> pkts,
                                    std::span<const double> ns, double noise_ns);

// By nearest rank; at least one value.
[[nodiscard]] double percentile(std::vector<double> values, double p);

// What many rounds measured: in each, every size once.
class Rounds {
 public:
  explicit Rounds(uint32_t n_sizes) : ns_(n_sizes) {}
  void add(uint32_t size_index, double ns) { ns_[size_index].push_back(ns); }
  [[nodiscard]] size_t count() const { return ns_.empty() ? 0 : ns_.front().size(); }

  // The time of each size when nothing gets in the way: 10th percentile over the rounds, or over
  // those chosen (repeats allowed).
  [[nodiscard]] std::vector<double> times() const;
  [[nodiscard]] std::vector<double> times_of(std::span<const uint32_t> rounds) const;

 private:
  std::vector<std::vector<double>> ns_;  // by size, then round
};

struct Fitted {
  CostLaw law;
  Interval per_batch_ns;  // 95 %
  Interval per_pkt_ns;
  std::vector<double> ns;  // by size
  double noise_ns = 0;     // mean half width of the times' own 95 % intervals
};

// The law of `pkts` sizes, with 95 % intervals from resampled rounds (seeded).
[[nodiscard]] Fitted fit_rounds(std::span<const double> pkts, const Rounds& rounds);

}  // namespace batchplane::profile
