// SPDX-License-Identifier: BSD-3-Clause
// far_cost.h - the extra cost of packets whose cache lines lie in another core's caches.
#pragma once

#include <algorithm>
#include <cstdint>

namespace batchplane {

// The worker stalls for the first kFarEarlyPkts packets of a poll one after the other; meanwhile the lines of
// later packets arrive.
inline constexpr uint32_t kFarEarlyPkts = 8;

// Extra cost of a poll of n packets, in any unit: per_batch + per_pkt n + early_per_pkt min(n,
// kFarEarlyPkts).
struct FarCost {
  double per_batch = 0;
  double per_pkt = 0;
  double early_per_pkt = 0;

  [[nodiscard]] double at(double n_pkts) const {
    return per_batch + per_pkt * n_pkts + early_per_pkt * std::min<double>(n_pkts, kFarEarlyPkts);
  }
};

}  // namespace batchplane
