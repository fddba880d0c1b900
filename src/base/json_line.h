// SPDX-License-Identifier: BSD-3-Clause
// json_line.h - parses one line of JSON, for table files with one entry per line.
//
// The control socket uses a JSON library (src/app). Table files of hundreds of thousands of lines are parsed
// by their modules, which need only this.
#pragma once

#include <string_view>

#include "base/value.h"

namespace batchplane {

// The whole text is one JSON value. Throws ConfigError without `where`: the caller knows the line. Numbers
// are 64-bit integers or finite; duplicate keys are errors; nesting is limited to 16.
[[nodiscard]] Value parse_json_line(std::string_view text);

}  // namespace batchplane
