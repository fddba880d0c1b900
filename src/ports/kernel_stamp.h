// SPDX-License-Identifier: BSD-3-Clause
// kernel_stamp.h - when a frame came, by the kernel's time stamp, on the clock that delays count by.
#pragma once

#include <algorithm>
#include <cstdint>
#include <ctime>

namespace batchplane::ports {

// No ring holds frames for longer, so a stamp that is older tells that the clock was set meanwhile.
inline constexpr uint64_t kMaxStampAgeNs = 60'000'000'000;

inline uint64_t real_time_ns() noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);  // without a system call
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

// `now_ns` and `real_ns` are one moment on the two clocks. Never later than now, and now itself where
// the stamp can be no time of arrival.
inline uint64_t arrival_ns(uint64_t now_ns, uint64_t real_ns, uint64_t stamp_ns) noexcept {
  if (stamp_ns == 0 || stamp_ns > real_ns) return now_ns;
  const uint64_t age_ns = real_ns - stamp_ns;
  return age_ns > kMaxStampAgeNs ? now_ns : now_ns - std::min(age_ns, now_ns);
}

}  // namespace batchplane::ports
