// SPDX-License-Identifier: BSD-3-Clause
// json_value.h - JSON text to Value and back; the only place that knows a JSON library.
#pragma once

#include <string>
#include <string_view>

#include "base/value.h"

namespace batchplane::app {

// Deeper input is refused: everything that walks a Value is recursive.
inline constexpr uint32_t kMaxJsonDepth = 64;

// Throws ConfigError for anything that is no JSON, for a key that stands twice in one object, for
// integers beyond 64 bits and for nesting deeper than kMaxJsonDepth. `where` names the input.
Value parse_json(std::string_view text, const std::string& where);

// One line, keys sorted. Numbers that are not finite become null; bytes that are no UTF-8 are
// replaced.
std::string to_json(const Value& value);
void append_json(std::string& out, const Value& value);

}  // namespace batchplane::app
