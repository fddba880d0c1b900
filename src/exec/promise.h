// SPDX-License-Identifier: BSD-3-Clause
// promise.h - whether a flow's SLO is violated in a period: the one rule for controllers, reports and
// planning. python/batchplane/base/promise.py has the same rule.
#pragma once

#include <algorithm>
#include <cstdint>

#include "exec/control.h"

namespace batchplane::exec {

// 1 - 0.9 is slightly less than 0.1: that must not make 10 late packets of 100 too many.
inline constexpr double kLateRoundingPkts = 1e-6;

// Packets that may be late under an SLO on this percentile, in (0, 1].
inline double allowed_late_pkts(uint64_t pkts, double percentile) {
  return (1 - std::min(percentile, 1.0)) * static_cast<double>(pkts);
}

// The number of late packets decides, not the measured percentile: it is exact and adds up over periods. For
// an SLO on the mean (0), the sum of delays decides.
inline bool is_slo_broken(const FlowPeriod& flow, double percentile) {
  if (flow.slo_ns == 0 || flow.pkts == 0) return false;
  if (percentile <= 0) {
    return static_cast<double>(flow.delay_sum_ns) >
           static_cast<double>(flow.slo_ns) * static_cast<double>(flow.pkts);
  }
  return static_cast<double>(flow.late_pkts) >
         allowed_late_pkts(flow.pkts, percentile) + kLateRoundingPkts;
}

}  // namespace batchplane::exec
