// SPDX-License-Identifier: BSD-3-Clause
// session_quota.h - how much may be used under a usage reporting rule, and the packet that would be
// too much.
//
// What is granted lies in the rule tables and changes with them in one step; what was taken of it
// is one word, and whoever sends a packet on takes its bytes by comparing and exchanging that word:
// workers share a quota without a lock, and together never take more than it has.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "modules/common/tally.h"

namespace batchplane::session {

enum class QuotaKind : uint8_t { kVolume, kUp, kDown, kTime };
inline constexpr size_t kQuotaKinds = 4;

// As the rules that are under it read it, each its own copy.
struct Quota {
  static constexpr uint32_t kNone = ~0U;

  uint64_t limit = 0;      // volume: of QuotaState::taken; time: ns
  uint32_t place = kNone;  // of its QuotaState
  uint32_t grant = 0;      // which one it is there, from 1 on
  uint32_t next = kNone;   // of the same rule
  QuotaKind kind = QuotaKind::kVolume;

  [[nodiscard]] bool is_time() const { return kind == QuotaKind::kTime; }
};

// Owner: taken, used_up: all workers; told, reported: the one that watches.
struct alignas(32) QuotaState {
  std::atomic<uint64_t> taken{0};  // volume: bytes ever; time: when the first packet came, 0: none
  std::atomic<uint32_t> used_up{0};  // the grant of which a packet found too little left
  Tally told;                        // the grant whose end was reported
  Tally reported;                    // volume: what was taken when the last report was made

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

// Whether so much is left. A packet for which there is not uses the quota up: no shorter one
// overtakes it.
[[nodiscard]] inline bool has_left(const Quota& quota, QuotaState& state, uint32_t bytes,
                                   uint64_t now_ns) noexcept {
  if (is_used_up(quota, state, now_ns)) return false;
  if (quota.is_time() || left_of(quota, state, now_ns) >= bytes) return true;
  state.used_up.store(quota.grant, std::memory_order_relaxed);
  return false;
}

// Takes it, unless another worker was faster. Time runs from the first packet on.
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

// All quotas of a rule, from `first` on, let the packet pass, and it is taken of each; or of none.
// Each one is asked, so that it is the same for all in which order they stand.
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
