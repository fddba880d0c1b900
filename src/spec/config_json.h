// SPDX-License-Identifier: BSD-3-Clause
// config_json.h - converts a pipeline between its canonical JSON form and PipelineSpec.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "base/value.h"
#include "spec/pipeline_spec.h"

namespace batchplane {

inline constexpr int64_t kPipelineVersion = 1;

// Strict: records all unknown keys, wrong types and values out of range, and reads the rest. build_graph
// checks that names exist and parameters fit.
PipelineSpec spec_from_value(const Value& pipeline, std::vector<ConfigError>& errors);

// The inverse of spec_from_value.
Value spec_to_value(const PipelineSpec& spec);

}  // namespace batchplane
