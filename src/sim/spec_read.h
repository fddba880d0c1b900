// SPDX-License-Identifier: BSD-3-Clause
// spec_read.h - what the parts of parse_spec hand to each other.
#pragma once

#include "sim/spec.h"

namespace batchplane::sim {

// spec_source.cc: holes in a core's time, under this key of `simulation`.
[[nodiscard]] StallSpec read_stalls(const Value& simulation, const std::string& key);
// spec_source.cc: generators and inline sources of the pipeline, with their routes and traces.
void read_sources(const Value& simulation, Traces traces, Spec& spec);

// spec_stages.cc: every module with a device becomes a stage, and NAME/done behind it.
void read_stages(const Value& stages, Spec& spec);

}  // namespace batchplane::sim
