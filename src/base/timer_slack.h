// SPDX-License-Identifier: BSD-3-Clause
// timer_slack.h - how late the kernel may wake a thread that sleeps.
#pragma once

#include <sys/prctl.h>

namespace batchplane {

// The calling thread, and those that it makes: by a microsecond, and not by fifty.
inline void wake_to_the_microsecond() {
  constexpr unsigned long kSlackNs = 1'000;
  prctl(PR_SET_TIMERSLACK, kSlackNs, 0, 0, 0);
}

}  // namespace batchplane
