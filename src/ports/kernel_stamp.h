// SPDX-License-Identifier: BSD-3-Clause
// kernel_stamp.h - converts the kernel's time stamp of a frame to the clock in which delays are measured.
#pragma once

#include <algorithm>
#include <cstdint>
#include <ctime>

namespace batchplane::ports {

// No ring holds frames for longer: an older stamp means that the clock was set meanwhile.
inline constexpr uint64_t kMaxStampAgeNs = 60'000'000'000;

inline uint64_t real_time_ns() noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);  // vDSO, no system call
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

// `now_ns` and `real_ns` are the same moment on the two clocks. Returns at most now_ns, and now_ns itself
// when the stamp cannot be a time of arrival.
inline uint64_t arrival_ns(uint64_t now_ns, uint64_t real_ns, uint64_t stamp_ns) noexcept {
  if (stamp_ns == 0 || stamp_ns > real_ns) return now_ns;
  const uint64_t age_ns = real_ns - stamp_ns;
  return age_ns > kMaxStampAgeNs ? now_ns : now_ns - std::min(age_ns, now_ns);
}

}  // namespace batchplane::ports
