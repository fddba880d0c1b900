// SPDX-License-Identifier: BSD-3-Clause
// fuzz_pipeline.cc - text as a pipeline file: it is refused with a reason, or means what it says.
#include <string_view>

#include "app/runtime/runtime.h"
#include "app/wire/json_value.h"
#include "app/wire/messages.h"
#include "fuzz.h"
#include "spec/config_json.h"

namespace batchplane::fuzz {
namespace {

void require_message(const std::vector<ConfigError>& errors, const PipelineSpec& spec) {
  for (const ConfigError& error : errors) {
    const std::string line = app::error_line(error, spec.source_map);
    require(!line.empty(), "a mistake without words");
    require(line.find('\n') == std::string::npos, "a mistake of several lines");
  }
}

}  // namespace

int fuzz_pipeline(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::vector<ConfigError> errors;
  PipelineSpec spec;
  const auto thrown =
      app::errors_of([&] { spec = spec_from_value(app::parse_json(text, "fuzz"), errors); });
  errors.insert(errors.end(), thrown.begin(), thrown.end());
  require_message(errors, spec);
  if (!errors.empty()) return 0;
  // What was read is written and read again as the same.
  const Value written = spec_to_value(spec);
  std::vector<ConfigError> again;
  const PipelineSpec copy = spec_from_value(app::parse_json(app::to_json(written), "fuzz"), again);
  require_message(again, copy);
  require(again.empty(), "what was written cannot be read");
  require(app::to_json(spec_to_value(copy)) == app::to_json(written), "written and read differ");
  (void)app::check_pipeline(spec, nullptr, nullptr, errors);
  require_message(errors, spec);
  tally.accepted += errors.empty() ? 1 : 0;
  return 0;
}

}  // namespace batchplane::fuzz
