// SPDX-License-Identifier: BSD-3-Clause
// napt_timers.cc - state transitions of connections and their places on the timer wheel.
#include "modules/nat/napt_timers.h"

#include <algorithm>

#include "base/net.h"

namespace batchplane::nat {
NaptTimers::NaptTimers(BigArray<NaptSession>& sessions, const NaptStateRules& rules)
    : sessions_(sessions), rules_(rules) {
  // No packet has this key: a failed lookup yields entry 0, which must not match.
  sessions_[0].wire[kOut].rest = sessions_[0].wire[kIn].rest = kNoPacket;
}

void NaptTimers::link_timer(uint32_t index, uint32_t now) noexcept {
  NaptSession& session = sessions_[index];
  const uint32_t limit = rules_[static_cast<uint32_t>(session.state)].limit;
  const uint32_t passed = now - session.last_seen;
  const uint32_t wait = passed < limit ? limit - passed : 1;
  // At least one slot ahead of the hand, and less than a full turn.
  const uint32_t from_hand = std::min(now - hand_ + wait, kSlots - 1);
  const uint32_t slot = (hand_ + from_hand) % kSlots;
  session.timer_next = slots_[slot];
  session.timer_prev = kIsHead | slot;
  if (session.timer_next != 0) sessions_[session.timer_next].timer_prev = index;
  slots_[slot] = index;
}

void NaptTimers::unlink_timer(uint32_t index) noexcept {
  const NaptSession& session = sessions_[index];
  if ((session.timer_prev & kIsHead) != 0) {
    slots_[session.timer_prev & ~kIsHead] = session.timer_next;
  } else {
    sessions_[session.timer_prev].timer_next = session.timer_next;
  }
  if (session.timer_next != 0) sessions_[session.timer_next].timer_prev = session.timer_prev;
}

void NaptTimers::link_age(uint32_t index) noexcept {
  NaptSession& anchor = sessions_[0];
  sessions_[index].age_next = 0;
  sessions_[index].age_prev = anchor.age_prev;
  sessions_[anchor.age_prev].age_next = index;
  anchor.age_prev = index;
}

void NaptTimers::unlink_age(uint32_t index) noexcept {
  const NaptSession& session = sessions_[index];
  sessions_[session.age_prev].age_next = session.age_next;
  sessions_[session.age_next].age_prev = session.age_prev;
}

void NaptTimers::start(uint32_t index, NaptState state, uint32_t now) noexcept {
  NaptSession& session = sessions_[index];
  put(session.state, state);
  put(session.last_seen, now);
  link_timer(index, now);
  if (is_transitory(state)) link_age(index);
  counts_[static_cast<uint32_t>(state)].add(1);
}

void NaptTimers::stop(uint32_t index) noexcept {
  NaptSession& session = sessions_[index];
  unlink_timer(index);
  if (is_transitory(session.state)) unlink_age(index);
  counts_[static_cast<uint32_t>(session.state)].add(~0ULL);
  put(session.state, NaptState::kFree);
}

void NaptTimers::change(uint32_t index, NaptState state, uint32_t now) noexcept {
  NaptSession& session = sessions_[index];
  const NaptState before = session.state;
  if (state == before) return;
  counts_[static_cast<uint32_t>(before)].add(~0ULL);
  counts_[static_cast<uint32_t>(state)].add(1);
  if (is_transitory(before)) unlink_age(index);
  if (is_transitory(state)) link_age(index);
  put(session.state, state);
  if (rules_[static_cast<uint32_t>(state)].limit >= rules_[static_cast<uint32_t>(before)].limit)
    return;  // the wheel reaches it in time
  unlink_timer(index);
  link_timer(index, now);
}

void NaptTimers::track(uint32_t index, uint32_t direction, uint8_t tcp_flags,
                       uint32_t now) noexcept {
  NaptSession& session = sessions_[index];
  const auto bit = static_cast<uint8_t>(kSeenOut << direction);
  if ((rules_[static_cast<uint32_t>(session.state)].refresh & bit) != 0)
    put(session.last_seen, now);
  if (session.state >= NaptState::kTcpOpening) {
    track_tcp(index, direction, tcp_flags, now);
    return;
  }
  put(session.seen, static_cast<uint8_t>(session.seen | bit));
  const bool is_both = (session.seen & 3) == 3;
  if (session.state == NaptState::kUdpNew && is_both) change(index, NaptState::kUdp, now);
}

// RFC 5382, 5: a connection is established when both ends have opened it; partially open or closing
// ones are transitory.
void NaptTimers::track_tcp(uint32_t index, uint32_t direction, uint8_t tcp_flags,
                           uint32_t now) noexcept {
  NaptSession& session = sessions_[index];
  const auto bit = static_cast<uint8_t>(kSeenOut << direction);
  const auto other = static_cast<uint8_t>(kSeenOut << (direction ^ 1));
  if ((tcp_flags & net::kTcpRst) != 0) {
    change(index, NaptState::kTcpClosing, now);
    return;
  }
  if ((tcp_flags & net::kTcpSyn) != 0) {
    // A SYN on a closing connection starts a new one between the same ends.
    const bool is_new = session.state == NaptState::kTcpClosing;
    const uint8_t before = is_new ? session.seen & kStaysForever : session.seen;
    put(session.seen, static_cast<uint8_t>(before | bit));
    if (is_new) change(index, NaptState::kTcpOpening, now);
    return;
  }
  put(session.seen, static_cast<uint8_t>(session.seen | bit));
  if (session.state == NaptState::kTcpOpening && (session.seen & other) != 0)
    change(index, NaptState::kTcpOpen, now);
  if ((tcp_flags & net::kTcpFin) != 0) {
    put(session.seen, static_cast<uint8_t>(session.seen | kSeenFinOut << direction));
    if ((session.seen & kSeenFin) == kSeenFin) change(index, NaptState::kTcpClosing, now);
  }
}

}  // namespace batchplane::nat
