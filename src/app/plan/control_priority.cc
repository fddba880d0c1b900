// SPDX-License-Identifier: BSD-3-Clause
#include "app/plan/control_priority.h"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

namespace batchplane::app {
namespace {

constexpr rlim_t kNiceLimit = 20 - kControlNice;  // as setrlimit(2) counts
constexpr unsigned long kTimerSlackNs = 1'000;    // maximum lateness of a timer
constexpr uint64_t kSliceNs = 100'000;  // a short slice is scheduled earlier; old kernels ignore it

// struct sched_attr of sched_setattr(2), which not all C libraries declare.
struct Attributes {
  uint32_t size = sizeof(Attributes);
  uint32_t policy = 0;  // SCHED_OTHER
  uint64_t flags = 1;   // SCHED_FLAG_RESET_ON_FORK
  int32_t nice = kControlNice;
  uint32_t priority = 0;
  uint64_t runtime_ns = kSliceNs;
  uint64_t deadline_ns = 0;
  uint64_t period_ns = 0;
};

}  // namespace

bool is_control_priority_allowed() {
  rlimit limit{};
  return getrlimit(RLIMIT_NICE, &limit) == 0 && limit.rlim_cur >= kNiceLimit;
}

void allow_control_priority() {
  rlimit limit{};
  if (is_control_priority_allowed() || getrlimit(RLIMIT_NICE, &limit) != 0) return;
  limit = {kNiceLimit, std::max(limit.rlim_max, kNiceLimit)};
  (void)setrlimit(RLIMIT_NICE, &limit);
}

bool take_control_priority() {
  prctl(PR_SET_TIMERSLACK, kTimerSlackNs, 0, 0, 0);
  const Attributes attributes;
  return syscall(SYS_sched_setattr, 0, &attributes, 0) == 0;
}

}  // namespace batchplane::app
