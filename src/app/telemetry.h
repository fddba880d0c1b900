// SPDX-License-Identifier: BSD-3-Clause
// telemetry.h - a snapshot as the answers of `show`, and the statistics derived from raw counters.
#pragma once

#include <optional>
#include <vector>

#include "base/value.h"
#include "core/engine.h"

namespace batchplane::app {

// The cost law time = per_batch + per_pkt * batch size, fitted to sampled runs.
struct CostFit {
  double per_batch_ns = 0;
  double per_pkt_ns = 0;
};

// Nothing when the sampled batch sizes hardly differed: one size does not tell the two costs apart.
[[nodiscard]] std::optional<CostFit> fit_cost(const exec::CostSamples& samples,
                                              double cycles_per_ns);

// The delay that at most a share 1 - p of the packets exceeded, rounded up to the end of its
// bucket; nothing with fewer than 10 / (1 - p) packets.
[[nodiscard]] std::optional<uint64_t> percentile_ns(const std::vector<uint64_t>& fine_buckets,
                                                    double p, uint64_t delay_max_ns);

Value runtime_value(const Snapshot& snapshot);
Value balance_value(const Balance& balance);
Value buffers_value(const Snapshot& snapshot, uint32_t worst_firings_per_run);
Value flows_value(const Snapshot& snapshot, const Graph& graph);
Value drops_value(const Snapshot& snapshot);
Value graph_value(const Snapshot& snapshot, const Graph& graph);

}  // namespace batchplane::app
