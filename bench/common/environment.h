// SPDX-License-Identifier: BSD-3-Clause
// environment.h - what every benchmark needs first: EAL memory, a pinned core, and a name for the
// machine.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace bench {

// Brings up EAL with `memory_mb` of anonymous memory on transparent huge pages, and pins this
// thread to `core`. Ends the process with a message when it cannot.
void set_up(uint32_t memory_mb, int core);

// Runs the benchmark; what it throws becomes one line and exit code 1.
int guarded(const std::function<int()>& benchmark);

// CPU model and lookup-relevant features, for the head of each result.
std::string cpu_model();

}  // namespace bench
