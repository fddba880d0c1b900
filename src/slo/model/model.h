// SPDX-License-Identifier: BSD-3-Clause
// model.h - what controllers derive from the graph once: where buffers may pay, and which modules
// share the batches of each.
#pragma once

#include <cstdint>
#include <vector>

#include "exec/control.h"

namespace batchplane::slo {

// Sets is_controlled of every module in front of which batches may have become smaller: it stands
// behind a splitter of two branches or more, or two edges lead to it, or it is the first of its task
// in a pipeline of several. Egress modules have nothing
// to gain. Cost decides later whether a buffer pays (`Settings::controllable_bound`).
void mark_controlled(exec::ControlModel& model);

// A controlled module and what its batches run through before the next controlled one: followers
// add their costs to it.
struct Segment {
  uint32_t head = 0;
  std::vector<uint32_t>
      members;  // head first, then every module reached without crossing another head
};
// One for each controlled module of the model, in the order of the pipeline file.
std::vector<Segment> segments_of(const exec::ControlModel& model);

inline constexpr uint32_t kNoSegment = ~0U;
// By module, the segment that it is the head of.
std::vector<uint32_t> segment_of_heads(const exec::ControlModel& model,
                                       const std::vector<Segment>& segments);
// By segment, those of its task whose heads follow one of its members.
std::vector<std::vector<uint32_t>> next_segments(const exec::ControlModel& model,
                                                 const std::vector<Segment>& segments);
// By module, those that edges lead to, each once.
std::vector<std::vector<uint32_t>> successors_of(const exec::ControlModel& model);

}  // namespace batchplane::slo
