// SPDX-License-Identifier: BSD-3-Clause
// telemetry.h - a snapshot as the answers of `show`, and the statistics derived from raw counters:
// one form for what was measured and what was simulated.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/value.h"
#include "exec/snapshot.h"

namespace batchplane::telemetry {

using exec::Snapshot;

// The graph as `show graph` tells it.
struct GraphFacts {
  struct Edge {
    uint32_t from = 0;  // position in Snapshot::modules
    std::string gate;   // as people write it
    uint32_t to = 0;
    bool is_drop = false;
    bool leaves_input = false;  // `from` is a pure input
  };
  std::vector<Edge> edges;
};

// The cost law that sampled runs tell. Nothing when their batch sizes hardly differed: one size
// does not tell the two costs apart.
[[nodiscard]] std::optional<CostLaw::Line> sampled_cost(const CostSamples& samples,
                                                        double cycles_per_ns);

// The delay that at most a share 1 - p of the packets exceeded, rounded up to the end of its
// bucket; nothing with fewer than 10 / (1 - p) packets.
[[nodiscard]] std::optional<uint64_t> percentile_ns(const std::vector<uint64_t>& fine_buckets,
                                                    double p, uint64_t delay_max_ns);

// cycles_per_ns: what turns CostSamples::cycles into time.
Value runtime_value(const Snapshot& snapshot, double cycles_per_ns);
Value balance_value(const exec::Balance& balance);
Value buffers_value(const Snapshot& snapshot, uint32_t worst_firings_per_run);
// paths: of each declared flow, module names.
Value flows_value(const Snapshot& snapshot, const std::vector<std::vector<std::string>>& paths);
Value drops_value(const Snapshot& snapshot, const std::vector<exec::DropReasonInfo>& reasons);
Value graph_value(const Snapshot& snapshot, const GraphFacts& facts);

}  // namespace batchplane::telemetry
