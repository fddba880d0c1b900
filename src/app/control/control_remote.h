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
  uint64_t client = 0;      // 0: nobody has asked for a period yet
  uint64_t handed = 0;      // the last period that was handed out
  uint64_t handed_ns = 0;   // when
  uint64_t active_ns = 0;   // when the program last did anything
  bool is_waiting = false;  // for the end of a period
  bool is_told = false;     // that it has not been active for too long
};

[[nodiscard]] Value model_value(const exec::ControlModel& model);
// Columns over modules, flows and tasks, as controllers in Python know them.
[[nodiscard]] Value period_value(const exec::PeriodSnapshot& period);
// Throws ConfigError for what cannot be: nothing of it is meant then.
[[nodiscard]] std::vector<exec::BufferChange> changes_from(const Value& changes,
                                                           const exec::ControlModel& model);

}  // namespace batchplane::app
