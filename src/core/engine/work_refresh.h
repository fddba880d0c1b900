// SPDX-License-Identifier: BSD-3-Clause
// work_refresh.h - how often work estimates are updated from sampled runs.
#pragma once

#include <cstdint>

namespace batchplane {

// Until costs are known, long loops look like gaps in the worker's time.
inline constexpr uint64_t kWorkRefreshNs = 100'000'000;

// Whether a refresh is due between the two times.
[[nodiscard]] constexpr bool is_work_refresh_due(uint64_t previous_ns, uint64_t now_ns) {
  return now_ns / kWorkRefreshNs != previous_ns / kWorkRefreshNs;
}

}  // namespace batchplane
