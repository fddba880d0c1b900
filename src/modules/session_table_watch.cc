// SPDX-License-Identifier: BSD-3-Clause
// session_table_watch.cc - the part of the table that is about reports: numbers of sessions, rules
// with thresholds, and what workers have sent.
#include <algorithm>

#include "modules/session_table.h"

namespace batchplane::session {

// A session that is replaced goes on under its number, and what is held for it stays its own.
void SessionTable::take_number(Session& session, const Session* old, Edit& edit) {
  if (old != nullptr) {
    session.number = old->number;
  } else {
    auto n = static_cast<uint32_t>(body_->seids.size());
    session.number = take(body_->free_numbers, n);
    body_->seids.resize(n);
  }
  body_->seids[session.number] = session.seid;
  edit.hold_pkts.emplace_back(session.number, session.hold_pkts);
}

void SessionTable::release_watches(const Session& session, Edit& edit) {
  const RuleTables& tables = body_->live.current();
  for (const Urr& urr : session.urrs) {
    if (urr.place == kNone) continue;
    std::set<uint32_t>& rules = edit.unwatched[urr.place];
    for (uint32_t at = tables.watches[urr.place].first; at != kNone; at = tables.watched[at].next) {
      rules.insert(tables.watched[at].slot << 1 | (tables.watched[at].is_uplink ? 1U : 0U));
      edit.freed_watched.push_back(at);
    }
    edit.watches.emplace_back(urr.place, Watch{});
  }
}

// A usage rule that goes on keeps its place, and with it what was used since its last report.
uint32_t SessionTable::place_for(const Urr& urr, const Session* old) {
  if (old != nullptr) {
    const auto was = std::ranges::find(old->urrs, urr.id, &Urr::id);
    if (was != old->urrs.end() && was->place != kNone) return was->place;
  }
  const uint32_t place = take(body_->free_watches, body_->n_watches);
  body_->usages.reserve(body_->n_watches);
  UsageState& usage = body_->usages[place];
  for (Tally* tally :
       {&usage.up_bytes, &usage.down_bytes, &usage.up_pkts, &usage.down_pkts, &usage.since_ns,
        &usage.reports, &usage.carried_up_bytes, &usage.carried_down_bytes, &usage.carried_up_pkts,
        &usage.carried_down_pkts}) {
    tally->set(0);
  }
  return place;
}

void SessionTable::set_watches(Session& session, const Session* old, Edit& edit) {
  for (Urr& urr : session.urrs) {
    urr.place = kNone;
    if (!urr.is_watched()) continue;
    urr.place = place_for(urr, old);
    auto known = edit.unwatched.extract(urr.place);
    std::set<uint32_t> before = known.empty() ? std::set<uint32_t>{} : std::move(known.mapped());
    Watch watch{.volume_bytes = urr.volume_bytes,
                .up_bytes = urr.up_bytes,
                .down_bytes = urr.down_bytes,
                .time_ns = urr.time_ns,
                .session = session.number,
                .urr = urr.id};
    for (const Pdr& pdr : session.pdrs) {
      if (std::ranges::find(pdr.urrs, urr.id) == pdr.urrs.end()) continue;
      const uint32_t at = take(body_->free_watched, body_->n_watched);
      edit.watched.emplace_back(at, WatchedRule{pdr.slot, watch.first, pdr.is_uplink});
      watch.first = at;
      const uint32_t rule = pdr.slot << 1 | (pdr.is_uplink ? 1U : 0U);
      const bool is_counting =
          old != nullptr && std::ranges::find(old->pdrs, pdr.slot, &Pdr::slot) != old->pdrs.end();
      if (before.erase(rule) == 0 && is_counting) edit.joined.emplace_back(urr.place, rule);
    }
    for (const uint32_t rule : before) edit.left_over.emplace_back(urr.place, rule);
    edit.watches.emplace_back(urr.place, watch);
  }
}

// Adds what the rule has counted to what its usage rule carries on, or takes it off.
void SessionTable::carry(uint32_t place, uint32_t rule, int sign) const {
  const PdrState& state = body_->states[rule >> 1];
  UsageState& usage = body_->usages[place];
  const bool is_uplink = (rule & 1) != 0;
  const auto factor = static_cast<uint64_t>(sign);
  (is_uplink ? usage.carried_up_bytes : usage.carried_down_bytes).add(factor * state.bytes.value());
  (is_uplink ? usage.carried_up_pkts : usage.carried_down_pkts).add(factor * state.pkts.value());
}

std::shared_ptr<ReportRing> SessionTable::make_ring() {
  body_->reports.rings.push_back(std::make_shared<ReportRing>());
  return body_->reports.rings.back();
}

const ReportBook& SessionTable::collected_reports() {
  collect();
  return body_->reports;
}

void SessionTable::collect() {
  ReportBook& book = body_->reports;
  for (const auto& ring : book.rings) {
    for (Report report; ring->take(report);) {
      const uint64_t seid = report.session < body_->seids.size() ? body_->seids[report.session] : 0;
      const auto session = body_->sessions.find(seid);
      uint32_t pdr = 0;
      if (session != body_->sessions.end()) {
        const auto at = std::ranges::find(session->second.pdrs, report.slot, &Pdr::slot);
        if (at != session->second.pdrs.end()) pdr = at->id;
      }
      book.add(report, seid, pdr);
    }
  }
  // Rings of modules that went with their pipeline.
  std::erase_if(book.rings, [](const auto& ring) { return ring.use_count() == 1; });
}

}  // namespace batchplane::session
