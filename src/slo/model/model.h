// SPDX-License-Identifier: BSD-3-Clause
// model.h - facts that controllers derive from the graph once: where buffers may pay off, and which
// modules share the batches of each buffer.
#pragma once

#include <cstdint>
#include <vector>

#include "exec/control.h"

namespace batchplane::slo {

// Sets is_controlled of every module that may receive smaller batches than its task polls: modules
// behind a splitter with two or more branches, modules with two or more incoming edges, and the
// first module of each task in a pipeline of several tasks. Egress modules and stages gain nothing
// from buffers. Whether a buffer pays off at a module's cost is decided later
// (`Settings::controllable_bound`).
void mark_controlled(exec::ControlModel& model);

// A controlled module and the modules that its batches pass before the next controlled one. Their
// costs are added to its own.
struct Segment {
  uint32_t head = 0;
  std::vector<uint32_t>
      members;  // head first, then every module reached without crossing another head
};
// One per controlled module of the model, in the order of the pipeline file.
std::vector<Segment> segments_of(const exec::ControlModel& model);

inline constexpr uint32_t kNoSegment = ~0U;
// By module: the segment that it heads, or kNoSegment.
std::vector<uint32_t> segment_of_heads(const exec::ControlModel& model,
                                       const std::vector<Segment>& segments);
// By segment: the segments of its task whose heads directly follow one of its members.
std::vector<std::vector<uint32_t>> next_segments(const exec::ControlModel& model,
                                                 const std::vector<Segment>& segments);
// By module: the modules that its edges lead to, each once.
std::vector<std::vector<uint32_t>> successors_of(const exec::ControlModel& model);

}  // namespace batchplane::slo
