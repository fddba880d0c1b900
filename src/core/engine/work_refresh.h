// SPDX-License-Identifier: BSD-3-Clause
// work_refresh.h - how often estimates of work follow what sampled runs measured.
#pragma once

#include <cstdint>

namespace batchplane {

// Until they are known, loops that take long look like holes in the worker's time.
inline constexpr uint64_t kWorkRefreshNs = 100'000'000;

// Whether a refresh falls between both times.
[[nodiscard]] constexpr bool is_work_refresh_due(uint64_t previous_ns, uint64_t now_ns) {
  return now_ns / kWorkRefreshNs != previous_ns / kWorkRefreshNs;
}

}  // namespace batchplane
