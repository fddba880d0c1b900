// SPDX-License-Identifier: BSD-3-Clause
// parts.h - parts of a graph that run on another worker than the one that polls their packets.
#pragma once

#include <string>
#include <vector>

#include "spec/kinds.h"
#include "spec/params.h"
#include "spec/pipeline_spec.h"

namespace batchplane {

// Name of the cost of queues before parts that have no cost of their own.
inline constexpr const char* kAnyInQueue = "/in";

// The queue NAME/in leads to NAME.
[[nodiscard]] std::string in_queue_name(const std::string& module);

// A module with `worker` runs there, and so does everything that is fed only from there. Where an edge leads
// from one worker to another, a queue NAME/in is inserted before the module at its end, and paths lead
// through it. For inputs and queues, `worker` is the one that polls them. Call after add_stages() and before
// add_doors(). Invalid parts are left unchanged.
void add_parts(PipelineSpec& spec, const Kinds& kinds);

// Default capacity of the queue before a part.
[[nodiscard]] uint32_t in_queue_pkts(const PipelineSpec& spec);

struct PartMove {
  std::string module;
  std::string worker;
};

// The pipeline with those modules moved to, or polled by, those workers: parts and doors are made anew.
// Workers that follow from a module's feeders are left out. Throws ConfigError.
[[nodiscard]] PipelineSpec with_moves(const PipelineSpec& spec, const std::vector<PartMove>& moves,
                                      const Kinds& kinds);

// Whether both have the same modules on the same workers, connected in the same way.
[[nodiscard]] bool has_same_layout(const PipelineSpec& a, const PipelineSpec& b);

// Writes down as `in_queue` what was set live on the queues before parts, by whom does not matter.
void note_in_queues(PipelineSpec& spec);

// The pipeline without parts, as it was written. Call after without_doors().
[[nodiscard]] PipelineSpec without_parts(const PipelineSpec& spec);

}  // namespace batchplane
