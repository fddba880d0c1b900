// SPDX-License-Identifier: BSD-3-Clause
// scheduler_spec.h - the scheduler of a simulated `egress` in numbers only, after the daemon has
// resolved names, files and defaults.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/value.h"
#include "egress/discipline/discipline.h"
#include "egress/discipline/framing.h"
#include "egress/tree/tree_params.h"

namespace batchplane::sim {

inline constexpr const char* kSchedulerKind = "egress";

struct SchedulerSpec {
  std::string discipline = "qfq_plus";
  uint64_t rate_bps = 0;  // of the link; 0: no limit
  egress::Framing framing;
  egress::Capacity capacity;
  uint32_t mailbox_pkts = 1024;                                // per producing worker
  std::vector<std::pair<uint32_t, egress::FlowParams>> flows;  // number, params
  // For `tree`.
  egress::TreeCapacity tree;
  std::vector<egress::PlacedNode> nodes;  // parents before children
};

// Throws ConfigError.
[[nodiscard]] SchedulerSpec parse_scheduler(const Value& value, const std::string& where);

}  // namespace batchplane::sim
