// SPDX-License-Identifier: BSD-3-Clause
// weights.h - turns the demand of scheduling units for their task's core into weights, for the
// controllers that set weights.
#pragma once

#include <vector>

#include "slo/model/controller.h"
#include "slo/model/model.h"

namespace batchplane::slo {

// The units of one task; its inputs together count as one unit, polling.
struct ScheduledTask {
  uint32_t task = 0;
  std::vector<uint32_t> heads;  // segments
};

// Tasks with explicit scheduling. Throws ConfigError if there is none; `name` is the controller
// that needs one.
std::vector<ScheduledTask> scheduled_tasks(const Model& model, const std::vector<Segment>& segments,
                                           const std::string& name);

// Weights in proportion to `demands`: the largest is kMaxWeight, none is below 1.
std::vector<uint32_t> weights_of(const std::vector<double>& demands);

// Work of a segment's modules in the period by the cost law, in ns.
double segment_work_ns(const Snapshot& snapshot, const Segment& segment);
// The same for polling and the modules after it that belong to no segment.
double input_work_ns(const Snapshot& snapshot, const Model& model,
                     const std::vector<Segment>& segments, uint32_t task);

// Adds changes that give these weights to the units and inputs of `task`, where they differ by more
// than noise. weights: one per head, then one for the input.
void change_weights(const Snapshot& snapshot, const Model& model,
                    const std::vector<Segment>& segments, const ScheduledTask& task,
                    const std::vector<uint32_t>& weights, Decision& decision);

// The change for a module in the decision; added if there is none yet.
exec::BufferChange& change_of(Decision& decision, uint32_t module, const char* reason);

}  // namespace batchplane::slo
