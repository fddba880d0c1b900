// SPDX-License-Identifier: BSD-3-Clause
// control_remote.h - a controller in another program: periods and decisions as plain values, and which client
// decides.
#pragma once

#include <cstdint>
#include <vector>

#include "base/value.h"
#include "exec/control.h"

namespace batchplane::app {

inline constexpr const char* kRemoteController = "remote";

// The deciding client and its state. Periods are numbered from 1.
struct RemoteSeat {
  uint64_t client = 0;      // 0: no client has asked for a period yet
  uint64_t handed = 0;      // the last period handed out
  uint64_t handed_ns = 0;   // when
  uint64_t active_ns = 0;   // when the program last did anything
  bool is_waiting = false;  // for the end of a period
  bool is_told = false;     // its inactivity has been reported
};

[[nodiscard]] Value model_value(const exec::ControlModel& model);
// Columns over modules, flows and tasks, as Python controllers expect them.
[[nodiscard]] Value period_value(const exec::PeriodSnapshot& period);
// Throws ConfigError if any change is invalid; then none applies.
[[nodiscard]] std::vector<exec::BufferChange> changes_from(const Value& changes,
                                                           const exec::ControlModel& model);
// [{module, credit_pkts}], or null: none. Throws ConfigError.
[[nodiscard]] std::vector<exec::CreditChange> credits_from(const Value& credits,
                                                           const exec::ControlModel& model);
// [{task, poll_pkts}], or null: none. Throws ConfigError.
[[nodiscard]] std::vector<exec::PollChange> polls_from(const Value& polls,
                                                       const exec::ControlModel& model);

}  // namespace batchplane::app
