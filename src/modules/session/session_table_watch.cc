// SPDX-License-Identifier: BSD-3-Clause
// session_table_watch.cc - the part of the table for reports: session numbers, watched usage rules,
// and the reports that workers have sent.
#include <algorithm>

#include "modules/session/session_table.h"

namespace batchplane::session {

// A session that is replaced keeps its number, and with it the packets held for it.
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
    const Watch& watch = tables.watches[urr.place];
    for (uint32_t at = watch.first; at != kNone; at = tables.watched[at].next) {
      edit.freed_watched.push_back(at);
    }
    for (uint32_t at = watch.quotas; at != kNone; at = tables.quotas[at].next) {
      edit.freed_quotas.push_back(at);
    }
    edit.unwatched.insert(urr.place);
    edit.watches.emplace_back(urr.place, Watch{});
  }
}

// A usage rule that stays keeps its place, and with it the usage since its last report.
uint32_t SessionTable::place_for(const Urr& urr, const Session* old) {
  const Urr* const was = old == nullptr ? nullptr : old->urr(urr.id);
  if (was != nullptr && was->place != kNone) return was->place;
  const uint32_t place = take(body_->free_watches, body_->n_watches);
  body_->usages.reserve(body_->n_watches);
  UsageState& usage = body_->usages[place];
  for (Tally* tally :
       {&usage.up_bytes, &usage.down_bytes, &usage.up_pkts, &usage.down_pkts, &usage.since_ns,
        &usage.reports, &usage.carried_up_bytes, &usage.carried_down_bytes, &usage.carried_up_pkts,
        &usage.carried_down_pkts}) {
    tally->set(0);
  }
  usage.reports.set(urr.n_reports);
  return place;
}

void SessionTable::set_watches(Session& session, const Session* old, Edit& edit) {
  for (Urr& urr : session.urrs) {
    const Urr* const was = old == nullptr ? nullptr : old->urr(urr.id);
    urr.begin_ns = was == nullptr ? looked_ns() : was->begin_ns;
    urr.untold = was == nullptr ? Used{} : was->untold;
    urr.n_reports = was == nullptr ? 0 : was->n_reports;
    urr.place = urr.is_watched() ? place_for(urr, old) : kNone;
    if (old != nullptr) note_moves(session, *old, urr, edit);
    if (urr.place == kNone) continue;
    edit.unwatched.erase(urr.place);
    Watch watch{.volume_bytes = urr.volume_bytes,
                .up_bytes = urr.up_bytes,
                .down_bytes = urr.down_bytes,
                .time_ns = urr.time_ns,
                .session = session.number,
                .urr = urr.id};
    for (const uint32_t rule : rules_under(session, urr.id)) {
      const uint32_t at = take(body_->free_watched, body_->n_watched);
      edit.watched.emplace_back(at, WatchedRule{rule >> 1, watch.first, (rule & 1) != 0});
      watch.first = at;
    }
    watch.quotas = add_quotas(
        urr, [](QuotaKind) { return true; }, kNone, sink_for(session, edit).add_quota);
    edit.watches.emplace_back(urr.place, watch);
  }
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
  // Drops the rings of modules whose pipeline is gone.
  std::erase_if(book.rings, [](const auto& ring) { return ring.use_count() == 1; });
}

}  // namespace batchplane::session
