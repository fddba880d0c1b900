// SPDX-License-Identifier: BSD-3-Clause
// cost_table.h - the measured cost law of each module configuration, as the JSON that others read.
//
// {"version": 1, "cpu", "lookup_path", "modules": [{"module", "configuration",
// "configuration_hash",
//  "params", "batch_pkts": [from, to], "cost_per_batch_ns": {"value", "low", "high"},
//  "cost_per_pkt_ns": {...}, "r_squared", "points": [{"batch_pkts", "ns"}], "note"}]}
// ns of a batch of n packets = cost_per_batch_ns + cost_per_pkt_ns * n within batch_pkts; the
// engine's own hop comes on top. Neither cost is negative.
#pragma once

#include <string>
#include <vector>

#include "modules/rig.h"

namespace bench {

// Least squares with no negative cost: a line that would start below 0 starts at 0.
[[nodiscard]] Line fit_cost_law(const std::vector<double>& batch_pkts,
                                const std::vector<double>& ns);

struct CostRow {
  std::string kind;
  std::string label;
  batchplane::Dict params;
  uint32_t least_pkts = 0;  // of the fit
  uint32_t most_pkts = 0;
  Interval per_batch_ns;
  Interval per_pkt_ns;
  double r_squared = 0;
  std::vector<std::pair<uint32_t, double>> points;  // batch size, ns
  std::string note;
};

// 16 hex digits over kind and parameters: equal exactly when those are.
[[nodiscard]] std::string configuration_hash(const std::string& kind,
                                             const batchplane::Dict& params);
[[nodiscard]] std::string cost_table_json(const std::vector<CostRow>& rows,
                                          const std::string& lookup_path);

}  // namespace bench
