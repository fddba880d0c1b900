// SPDX-License-Identifier: BSD-3-Clause
// control_priority.h - what puts control before generators, devices and workers on its core.
#pragma once

namespace batchplane::app {

// Of the kernel's time-sharing, never real-time: whoever spins for a lock at real-time priority (those of DPDK are
// spun for) keeps the thread that has it from running, and with it everything else on that core.
constexpr int kControlNice = -10;

// Lets threads of this process have it without a right of their own, where the system allows that.
void allow_control_priority();
// Whether they may then.
bool is_control_priority_allowed();

// The calling thread, which also wakes to the microsecond. Threads that it makes have an ordinary priority. False
// where it may not.
bool take_control_priority();

}  // namespace batchplane::app
