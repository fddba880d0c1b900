// SPDX-License-Identifier: BSD-3-Clause
// spec_read.h - functions shared by the parts of parse_spec.
#pragma once

#include "sim/spec.h"

namespace batchplane::sim {

// spec_source.cc: stalls of a core, from this key of `simulation`.
[[nodiscard]] StallSpec read_stalls(const Value& simulation, const std::string& key);
// spec_source.cc: generators and inline sources of the pipeline, with their routes and traces.
void read_sources(const Value& simulation, Traces traces, Spec& spec);

// spec_stages.cc: turns every module with a device into a stage followed by NAME/done.
void read_stages(const Value& stages, Spec& spec);

}  // namespace batchplane::sim
