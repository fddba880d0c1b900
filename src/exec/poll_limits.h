// SPDX-License-Identifier: BSD-3-Clause
// poll_limits.h - changes of how many packets a task's polls may take, checked by the same rule in engine and
// simulator.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "exec/control.h"

namespace batchplane::exec {

// Throws ConfigError.
inline void check_polls(const ControlModel& model, const std::vector<PollChange>& polls) {
  for (const PollChange& change : polls) {
    if (change.task >= model.tasks.size()) {
      throw ConfigError("a change names task " + std::to_string(change.task) + " of " +
                            std::to_string(model.tasks.size()),
                        "decision", "tasks are numbered from 0, as the model lists them");
    }
    if (change.poll_pkts >= 1 && change.poll_pkts <= model.batch_limit_pkts) continue;
    const ControlTask& task = model.tasks[change.task];
    throw ConfigError("a poll of " + std::to_string(change.poll_pkts) + " packets is out of range",
                      task.inputs.empty() ? "decision" : model.modules[task.inputs.front()].name,
                      "1 to engine.batch_pkts, " + std::to_string(model.batch_limit_pkts));
  }
}

// Changes by modules that tasks poll, as pairs of (module, poll_pkts); of several that one task polls the
// least counts, as in a pipeline. Throws ConfigError.
inline std::vector<PollChange> poll_changes(
    const ControlModel& model, const std::vector<std::pair<uint32_t, uint32_t>>& of_modules) {
  std::vector<PollChange> polls;
  for (const auto& [module, poll_pkts] : of_modules) {
    const size_t input = input_of(model, module);
    if (input == model.inputs.size()) {
      throw ConfigError("'" + model.modules[module].name + "' is not polled", "poll_pkts",
                        "name the input or queue that brings its packets");
    }
    const uint32_t task = model.inputs[input].task;
    const auto same = std::ranges::find(polls, task, &PollChange::task);
    if (same == polls.end()) {
      polls.push_back({task, poll_pkts});
    } else {
      same->poll_pkts = std::min(same->poll_pkts, poll_pkts);
    }
  }
  check_polls(model, polls);
  return polls;
}

}  // namespace batchplane::exec
