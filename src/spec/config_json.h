// SPDX-License-Identifier: BSD-3-Clause
// config_json.h - a pipeline between its canonical JSON form and PipelineSpec.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "base/value.h"
#include "spec/pipeline_spec.h"

namespace batchplane {

inline constexpr int64_t kPipelineVersion = 1;

// Strict: unknown keys, wrong types and values out of range are all noted, and the rest is read.
// Whether names exist and parameters fit is for build_graph to say.
PipelineSpec spec_from_value(const Value& pipeline, std::vector<ConfigError>& errors);

// What spec_from_value reads back as the same spec.
Value spec_to_value(const PipelineSpec& spec);

}  // namespace batchplane
