// SPDX-License-Identifier: BSD-3-Clause
// session_watch.cc - adds up what rules have counted, compares it with thresholds, and checks
// whether quotas are used up.
#include "modules/session/session_watch.h"

#include <algorithm>

namespace batchplane::session {
namespace {

constexpr uint64_t kLookNs = 200;  // one check, with counts that are in no cache
constexpr uint64_t kMaxLooks = 128;

// Counts come and go with rules while workers count: the difference may be negative for a moment.
uint64_t rest_of(uint64_t counted, const Tally& carried, const Tally& reported) noexcept {
  const uint64_t rest = counted + carried.value() - reported.value();
  return rest >> 63 != 0 ? 0 : rest;
}
bool reaches(uint64_t used, uint64_t threshold) { return threshold != 0 && used >= threshold; }

// Bitmap of the kinds of quotas that are used up and were not reported yet.
uint8_t newly_used_up(const SessionTable& table, const RuleTables& tables, const Watch& watch,
                      uint64_t now_ns) noexcept {
  uint8_t kinds = 0;
  for (uint32_t at = watch.quotas; at != kNone; at = tables.quotas[at].next) {
    const Quota& quota = tables.quotas[at];
    const QuotaState& state = table.quota_states()[quota.place];
    if (state.told.value() == quota.grant || !is_used_up(quota, state, now_ns)) continue;
    kinds |= static_cast<uint8_t>(1U << static_cast<uint32_t>(quota.kind));
  }
  return kinds;
}
// Usage that a report covered does not count towards quotas granted later.
void note_reported(const SessionTable& table, const RuleTables& tables, const Watch& watch,
                   uint8_t used_up) noexcept {
  for (uint32_t at = watch.quotas; at != kNone; at = tables.quotas[at].next) {
    const Quota& quota = tables.quotas[at];
    QuotaState& state = table.quota_states()[quota.place];
    state.reported.set(state.taken.load(std::memory_order_relaxed));
    if ((used_up >> static_cast<uint32_t>(quota.kind) & 1) != 0) state.told.set(quota.grant);
  }
}

}  // namespace

Used used_since_report(const SessionTable& table, const RuleTables& tables,
                       uint32_t place) noexcept {
  Used sum;
  for (uint32_t at = tables.watches[place].first; at != kNone; at = tables.watched[at].next) {
    const WatchedRule& rule = tables.watched[at];
    const PdrState& state = table.state(rule.slot);
    (rule.is_uplink ? sum.up_bytes : sum.down_bytes) += state.bytes.value();
    (rule.is_uplink ? sum.up_pkts : sum.down_pkts) += state.pkts.value();
  }
  const UsageState& usage = table.usage_state(place);
  return {.up_bytes = rest_of(sum.up_bytes, usage.carried_up_bytes, usage.up_bytes),
          .down_bytes = rest_of(sum.down_bytes, usage.carried_down_bytes, usage.down_bytes),
          .up_pkts = rest_of(sum.up_pkts, usage.carried_up_pkts, usage.up_pkts),
          .down_pkts = rest_of(sum.down_pkts, usage.carried_down_pkts, usage.down_pkts)};
}

void UsageWatcher::look(const SessionTable& table, uint64_t now_ns, uint64_t budget_ns) noexcept {
  table.note_look(now_ns);
  const RuleTables& tables = table.rules();
  const auto n = static_cast<uint32_t>(tables.watches.size());
  const auto looks = std::min<uint64_t>(n, std::clamp<uint64_t>(budget_ns / kLookNs, 8, kMaxLooks));
  for (uint64_t i = 0; i < looks; ++i) {
    next_ = next_ + 1 >= n ? 0 : next_ + 1;
    if (tables.watches[next_].session != kNone) look_at(table, tables, next_, now_ns);
  }
}

void UsageWatcher::look_at(const SessionTable& table, const RuleTables& tables, uint32_t place,
                           uint64_t now_ns) noexcept {
  const Watch& watch = tables.watches[place];
  UsageState& usage = table.usage_state(place);
  if (usage.since_ns.value() == 0) usage.since_ns.set(now_ns);
  const uint8_t used_up = newly_used_up(table, tables, watch, now_ns);
  const Used used = used_since_report(table, tables, place);
  const bool is_volume = reaches(used.up_bytes + used.down_bytes, watch.volume_bytes) ||
                         reaches(used.up_bytes, watch.up_bytes) ||
                         reaches(used.down_bytes, watch.down_bytes);
  const uint64_t since_ns = usage.since_ns.value();
  const bool is_time = reaches(now_ns - std::min(now_ns, since_ns), watch.time_ns);
  if (used_up == 0 && !is_volume && !is_time) return;
  const bool is_taken = ring_->put({.kind = Report::Kind::kUsage,
                                    .trigger = used_up != 0 ? Report::Trigger::kQuota
                                               : is_volume  ? Report::Trigger::kVolume
                                                            : Report::Trigger::kTime,
                                    .used_up = used_up,
                                    .session = watch.session,
                                    .urr = watch.urr,
                                    .sequence = usage.reports.value(),
                                    .begin_ns = since_ns,
                                    .end_ns = now_ns,
                                    .used = used});
  if (!is_taken) return;
  usage.up_bytes.add(used.up_bytes);
  usage.down_bytes.add(used.down_bytes);
  usage.up_pkts.add(used.up_pkts);
  usage.down_pkts.add(used.down_pkts);
  usage.since_ns.set(now_ns);
  usage.reports.add(1);
  note_reported(table, tables, watch, used_up);
}

}  // namespace batchplane::session
