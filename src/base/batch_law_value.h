// SPDX-License-Identifier: BSD-3-Clause
// batch_law_value.h - batch laws as plain values: the same keys in pipelines, requests and simulations.
//
// {"batch_ns", "pkt_ns", "byte_ns", "length_ns", "table"}; parts that are left out are 0. "table":
// {"batch_pkts": [...], "pkt_bytes": [...], "ns": [[a time for each length] for each size], "busy_ns": likewise}.
#pragma once

#include <string>

#include "base/batch_law.h"
#include "base/value.h"

namespace batchplane {

// Throws ConfigError.
[[nodiscard]] BatchLaw batch_law_from(const Value& value, const std::string& where);
[[nodiscard]] Dict batch_law_value(const BatchLaw& law);

}  // namespace batchplane
