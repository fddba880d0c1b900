// SPDX-License-Identifier: BSD-3-Clause
// pin_thread.h - binds a thread to a core.
#pragma once

#include <pthread.h>
#include <sched.h>

namespace batchplane {

// The calling thread; false when the core cannot be had.
inline bool pin_this_thread(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<size_t>(core), &set);
  return pthread_setaffinity_np(pthread_self(), sizeof set, &set) == 0;
}

}  // namespace batchplane
