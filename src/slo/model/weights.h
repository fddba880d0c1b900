// SPDX-License-Identifier: BSD-3-Clause
// weights.h - from what units need of their task's core to weights, for the controllers that set
// them.
#pragma once

#include <vector>

#include "slo/model/controller.h"
#include "slo/model/model.h"

namespace batchplane::slo {

// The units of one task, and its inputs as the one that polls.
struct ScheduledTask {
  uint32_t task = 0;
  std::vector<uint32_t> heads;  // segments
};

// Tasks that are scheduled explicitly. Throws ConfigError where there is none: `name` is the
// controller that needs one.
std::vector<ScheduledTask> scheduled_tasks(const Model& model, const std::vector<Segment>& segments,
                                           const std::string& name);

// Weights in proportion to `demands`, the largest kMaxWeight, none below 1.
std::vector<uint32_t> weights_of(const std::vector<double>& demands);

// What a segment's modules cost during the period, by the cost law: ns.
double segment_work_ns(const Snapshot& snapshot, const Segment& segment);
// The same for polling and what follows inside no segment.
double input_work_ns(const Snapshot& snapshot, const Model& model,
                     const std::vector<Segment>& segments, uint32_t task);

// Adds the changes that give units and inputs of `task` these weights, where they differ by more
// than noise. weights: of the heads, then of the input.
void change_weights(const Snapshot& snapshot, const Model& model,
                    const std::vector<Segment>& segments, const ScheduledTask& task,
                    const std::vector<uint32_t>& weights, Decision& decision);

// The change of a module in the decision; made where there is none yet.
exec::BufferChange& change_of(Decision& decision, uint32_t module, const char* reason);

}  // namespace batchplane::slo
