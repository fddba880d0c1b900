// SPDX-License-Identifier: BSD-3-Clause
// descriptor.h - the 16 bytes that a scheduler keeps of a packet, so that it never reads the packet
// itself.
#pragma once

#include <cstdint>

namespace batchplane::egress {

inline constexpr uint32_t kMaxPktBytes = 65'535;
inline constexpr uint32_t kMaxFlows = 1U << 24;
// Entry times are in steps of 16 ns and wrap after 68 s, so longer waits are reported too short.
inline constexpr uint32_t kTickShift = 4;
// The farthest that a departure time may lie ahead.
inline constexpr uint64_t kMaxDepartureAheadNs = 10'000'000'000;
// Rounded up: no packet is to leave early.
[[nodiscard]] inline uint32_t departure_ticks_of(uint64_t at_ns) {
  return static_cast<uint32_t>((at_ns + (1U << kTickShift) - 1) >> kTickShift);
}

struct Descriptor {
  static constexpr uint64_t kHasDeparture = 1ULL << 63;  // in handle_and_len

  // A length is never 0, so a word of 0 means that there is no packet.
  uint64_t handle_and_len = 0;
  uint32_t flow = 0;
  uint32_t entry_ticks = 0;  // with kHasDeparture: the earliest departure

  // `handle` belongs to the owner: a user-space pointer, or a number below 2^47.
  static Descriptor of(uint64_t handle, uint32_t len_bytes, uint32_t flow, uint64_t entry_ns) {
    return {handle << 16 | len_bytes, flow, static_cast<uint32_t>(entry_ns >> kTickShift)};
  }
  // Of a packet that is not to leave before a time, in ticks; for `calendar` alone.
  static Descriptor departing(uint64_t handle, uint32_t len_bytes, uint32_t flow,
                              uint32_t departure_ticks) {
    return {kHasDeparture | handle << 16 | len_bytes, flow, departure_ticks};
  }
  [[nodiscard]] bool has_departure() const { return (handle_and_len & kHasDeparture) != 0; }
  [[nodiscard]] uint64_t handle() const { return (handle_and_len & ~kHasDeparture) >> 16; }
  [[nodiscard]] uint32_t len_bytes() const { return handle_and_len & 0xffff; }
  // Entry or earliest departure. May be before or after `now_ns`, by at most half a minute: other
  // workers' clocks may be ahead.
  [[nodiscard]] uint64_t entry_ns(uint64_t now_ns) const {
    const auto now_ticks = static_cast<uint32_t>(now_ns >> kTickShift);
    const int64_t ahead_ticks = static_cast<int32_t>(entry_ticks - now_ticks);
    return ((now_ns >> kTickShift) + static_cast<uint64_t>(ahead_ticks)) << kTickShift;
  }
  [[nodiscard]] uint64_t waited_ns(uint64_t now_ns) const {
    const auto now_ticks = static_cast<uint32_t>(now_ns >> kTickShift);
    return static_cast<uint64_t>(now_ticks - entry_ticks) << kTickShift;
  }
};
static_assert(sizeof(Descriptor) == 16);

}  // namespace batchplane::egress
