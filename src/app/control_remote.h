// SPDX-License-Identifier: BSD-3-Clause
// control_remote.h - a controller that is another program: periods and decisions as plain values,
// and who sits at its place.
#pragma once

#include <cstdint>
#include <vector>

#include "base/value.h"
#include "exec/control.h"

namespace batchplane::app {

inline constexpr const char* kRemoteController = "remote";

// Which client decides, and how far it has come. Periods are numbered from 1 on.
struct RemoteSeat {
  uint64_t client = 0;  // 0: nobody has asked for a period yet
  uint64_t handed = 0;  // the last period that was handed out
  uint64_t handed_ns = 0;
  uint64_t answered = 0;  // the last one that was decided upon
  uint64_t told = 0;      // the one whose missing answer has been told

  [[nodiscard]] bool is_waited_for() const { return handed > answered; }
};

[[nodiscard]] Value model_value(const exec::ControlModel& model);
// Columns over modules, flows and tasks, as controllers in Python know them.
[[nodiscard]] Value period_value(const exec::PeriodSnapshot& period);
// Throws ConfigError for what cannot be: nothing of it is meant then.
[[nodiscard]] std::vector<exec::BufferChange> changes_from(const Value& changes,
                                                           const exec::ControlModel& model);

}  // namespace batchplane::app
