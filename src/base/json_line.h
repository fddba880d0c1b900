// SPDX-License-Identifier: BSD-3-Clause
// json_line.h - reads one line of JSON, for tables that come as files with one entry per line.
//
// The control socket's JSON has a library's parser (src/app). Files of hundreds of thousands of
// lines are read where their tables are, and need no more than this.
#pragma once

#include <string_view>

#include "base/value.h"

namespace batchplane {

// The whole text is one JSON value. Throws ConfigError without a place: the caller knows the line.
// Numbers are integers of 64 bits, or finite; a key stands once; nesting ends at 16.
[[nodiscard]] Value parse_json_line(std::string_view text);

}  // namespace batchplane
