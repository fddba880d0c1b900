// SPDX-License-Identifier: BSD-3-Clause
// session_quota.h - the usage allowed under a usage reporting rule, and the check that refuses the
// packet that would exceed it.
//
// The granted amount is in the rule tables and changes with them in one step; the amount used is a
// single word. Before it sends a packet on, a worker adds the packet's bytes to that word by
// compare-and-exchange: workers share a quota without a lock and together never exceed it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "modules/common/tally.h"

namespace batchplane::session {

enum class QuotaKind : uint8_t { kVolume, kUp, kDown, kTime };
inline constexpr size_t kQuotaKinds = 4;

// As the rules under the quota read it; each has its own copy.
struct Quota {
  static constexpr uint32_t kNone = ~0U;

  uint64_t limit = 0;      // volume: upper bound of QuotaState::taken; time: duration in ns
  uint32_t place = kNone;  // of its QuotaState
  uint32_t grant = 0;      // number of the grant at this place, from 1
  uint32_t next = kNone;   // next quota of the same rule
  QuotaKind kind = QuotaKind::kVolume;

  [[nodiscard]] bool is_time() const { return kind == QuotaKind::kTime; }
};

// Owner: taken, used_up: all workers; told, reported: the worker that watches usage.
struct alignas(32) QuotaState {
  std::atomic<uint64_t> taken{
      0};  // volume: total bytes ever; time: arrival of the first packet, 0: none yet
  std::atomic<uint32_t> used_up{0};  // the grant that had too little left for a packet
  Tally told;                        // the last grant reported as used up
  Tally reported;                    // volume: `taken` at the last report

  void reset() {
    taken.store(0, std::memory_order_relaxed);
    used_up.store(0, std::memory_order_relaxed);
    told.set(0);
    reported.set(0);
  }
};
static_assert(sizeof(QuotaState) == 32);

// Bytes, or ns.
[[nodiscard]] inline uint64_t left_of(const Quota& quota, const QuotaState& state,
                                      uint64_t now_ns) noexcept {
  const uint64_t taken = state.taken.load(std::memory_order_relaxed);
  const uint64_t used =
      quota.is_time() ? (taken == 0 ? 0 : now_ns - std::min(now_ns, taken)) : taken;
  return quota.limit - std::min(quota.limit, used);
}
[[nodiscard]] inline bool is_used_up(const Quota& quota, const QuotaState& state,
                                     uint64_t now_ns) noexcept {
  return state.used_up.load(std::memory_order_relaxed) == quota.grant ||
         left_of(quota, state, now_ns) == 0;
}

// Whether at least `bytes` are left. A packet that finds too little uses the quota up, so that no
// shorter packet overtakes it.
[[nodiscard]] inline bool has_left(const Quota& quota, QuotaState& state, uint32_t bytes,
                                   uint64_t now_ns) noexcept {
  if (is_used_up(quota, state, now_ns)) return false;
  if (quota.is_time() || left_of(quota, state, now_ns) >= bytes) return true;
  state.used_up.store(quota.grant, std::memory_order_relaxed);
  return false;
}

// Takes the bytes; false if another worker got there first. Time runs from the first packet.
[[nodiscard]] inline bool take_of(const Quota& quota, QuotaState& state, uint32_t bytes,
                                  uint64_t now_ns) noexcept {
  uint64_t taken = state.taken.load(std::memory_order_relaxed);
  if (quota.is_time()) {
    if (taken == 0) {
      (void)state.taken.compare_exchange_strong(taken, std::max<uint64_t>(now_ns, 1),
                                                std::memory_order_relaxed);
    }
    return true;
  }
  do {
    if (taken + bytes > quota.limit) {
      state.used_up.store(quota.grant, std::memory_order_relaxed);
      return false;
    }
  } while (!state.taken.compare_exchange_weak(taken, taken + bytes, std::memory_order_relaxed));
  return true;
}
inline void give_back(const Quota& quota, QuotaState& state, uint32_t bytes) noexcept {
  if (!quota.is_time()) state.taken.fetch_sub(bytes, std::memory_order_relaxed);
}

// Takes the packet from all quotas of the rule, from `first` on, if all of them admit it; otherwise
// from none. Every quota is checked, so that their order makes no difference.
template <class Quotas, class States>
[[nodiscard]] bool take_of_all(const Quotas& quotas, States& states, uint32_t first, uint32_t bytes,
                               uint64_t now_ns) noexcept {
  bool may_pass = true;
  for (uint32_t at = first; at != Quota::kNone; at = quotas[at].next) {
    may_pass &= has_left(quotas[at], states[quotas[at].place], bytes, now_ns);
  }
  if (!may_pass) return false;
  for (uint32_t at = first; at != Quota::kNone; at = quotas[at].next) {
    if (take_of(quotas[at], states[quotas[at].place], bytes, now_ns)) continue;
    for (uint32_t back = first; back != at; back = quotas[back].next) {
      give_back(quotas[back], states[quotas[back].place], bytes);
    }
    return false;
  }
  return true;
}

}  // namespace batchplane::session
