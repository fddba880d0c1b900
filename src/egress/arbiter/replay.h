// SPDX-License-Identifier: BSD-3-Clause
// replay.h - sends a schedule of arrivals through a discipline and a link, in virtual time.
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
  uint64_t release_ns = 0;  // start of its transmission
  uint32_t flow = 0;
  uint32_t len_bytes = 0;
};
struct ReplayResult {
  std::vector<Departure> departures;
  std::vector<uint32_t> refused;  // arrivals, by index
};

// `arrivals` are ordered by time; flow k has params[k]. Packets that arrive exactly when the link
// becomes free are scheduled together with those waiting. Throws ConfigError for an unknown
// discipline, refused parameters, or arrivals out of order.
ReplayResult replay(const std::string& discipline, const std::vector<FlowParams>& params,
                    const std::vector<Arrival>& arrivals, uint64_t rate_bps,
                    uint32_t overhead_bytes);

}  // namespace batchplane::egress
