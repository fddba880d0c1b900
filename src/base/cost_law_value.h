// SPDX-License-Identifier: BSD-3-Clause
// cost_law_value.h - cost laws as plain values: the same keys in cost files, requests and simulations.
//
// {"cost_per_batch_ns", "cost_per_pkt_ns"}, or {"table_ns": times of batches of 1, 2, ... packets}, or both;
// "table_pkts" gives the batch sizes of the table where they are not 1, 2, ...
#pragma once

#include <string>

#include "base/cost_law.h"
#include "base/value.h"

namespace batchplane {

// Ignores other keys. Fits a line to a table that comes without one. Throws ConfigError.
[[nodiscard]] CostLaw cost_law_from(const Value& value, const std::string& where);
[[nodiscard]] Dict cost_law_value(const CostLaw& law);

}  // namespace batchplane
