// SPDX-License-Identifier: BSD-3-Clause
// pin_thread.h - binds a thread to a core.
#pragma once

#include <pthread.h>
#include <sched.h>

#include <vector>

namespace batchplane {

// Pins the calling thread; false when it may not run on that core.
inline bool pin_this_thread(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<size_t>(core), &set);
  return pthread_setaffinity_np(pthread_self(), sizeof set, &set) == 0;
}

// Removes these cores from the calling thread's affinity, if any core remains.
inline void keep_off_cores(const std::vector<int>& cores) {
  cpu_set_t set;
  if (pthread_getaffinity_np(pthread_self(), sizeof set, &set) != 0) return;
  for (const int core : cores) CPU_CLR(static_cast<size_t>(core), &set);
  if (CPU_COUNT(&set) != 0) pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

}  // namespace batchplane
