// SPDX-License-Identifier: BSD-3-Clause
// percentiles.h - percentiles out of buckets: by nearest rank, or spread over them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace batchplane::exec {

// Fewer than ten beyond it say little of a percentile. 1 - p is not exact: it must not ask for
// one more.
inline bool has_percentile(uint64_t n, double p) {
  return static_cast<double>(n) >= 10 / (1 - p) - 1e-6;
}

struct WantedPercentile {
  double p;  // 1: the largest
  uint32_t bucket = 0;
};

// The bucket in which each of the percentiles of n values lies, all in one pass: a share 1 - p of
// them lies beyond it, at most.
template <class CountAt, size_t kWanted>
void find_percentiles(uint64_t n, uint32_t n_buckets, CountAt&& count_at,
                      WantedPercentile (&wanted)[kWanted]) {
  uint64_t ranks[kWanted];
  for (size_t w = 0; w < kWanted; ++w) {
    const double rank = std::ceil(wanted[w].p * static_cast<double>(n));
    ranks[w] = std::max<uint64_t>(static_cast<uint64_t>(rank), 1);
  }
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
