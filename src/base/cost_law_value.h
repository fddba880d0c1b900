// SPDX-License-Identifier: BSD-3-Clause
// cost_law_value.h - cost laws as plain values: the same keys in cost files, requests and
// simulations.
//
// {"cost_per_batch_ns", "cost_per_pkt_ns"}, or {"table_ns": times of batches of 1, 2, ...}, or
// both; with "table_pkts" the times are those of these sizes.
#pragma once

#include <string>

#include "base/cost_law.h"
#include "base/value.h"

namespace batchplane {

// Other keys are passed over. A table without a line gets one fitted. Throws ConfigError.
[[nodiscard]] CostLaw cost_law_from(const Value& value, const std::string& where);
[[nodiscard]] Dict cost_law_value(const CostLaw& law);

}  // namespace batchplane
