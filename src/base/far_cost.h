// SPDX-License-Identifier: BSD-3-Clause
// far_cost.h - what packets whose lines lie in another core's caches cost beside everything else.
#pragma once

#include <algorithm>
#include <cstdint>

namespace batchplane {

// So many packets of a poll are waited for one after the other; those behind them have come over
// meanwhile.
inline constexpr uint32_t kFarEarlyPkts = 8;

// Of a poll of n packets, in any unit: per_batch + per_pkt n + early_per_pkt min(n, kFarEarlyPkts).
struct FarCost {
  double per_batch = 0;
  double per_pkt = 0;
  double early_per_pkt = 0;

  [[nodiscard]] double at(double n_pkts) const {
    return per_batch + per_pkt * n_pkts + early_per_pkt * std::min<double>(n_pkts, kFarEarlyPkts);
  }
};

}  // namespace batchplane
