// SPDX-License-Identifier: BSD-3-Clause
// virtual_time.h - the arithmetic of fair queueing: virtual service times of packets.
//
// A packet of len bytes takes len * 2^40 / w in a flow of weight w; the system's virtual time
// advances by len * 2^40 / (sum of all weights). Times wrap at 2^64 and are compared by the sign of
// their difference, which is right while they are less than 2^63 apart. A backlogged flow is never
// further from virtual time than a few of its longest packets, at most 4 * 65535 * 2^40 < 2^58. An
// idle flow may be any distance away, so its last finish counts only within such a distance.
#pragma once

#include <cstdint>

namespace batchplane::egress {

inline constexpr uint64_t kVirtualOne = 1ULL << 40;

inline bool is_later(uint64_t a, uint64_t b) { return static_cast<int64_t>(a - b) > 0; }
inline uint64_t later_of(uint64_t a, uint64_t b) { return is_later(a, b) ? a : b; }
inline uint64_t earlier_of(uint64_t a, uint64_t b) { return is_later(a, b) ? b : a; }

// Rounded to nearest: a one-sided error would add up over a long backlog.
inline uint64_t inverse_of_weight(uint64_t weight) {
  return weight == 0 ? 0 : (kVirtualOne + weight / 2) / weight;
}

}  // namespace batchplane::egress
