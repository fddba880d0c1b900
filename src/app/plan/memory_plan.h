// SPDX-License-Identifier: BSD-3-Clause
// memory_plan.h - how many packets of which size a pipeline needs, and how much memory that takes.
#pragma once

#include <cstdint>

#include "core/graph/graph.h"
#include "spec/pipeline_spec.h"

namespace batchplane::app {

// Room in a packet for the longest frame that ports, interfaces, sources and generators name.
uint32_t data_bytes_needed(const PipelineSpec& spec, const Environment& env);

// Memory for pool and tables, before anything is built: an estimate that errs on the high side,
// since pages that nobody touches cost nothing. Tables count twice: an apply that declares another
// one fills it beside the one that runs (the same one is shared).
uint64_t memory_mb_estimate(const PipelineSpec& spec);

// The pool that `graph` gets; throws ConfigError when the pipeline asks for one that is too small.
uint32_t pool_pkts_for(const Graph& graph);

}  // namespace batchplane::app
