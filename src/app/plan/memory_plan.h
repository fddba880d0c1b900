// SPDX-License-Identifier: BSD-3-Clause
// memory_plan.h - number and size of the packets that a pipeline needs, and the memory for them.
#pragma once

#include <cstdint>

#include "core/graph/graph.h"
#include "spec/pipeline_spec.h"

namespace batchplane::app {

// Bytes per packet for the longest frame that ports, interfaces, sources and generators name.
uint32_t data_bytes_needed(const PipelineSpec& spec, const Environment& env);

// Memory for pool and tables, estimated before anything is built; errs on the high side, since untouched
// pages cost nothing. Tables count twice: an apply with a different declaration fills a new table beside the
// running one (an unchanged one is shared).
uint64_t memory_mb_estimate(const PipelineSpec& spec);

// The pool size for `graph`; throws ConfigError when the pipeline asks for too small a pool.
uint32_t pool_pkts_for(const Graph& graph);

}  // namespace batchplane::app
