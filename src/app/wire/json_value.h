// SPDX-License-Identifier: BSD-3-Clause
// json_value.h - converts JSON text to Value and back; the only user of the JSON library.
#pragma once

#include <string>
#include <string_view>

#include "base/value.h"

namespace batchplane::app {

// Deeper input is refused: functions that walk a Value are recursive.
inline constexpr uint32_t kMaxJsonDepth = 64;

// Throws ConfigError for invalid JSON, duplicate keys in an object, integers beyond 64 bits, and nesting
// deeper than kMaxJsonDepth. `where` names the input.
Value parse_json(std::string_view text, const std::string& where);

// One line, keys sorted. Numbers that are not finite become null; invalid UTF-8 is replaced.
std::string to_json(const Value& value);
void append_json(std::string& out, const Value& value);

}  // namespace batchplane::app
