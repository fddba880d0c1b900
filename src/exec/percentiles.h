// SPDX-License-Identifier: BSD-3-Clause
// percentiles.h - percentiles from histogram buckets: by nearest rank, or interpolated.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/percentile.h"

namespace batchplane::exec {

// A percentile with fewer than ten values beyond it means little. The tolerance is for the rounding of 1 - p,
// which must not require one value more.
inline bool has_percentile(uint64_t n, double p) {
  return static_cast<double>(n) >= 10 / (1 - p) - 1e-6;
}

struct WantedPercentile {
  double p;  // 1: the largest
  uint32_t bucket = 0;
};

// Finds the bucket of each wanted percentile of n values in a single pass: at most a share 1 - p of the
// values lies beyond it.
template <class CountAt, size_t kWanted>
void find_percentiles(uint64_t n, uint32_t n_buckets, CountAt&& count_at,
                      WantedPercentile (&wanted)[kWanted]) {
  uint64_t ranks[kWanted];
  for (size_t w = 0; w < kWanted; ++w) ranks[w] = nearest_rank(n, wanted[w].p);
  size_t n_left = kWanted;
  uint64_t seen = 0;
  for (uint32_t i = 0; i < n_buckets && n_left != 0; ++i) {
    const uint64_t here = count_at(i);
    if (here == 0) continue;
    for (size_t w = 0; w < kWanted; ++w) {
      if (seen >= ranks[w] || seen + here < ranks[w]) continue;
      wanted[w].bucket = i;
      --n_left;
    }
    seen += here;
  }
}

}  // namespace batchplane::exec
