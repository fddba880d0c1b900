// SPDX-License-Identifier: BSD-3-Clause
// replay.h - a schedule of arrivals through a discipline and a link, in virtual time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "egress/discipline/discipline.h"

namespace batchplane::egress {

struct Arrival {
  uint64_t at_ns = 0;
  uint32_t flow = 0;
  uint32_t len_bytes = 0;
};
struct Departure {
  uint64_t release_ns = 0;  // when its transmission begins
  uint32_t flow = 0;
  uint32_t len_bytes = 0;
};
struct ReplayResult {
  std::vector<Departure> departures;
  std::vector<uint32_t> refused;  // arrivals, by index
};

// `arrivals` are ordered by time; flow k has params[k]. What arrives at the very time at which the
// link becomes free is scheduled with what waited. Throws ConfigError for parameters that the
// discipline refuses, an unknown discipline, or arrivals that go back in time.
ReplayResult replay(const std::string& discipline, const std::vector<FlowParams>& params,
                    const std::vector<Arrival>& arrivals, uint64_t rate_bps,
                    uint32_t overhead_bytes);

}  // namespace batchplane::egress
