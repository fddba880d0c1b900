// SPDX-License-Identifier: BSD-3-Clause
// telemetry.h - turns a snapshot into the answers of `show`, with statistics derived from raw counters; the
// same form for measurements and simulations.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/value.h"
#include "exec/snapshot.h"

namespace batchplane::telemetry {

using exec::Snapshot;

// The graph as `show graph` reports it.
struct GraphFacts {
  struct Edge {
    uint32_t from = 0;  // position in Snapshot::modules
    std::string gate;   // in the users' notation
    uint32_t to = 0;
    bool is_drop = false;
    bool leaves_input = false;  // `from` is a pure input
  };
  std::vector<Edge> edges;
};

// The cost law fitted to sampled runs. Nothing when their batch sizes hardly differ: then the two costs
// cannot be separated.
[[nodiscard]] std::optional<CostLaw::Line> sampled_cost(const CostSamples& samples,
                                                        double cycles_per_ns);

// The delay that at most a share 1 - p of the packets exceeded, rounded up to the end of its bucket; nothing
// for fewer than 10 / (1 - p) packets.
[[nodiscard]] std::optional<uint64_t> percentile_ns(const std::vector<uint64_t>& fine_buckets,
                                                    double p, uint64_t delay_max_ns);

// cycles_per_ns: converts CostSamples::cycles to time.
Value runtime_value(const Snapshot& snapshot, double cycles_per_ns);
Value balance_value(const exec::Balance& balance);
Value buffers_value(const Snapshot& snapshot, uint32_t worst_firings_per_run);
// paths: module names of each declared flow's path.
Value flows_value(const Snapshot& snapshot, const std::vector<std::vector<std::string>>& paths);
Value drops_value(const Snapshot& snapshot, const std::vector<exec::DropReasonInfo>& reasons);
Value graph_value(const Snapshot& snapshot, const GraphFacts& facts);

}  // namespace batchplane::telemetry
