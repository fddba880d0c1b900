// SPDX-License-Identifier: BSD-3-Clause
// session_table_usage.cc - the part of the table that keeps usage right while rules change: quota
// grants, counts that move between usage rules, and final reports.
#include <algorithm>

#include "base/error.h"
#include "modules/session/session_table.h"

namespace batchplane::session {
namespace {

bool is_none(const Used& used) { return used == Used{}; }

// Clamps negative values to 0.
Used at_least_none(Used used) {
  for (uint64_t* part : {&used.up_bytes, &used.down_bytes, &used.up_pkts, &used.down_pkts}) {
    if (*part >> 63 != 0) *part = 0;
  }
  return used;
}

}  // namespace

std::set<uint32_t> rules_under(const Session& session, uint32_t urr) {
  std::set<uint32_t> rules;
  for (const Pdr& pdr : session.pdrs) {
    if (std::ranges::find(pdr.urrs, urr) == pdr.urrs.end()) continue;
    rules.insert(pdr.slot << 1 | (pdr.is_uplink ? 1U : 0U));
  }
  return rules;
}

// Places that the same change frees do not help: they become free only afterwards.
void SessionTable::check_quotas_of(const std::vector<Session>& sessions,
                                   const std::string& where) const {
  uint64_t n = body_->n_quota_places - body_->free_quota_places.size();
  for (const Session& session : sessions) {
    for (const Urr& urr : session.urrs) {
      n += static_cast<uint64_t>(std::ranges::count_if(
          urr.quotas, [](const Grant& grant) { return grant.given.has_value(); }));
    }
  }
  if (n < kMaxSlots) return;
  throw ConfigError("there would be more than " + std::to_string(kMaxSlots) + " quotas", where,
                    "no more fit into one table");
}

// A quota that is not granted anew goes on with what is left. A new volume reuses the old one's
// place: usage since the last report counts towards it, as the control plane does not know of it
// yet. A new time gets another place and begins afresh: workers that still see the old one must not
// start it.
void SessionTable::grant_quotas(Session& session, const Session* old, Edit& edit) {
  for (Urr& urr : session.urrs) {
    const Urr* const was = old == nullptr ? nullptr : old->urr(urr.id);
    for (size_t i = 0; i < kQuotaKinds; ++i) {
      Grant& grant = urr.quotas[i];
      const Grant before = was == nullptr ? Grant{} : was->quotas[i];
      const bool is_time = static_cast<QuotaKind>(i) == QuotaKind::kTime;
      const bool is_kept = before.given && grant.given == before.given && !grant.is_new;
      if (is_kept) grant = before;
      grant.is_new = false;
      if (is_kept) continue;
      if (before.given && (!grant.given || is_time))
        edit.freed_quota_places.push_back(before.place);
      if (!grant.given) continue;
      grant.limit = *grant.given;
      grant.number = before.number + 1;
      if (before.given && !is_time) {
        grant.place = before.place;
        grant.limit += body_->quota_states[before.place].reported.value();
        continue;
      }
      grant.place = take(body_->free_quota_places, body_->n_quota_places);
      body_->quota_states.reserve(body_->n_quota_places);
      body_->quota_states[grant.place].reset();
    }
  }
}

// Collects the rules that join `urr` with earlier counts, and those that leave it.
void SessionTable::note_moves(const Session& session, const Session& old, const Urr& urr,
                              Edit& edit) {
  const Urr* const was = old.urr(urr.id);
  const bool was_watched = was != nullptr && was->place != kNone;
  const std::set<uint32_t> before = rules_under(old, urr.id);
  const std::set<uint32_t> now = rules_under(session, urr.id);
  for (const uint32_t rule : now) {
    const bool is_counting = std::ranges::find(old.pdrs, rule >> 1, &Pdr::slot) != old.pdrs.end();
    const bool is_known = was != nullptr && before.contains(rule);
    // A rule that stays matters only if its usage rule is watched from now on.
    if (!is_counting || (is_known && (was_watched || urr.place == kNone))) continue;
    edit.joined.push_back({urr.place, session.seid, urr.id, rule, is_known});
  }
  if (was == nullptr) return;
  for (const uint32_t rule : before) {
    if (now.contains(rule)) continue;
    edit.left_over.push_back({was_watched ? urr.place : kNone, session.seid, urr.id, rule, false});
  }
  if (was_watched && urr.place == kNone) {
    edit.unwatching.push_back({was->place, session.seid, urr.id, 0, false});
  }
}

void SessionTable::note_ending(const Session& old, const Session* next, Edit& edit) {
  Ending ending{.seid = old.seid, .number = old.number, .is_whole = next == nullptr};
  for (const Pdr& pdr : old.pdrs) {
    const auto is_same = [&](const Pdr& other) { return other.slot == pdr.slot; };
    if (next == nullptr || std::ranges::none_of(next->pdrs, is_same)) ending.pdrs.push_back(pdr);
  }
  for (const Urr& urr : old.urrs) {
    if (next != nullptr && next->urr(urr.id) != nullptr) continue;
    ending.urrs.emplace_back(urr, rules_under(old, urr.id));
    for (const Grant& grant : urr.quotas) {
      if (grant.given) edit.freed_quota_places.push_back(grant.place);
    }
  }
  if (ending.pdrs.empty() && ending.urrs.empty()) return;
  edit.endings.push_back(std::move(ending));
}

Used SessionTable::counted(uint32_t rule) const {
  const PdrState& state = body_->states[rule >> 1];
  Used used;
  const bool is_uplink = (rule & 1) != 0;
  (is_uplink ? used.up_bytes : used.down_bytes) = state.bytes.value();
  (is_uplink ? used.up_pkts : used.down_pkts) = state.pkts.value();
  return used;
}

// Unreported usage of a watched usage rule, apart from what its rules have counted.
Used SessionTable::carried(uint32_t place) const {
  const UsageState& usage = body_->usages[place];
  Used used{usage.carried_up_bytes.value(), usage.carried_down_bytes.value(),
            usage.carried_up_pkts.value(), usage.carried_down_pkts.value()};
  used.take_off({usage.up_bytes.value(), usage.down_bytes.value(), usage.up_pkts.value(),
                 usage.down_pkts.value()});
  return used;
}

void SessionTable::carry(uint32_t place, const Used& used) const {
  UsageState& usage = body_->usages[place];
  usage.carried_up_bytes.add(used.up_bytes);
  usage.carried_down_bytes.add(used.down_bytes);
  usage.carried_up_pkts.add(used.up_pkts);
  usage.carried_down_pkts.add(used.down_pkts);
}

Urr& SessionTable::urr_of(const Move& move) const {
  return *std::ranges::find(body_->sessions.at(move.seid).urrs, move.urr, &Urr::id);
}

// Called before workers see the change. What a rule has counted so far does not belong to the usage
// rule it joins; or it does, but only counts for the final report.
void SessionTable::settle_joined(Edit& edit) {
  for (const Move& move : edit.joined) {
    const Used used = edit.read.try_emplace(move.rule, counted(move.rule)).first->second;
    Used negative;
    negative.take_off(used);
    if (move.place != kNone) carry(move.place, negative);
    if (move.is_known) {
      urr_of(move).untold.add(used);
    } else if (move.place == kNone) {
      urr_of(move).untold.take_off(used);
    }
  }
}

// A rule's count at the time it leaves a usage rule. If the same change moves it to another one,
// this is the count at which that one began: otherwise both would report packets counted in
// between.
Used SessionTable::counted_until(uint32_t rule, const Edit& edit) const {
  const auto at = edit.read.find(rule);
  return at != edit.read.end() ? at->second : counted(rule);
}

// Called once no worker has the old rules any more. A rule's count stays with the usage rule it
// leaves.
void SessionTable::settle_left(const Edit& edit) {
  for (const Move& move : edit.left_over) {
    const Used used = counted_until(move.rule, edit);
    if (move.place != kNone) {
      carry(move.place, used);
    } else {
      urr_of(move).untold.add(used);
    }
  }
  for (const Move& move : edit.unwatching) {
    Urr& urr = urr_of(move);
    urr.untold.add(carried(move.place));
    urr.n_reports = body_->usages[move.place].reports.value();
  }
}

std::vector<Ended> SessionTable::end_all(const Edit& edit) {
  size_t n_urrs = 0;
  for (const Ending& ending : edit.endings) n_urrs += ending.urrs.size();
  if (n_urrs != 0) body_->reports.expect(n_urrs);
  std::vector<Ended> all;
  for (const Ending& ending : edit.endings) {
    Ended ended{.seid = ending.seid, .is_whole = ending.is_whole, .pdrs = {}, .urrs = {}};
    for (const Pdr& pdr : ending.pdrs) {
      ended.pdrs.push_back({pdr.id, pdr.is_uplink, {}});
      ended.pdrs.back().usage.add(state(pdr.slot), dropped(pdr.slot));
    }
    for (const auto& [urr, rules] : ending.urrs) {
      Used used = urr.untold;
      for (const uint32_t rule : rules) used.add(counted_until(rule, edit));
      const bool is_watched = urr.place != kNone;
      if (is_watched) used.add(carried(urr.place));
      const uint64_t since_ns = is_watched ? body_->usages[urr.place].since_ns.value() : 0;
      const uint64_t begin_ns = since_ns != 0 && is_none(urr.untold) ? since_ns : urr.begin_ns;
      const Report report{
          .trigger = Report::Trigger::kTermination,
          .session = ending.number,
          .urr = urr.id,
          .sequence = is_watched ? body_->usages[urr.place].reports.value() : urr.n_reports,
          .begin_ns = begin_ns,
          .end_ns = std::max(begin_ns, looked_ns()),
          .used = at_least_none(used)};
      body_->reports.add(report, ending.seid, 0);
      ended.urrs.push_back({urr.id, body_->reports.n_ever, report.used});
    }
    all.push_back(std::move(ended));
  }
  return all;
}

}  // namespace batchplane::session
