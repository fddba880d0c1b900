// SPDX-License-Identifier: BSD-3-Clause
// routes.h - finds the way of each flow of the pipeline's generators and sources, as JSON.
#pragma once

#include <cstdint>
#include <memory>

#include "base/error.h"
#include "base/value.h"
#include "core/graph/graph.h"
#include "core/packet/packet_pool.h"
#include "spec/pipeline_spec.h"

namespace batchplane::app {

enum class RoutesAre : uint8_t { kEach, kGrouped };

// {"routes": {generator: [{name, gates, ways}]}, "frames": .., "free": {splitter: {weights}},
// "schedulers": {module: numbers}, "warnings": [..]}. `frames` is null or
// {"frames": {generator or input module: [hex, ..]}}: further packets that arrive there. The packet backend
// need not run; no device is opened. Throws ConfigErrors.
//
// kGrouped: routes as in GroupedRoutes, without names and gates; schedulers have the bounds of
// the flows that come to them. Of trees, which may have very many nodes, nothing else.
Value find_routes(const PipelineSpec& spec, const Value& frames, RoutesAre form = RoutesAre::kEach);
// The same in a graph that exists and is not to run (Environment::is_offline). The pool outlives it.
Value routes_in(Graph& graph, PacketPool& pool, const Value& frames, RoutesAre form);
std::unique_ptr<PacketPool> pool_for_routes(const PipelineSpec& spec, const Environment& env);

}  // namespace batchplane::app
