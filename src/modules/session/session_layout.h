// SPDX-License-Identifier: BSD-3-Clause
// session_layout.h - from a session's rules, which refer to one another by number, to the flat ones
// that workers read.
#pragma once

#include <deque>
#include <functional>

#include "modules/session/session.h"

namespace batchplane::session {

// A number that is free, or a new one.
inline uint32_t take(std::deque<uint32_t>& free, uint32_t& n) {
  if (free.empty()) return n++;
  const uint32_t at = free.front();
  free.pop_front();
  return at;
}

// Where the parts go. Adding gives the place of what was added.
struct LayoutSink {
  std::function<uint32_t(const Filter&)> add_filter;
  std::function<uint32_t(const MeterRate&)> add_meter;
  std::function<uint32_t(const Peer6&)> add_peer6;
  std::function<uint32_t(const Quota&)> add_quota;
  std::function<void(uint32_t slot, const Rule&)> set_rule;
  std::function<void(uint32_t teid, uint32_t head)> set_teid;
  std::function<void(uint32_t head)> set_users;  // what leads to the user's downlink rules
};

// `session` was checked, each of its PDRs has a slot and each quota a place.
void lay_out(const Session& session, const LayoutSink& sink);

// Adds those that `wants` in front of `next`; the first one's place.
[[nodiscard]] uint32_t add_quotas(const Urr& urr, bool (*wants)(QuotaKind), uint32_t next,
                                  const std::function<uint32_t(const Quota&)>& add);

[[nodiscard]] MeterRate meter_rate(uint64_t bps, uint64_t burst_ns);

}  // namespace batchplane::session
