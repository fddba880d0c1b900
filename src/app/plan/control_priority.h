// SPDX-License-Identifier: BSD-3-Clause
// control_priority.h - gives control threads priority over generators, devices and workers on their core.
#pragma once

namespace batchplane::app {

// A nice value of the kernel's time sharing, never real-time priority: a real-time thread that spins for a
// lock (as DPDK's locks do) keeps the lock's holder on that core from running, and with it everything else
// there.
constexpr int kControlNice = -10;

// Lets threads of this process raise their priority without a capability, where the system permits it.
void allow_control_priority();
// Whether they may do so.
bool is_control_priority_allowed();

// Raises the priority of the calling thread and makes its timers precise to the microsecond. Threads that it
// creates get normal priority. False when not permitted.
bool take_control_priority();

}  // namespace batchplane::app
