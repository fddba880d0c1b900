// SPDX-License-Identifier: BSD-3-Clause
// session_five_qi.h - standardised 5QIs: their priorities, and which are for guaranteed rates.
//
// From 3GPP TS 23.501, table 5.7.4-1. A lower priority level is more important there.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace batchplane::session {

struct FiveQi {
  uint8_t value;
  uint8_t level;  // default priority level, 1 to 127
  bool is_gbr;    // GBR or delay-critical GBR
};

// None: the table has no such 5QI.
[[nodiscard]] std::optional<FiveQi> standard_five_qi(int64_t value);
// All values of the table, for messages: "1-10, 65-67, ...".
[[nodiscard]] std::string standard_five_qis();
// The level as a priority among siblings in a tree, 0 to 7, 7 first.
[[nodiscard]] uint8_t priority_of_level(uint8_t level);

}  // namespace batchplane::session
