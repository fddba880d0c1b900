// SPDX-License-Identifier: BSD-3-Clause
// napt_session.h - a connection: both its keys, its timer and its state in one cache line.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>

#include "modules/nat/nat_rewrite.h"

namespace batchplane::nat {

// Addresses, ports and protocol of a packet in network order. ICMP queries have their id as both
// ports.
struct NaptKey {
  uint64_t ends = 0;  // source in the lower half, destination in the upper
  uint64_t rest = 0;  // from the lowest bits on: source port, destination port, protocol

  [[nodiscard]] uint32_t src() const { return static_cast<uint32_t>(ends); }
  [[nodiscard]] uint32_t dst() const { return static_cast<uint32_t>(ends >> 32); }
  [[nodiscard]] uint16_t src_port() const { return static_cast<uint16_t>(rest); }
  [[nodiscard]] uint16_t dst_port() const { return static_cast<uint16_t>(rest >> 16); }
  [[nodiscard]] uint8_t proto() const { return static_cast<uint8_t>(rest >> 32); }
  [[nodiscard]] NaptKey reversed() const {
    return {std::rotl(ends, 32),
            (rest & ~0xffffffffULL) | std::rotl(static_cast<uint32_t>(rest), 16)};
  }
  bool operator==(const NaptKey&) const = default;
};
// A value of NaptKey::rest that no packet has.
inline constexpr uint64_t kNoPacket = ~uint64_t{0};
inline NaptKey make_key(uint32_t src, uint32_t dst, uint16_t src_port, uint16_t dst_port,
                        uint8_t proto) {
  return {uint64_t{dst} << 32 | src, uint64_t{proto} << 32 | uint32_t{dst_port} << 16 | src_port};
}

enum class NaptState : uint8_t {
  kFree,
  kUdpNew,    // packets in one direction so far
  kUdp,       // packets in both directions
  kUdpShort,  // to a port configured as short-lived
  kIcmp,
  kTcpOpening,  // RFC 5382: partially open; transitory
  kTcpOpen,     // established
  kTcpClosing,  // FINs from both ends, or a reset; transitory
};
inline constexpr uint32_t kNaptStates = 8;
inline constexpr const char* kNaptStateNames[] = {"free", "udp_new",     "udp",      "udp_short",
                                                  "icmp", "tcp_opening", "tcp_open", "tcp_closing"};
// States that are evicted first when the table is full.
inline bool is_transitory(NaptState state) {
  return state == NaptState::kUdpNew || state == NaptState::kUdpShort ||
         state == NaptState::kIcmp || state == NaptState::kTcpOpening ||
         state == NaptState::kTcpClosing;
}

// Direction of a packet; also the index of its key in NaptSession::wire.
inline constexpr uint32_t kOut = 0;
inline constexpr uint32_t kIn = 1;

// Bits of NaptSession::seen: first one per direction, then FIN per direction.
inline constexpr uint8_t kSeenOut = 1;
inline constexpr uint8_t kSeenFinOut = 4;
inline constexpr uint8_t kSeenFin = 12;
inline constexpr uint8_t kIsHairpin = 128;  // the remote address is one of our external ones
inline constexpr uint8_t kIsPeerCounted = 64;
inline constexpr uint8_t kStaysForever = kIsHairpin | kIsPeerCounted;

// Time in ticks of 2^28 ns, about a quarter of a second; wraps after 36 years.
inline constexpr uint32_t kTickShift = 28;
inline uint32_t tick_of(uint64_t now_ns) { return static_cast<uint32_t>(now_ns >> kTickShift); }
// The number of ticks after which at least `ns` have passed.
inline uint32_t ticks_for(uint64_t ns) {
  return static_cast<uint32_t>(((ns - 1) >> kTickShift) + 2);
}

// The worker writes with put(), so that the control thread may read; `version` is odd while the
// keys change.
struct alignas(64) NaptSession {
  NaptKey wire[2];  // [kOut] as the inside host sends, [kIn] as the remote host sends
  uint32_t mapping = 0;
  uint32_t last_seen = 0;  // ticks
  uint32_t timer_next = 0;
  uint32_t timer_prev = 0;
  uint32_t age_next = 0;
  uint32_t age_prev = 0;
  uint16_t growth_ip = 0;  // change of the checksummed words, outbound; its complement inbound
  uint16_t growth_l4 = 0;
  NaptState state = NaptState::kFree;
  uint8_t seen = 0;
  uint16_t version = 0;
};
static_assert(sizeof(NaptSession) == 64);

template <class T>
inline void put(T& field, T value, std::memory_order order = std::memory_order_relaxed) {
  std::atomic_ref<T>(field).store(value, order);
}
template <class T>
inline T peek(const T& field) {
  return std::atomic_ref<T>(const_cast<T&>(field)).load(std::memory_order_acquire);
}

// Source of an inside host's packets after translation, and destination of the remote host's
// packets before it.
inline uint32_t external_address(const NaptSession& session) { return session.wire[kIn].dst(); }
inline uint16_t external_port(const NaptSession& session) { return session.wire[kIn].dst_port(); }
inline uint32_t inside_address(const NaptSession& session) { return session.wire[kOut].src(); }
inline uint16_t inside_port(const NaptSession& session) { return session.wire[kOut].src_port(); }

}  // namespace batchplane::nat
