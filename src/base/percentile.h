// SPDX-License-Identifier: BSD-3-Clause
// percentile.h - percentiles by nearest rank. python/batchplane/base/percentile.py has the same rule.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace batchplane {

// Which of n values in ascending order, counted from 1: at most a share 1 - p of them lies beyond it.
inline uint64_t nearest_rank(uint64_t n, double p) {
  return std::max<uint64_t>(static_cast<uint64_t>(std::ceil(p * static_cast<double>(n))), 1);
}

// At least one value; p = 0 is the least, 1 the largest.
template <class Number>
[[nodiscard]] Number percentile(std::vector<Number> values, double p) {
  const size_t at = nearest_rank(values.size(), p) - 1;
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(at));
  return values[at];
}

}  // namespace batchplane
