// SPDX-License-Identifier: BSD-3-Clause
// session_layout.h - turns a session's rules, which refer to one another by ID, into the flat rules
// that workers read.
#pragma once

#include <deque>
#include <functional>

#include "modules/session/session.h"

namespace batchplane::session {

// The index that has been free longest, or else a new one.
inline uint32_t take(std::deque<uint32_t>& free, uint32_t& n) {
  if (free.empty()) return n++;
  const uint32_t at = free.front();
  free.pop_front();
  return at;
}

// Receives the parts. Each add_ function returns the index of the part added.
struct LayoutSink {
  std::function<uint32_t(const Filter&)> add_filter;
  std::function<uint32_t(const MeterRate&)> add_meter;
  std::function<uint32_t(const Peer6&)> add_peer6;
  std::function<uint32_t(const Quota&)> add_quota;
  std::function<void(uint32_t slot, const Rule&)> set_rule;
  std::function<void(uint32_t teid, uint32_t head)> set_teid;
  std::function<void(uint32_t head)> set_users;  // the entries for the user's addresses (downlink)
};

// `session` has been checked; each of its PDRs has a slot and each quota a place.
void lay_out(const Session& session, const LayoutSink& sink);

// Adds the rule's quotas of the kinds that `wants` accepts, linked in front of `next`; returns the
// index of the first.
[[nodiscard]] uint32_t add_quotas(const Urr& urr, bool (*wants)(QuotaKind), uint32_t next,
                                  const std::function<uint32_t(const Quota&)>& add);

[[nodiscard]] MeterRate meter_rate(uint64_t bps, uint64_t burst_ns);

}  // namespace batchplane::session
