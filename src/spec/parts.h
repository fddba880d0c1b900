// SPDX-License-Identifier: BSD-3-Clause
// parts.h - parts of a graph that run on another worker than the one that brings their packets.
#pragma once

#include <string>
#include <vector>

#include "spec/kinds.h"
#include "spec/params.h"
#include "spec/pipeline_spec.h"

namespace batchplane {

// Under this name stands the cost of queues before parts that have none of their own.
inline constexpr const char* kAnyInQueue = "/in";

// NAME/in leads to NAME.
[[nodiscard]] std::string in_queue_name(const std::string& module);

// A module with `worker` runs there, and so does whatever is fed from there only. Where an edge leads from
// one worker to another, a queue NAME/in comes before the module at its end, and paths lead through it.
// Inputs and queues have a worker of their own already: it is the one that polls them. After add_stages(),
// before add_doors(). What has mistakes in it is left as it is.
void add_parts(PipelineSpec& spec, const Kinds& kinds);

// Packets that the queue before a part holds, unless the pipeline says otherwise.
[[nodiscard]] uint32_t in_queue_pkts(const PipelineSpec& spec);

struct PartMove {
  std::string module;
  std::string worker;
};

// The pipeline with those modules on those workers, or polled by them: parts and doors are made anew.
// Nothing is said of a worker that follows from what feeds the module. Throws ConfigError.
[[nodiscard]] PipelineSpec with_moves(const PipelineSpec& spec, const std::vector<PartMove>& moves,
                                      const Kinds& kinds);

// Whether both have the same modules on the same workers, joined in the same way.
[[nodiscard]] bool has_same_layout(const PipelineSpec& a, const PipelineSpec& b);

// The pipeline as it was written. After without_doors().
[[nodiscard]] PipelineSpec without_parts(const PipelineSpec& spec);

}  // namespace batchplane
