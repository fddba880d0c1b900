// SPDX-License-Identifier: BSD-3-Clause
// routes.h - which way each flow of the pipeline's generators and sources takes, as JSON.
#pragma once

#include <cstdint>

#include "base/error.h"
#include "base/value.h"
#include "spec/pipeline_spec.h"

namespace batchplane::app {

enum class RoutesAre : uint8_t { kEach, kGrouped };

// {"routes": {generator: [{name, gates, ways}]}, "frames": .., "free": {splitter: {weights}},
// "schedulers": {module: numbers}, "warnings": [..]}. `frames` is null or {"frames": {generator or input module: [hex, ..]}}:
// further packets that come in there. The packet backend need not run; no device is opened. Throws
// ConfigErrors.
// kGrouped: routes as GroupedRoutes tells them, without names and gates; and of trees, whose nodes may be
// very many, the discipline alone.
Value find_routes(const PipelineSpec& spec, const Value& frames, RoutesAre form = RoutesAre::kEach);

}  // namespace batchplane::app
