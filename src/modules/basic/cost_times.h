// SPDX-License-Identifier: BSD-3-Clause
// cost_times.h - the times that the cost module's busy loop takes.
#pragma once

#include <cstdint>

namespace batchplane {

struct CostTimes {
  double per_batch_ns = 0;
  double per_pkt_ns = 0;

  [[nodiscard]] double busy_ns(uint32_t pkts) const { return per_batch_ns + per_pkt_ns * pkts; }
};

}  // namespace batchplane
