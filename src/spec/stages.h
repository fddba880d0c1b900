// SPDX-License-Identifier: BSD-3-Clause
// stages.h - modules that run on a device: where a task ends, and another begins.
#pragma once

#include <string>

#include "spec/kinds.h"
#include "spec/params.h"
#include "spec/pipeline_spec.h"

namespace batchplane {

// Of every kind that can run on a device there are two more: what packets are put into and come out of, and
// where they go on by the gates that they were given.
inline constexpr const char* kStageSuffix = "/stage";
inline constexpr const char* kResultsSuffix = "/results";
// NAME/done follows NAME.
[[nodiscard]] std::string results_name(const std::string& stage);
[[nodiscard]] std::string stage_of_results(const std::string& results);

// A module with `device` becomes a stage, and NAME/done has its edges. Paths lead through both. Before
// add_doors(). Notes modules that run on no device.
void add_stages(PipelineSpec& spec, const Kinds& kinds, Mistakes& mistakes);

// The same with every module on the worker that brings its packets.
void leave_out_devices(PipelineSpec& spec);

// The pipeline as it was written. After without_doors().
[[nodiscard]] PipelineSpec without_stages(const PipelineSpec& spec);

}  // namespace batchplane
