// SPDX-License-Identifier: BSD-3-Clause
// stages.h - modules that run on a device: one task ends there, and another begins.
#pragma once

#include <string>

#include "spec/kinds.h"
#include "spec/params.h"
#include "spec/pipeline_spec.h"

namespace batchplane {

// Every kind that can run on a device has two derived kinds: a stage, which packets are put into and polled
// from, and its results, which distribute the packets to the gates that they were given.
inline constexpr const char* kStageSuffix = "/stage";
inline constexpr const char* kResultsSuffix = "/results";
// NAME/done follows NAME.
[[nodiscard]] std::string results_name(const std::string& stage);
[[nodiscard]] std::string stage_of_results(const std::string& results);

// A module with `device` becomes a stage, and NAME/done gets its edges. Paths lead through both. Call before
// add_doors(). Records a mistake for modules that cannot run on a device.
void add_stages(PipelineSpec& spec, const Kinds& kinds, Mistakes& mistakes);

// Moves every such module back to the worker that brings its packets.
void leave_out_devices(PipelineSpec& spec);

// The pipeline without stages, as it was written. Call after without_doors().
[[nodiscard]] PipelineSpec without_stages(const PipelineSpec& spec);

}  // namespace batchplane
