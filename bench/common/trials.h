// SPDX-License-Identifier: BSD-3-Clause
// trials.h - interleaved timing of contenders: percentiles of time per packet and paired ratios
// with intervals.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/stats.h"

namespace bench {

// One way to do the work. `run` carries the given number of batches and returns the packets done.
// `verify` is called once before any timing; it returns what is wrong, or nothing.
struct Contender {
  std::string name;
  std::function<uint64_t(uint32_t n_batches)> run;
  std::function<std::string()> verify = [] { return std::string(); };
  std::function<void()> prepare = nullptr;  // before each timed run, not timed itself
};

struct Result {
  std::string name;
  std::vector<double> ns_per_pkt;  // one per trial, in order
  [[nodiscard]] double percentile(double p) const;
};

// Runs every contender once per trial, in turn, `trials` times. Throws std::runtime_error when one
// fails its own verification.
std::vector<Result> run_interleaved(const std::vector<Contender>& contenders, uint32_t trials,
                                    uint32_t batches_per_trial);

// Median of a[i] / b[i] with its interval.
Interval paired_ratio(const Result& a, const Result& b);
// Median of a[i] - b[i], in ns per packet, with its interval.
Interval paired_difference(const Result& a, const Result& b);
// A percentile of one contender's times with its interval.
Interval time_percentile(const Result& result, double p);

}  // namespace bench
