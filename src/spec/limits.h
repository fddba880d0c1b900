// SPDX-License-Identifier: BSD-3-Clause
// limits.h - minimum and maximum of each number in a pipeline. tools/make_limits.py generates the same table
// for Python from these lines, so each has the form: inline constexpr Limit kName{least, most};
#pragma once

#include <cstdint>

#include "exec/batch.h"
#include "exec/scheduling.h"

namespace batchplane::limits {

struct Limit {
  uint64_t least;
  uint64_t most;
};

inline constexpr Limit kBatchPkts{1, 256};
inline constexpr Limit kPoolPkts{0, 1'073'741'824};
inline constexpr Limit kSampleOneRunIn{1, 1'073'741'824};
inline constexpr Limit kHeavyNs{1, 65'535};
inline constexpr Limit kSeed{0, 9'223'372'036'854'775'807};
inline constexpr Limit kTriggerPkts{0, 256};
inline constexpr Limit kPollPkts{1, 256};
// Durations: eleven days at most. A holding time cannot be 0, but an SLO of 0 means none.
inline constexpr Limit kStrandingLimitNs{1, 1'000'000'000'000'000};
inline constexpr Limit kAgeLimitNs{1, 1'000'000'000'000'000};
inline constexpr Limit kDelaySloNs{0, 1'000'000'000'000'000};
inline constexpr Limit kQueueingTimeThresholdNs{0, 1'000'000'000'000'000};
inline constexpr Limit kEventNs{0, 1'000'000'000'000'000};
inline constexpr Limit kPeriodNs{1'000'000, 1'000'000'000};  // of a controller
inline constexpr Limit kWeight{1, 1024};
inline constexpr Limit kTaskQueuePkts{0, 4096};  // 0: two batches
inline constexpr Limit kQueuePkts{1, 4096};
inline constexpr Limit kHighWatermarkPercent{1, 100};
inline constexpr Limit kLowWatermarkPercent{0, 100};
inline constexpr Limit kMtuBytes{68, 9710};
inline constexpr Limit kCore{0, 1023};
// A splitter has up to 4096 gates, each with a few modules behind it.
inline constexpr Limit kModules{1, 32'768};
inline constexpr Limit kEdges{0, 131'072};
inline constexpr Limit kFlows{0, 32'768};            // declared
inline constexpr Limit kTrafficFlows{1, 1'048'576};  // of a generator
inline constexpr Limit kRatePps{0, 1'000'000'000};

static_assert(kBatchPkts.most == exec::kMaxBatchPkts && kTriggerPkts.most == exec::kMaxBatchPkts &&
              kPollPkts.most == exec::kMaxBatchPkts);
static_assert(kWeight.most == exec::kMaxWeight);
static_assert(kQueuePkts.most == exec::kMaxQueuePkts && kTaskQueuePkts.most == kQueuePkts.most);

}  // namespace batchplane::limits
