// SPDX-License-Identifier: BSD-3-Clause
// session_table.cc - checks and books changes of sessions, and publishes them in one step.
#include "modules/session/session_table.h"

#include <algorithm>

#include "base/error.h"
#include "modules/session/session_layout.h"

namespace batchplane::session {
namespace {

constexpr size_t kFewRules = 512;  // so few stay in the L1 cache

std::string name_of(uint64_t seid) { return "session " + std::to_string(seid); }

uint64_t ue6_key(const Session& session) { return __builtin_bswap64(session.ue6.address.high); }

// Identifies a rule within its session, across changes.
uint32_t key_of(const Pdr& pdr) { return uint32_t{pdr.id} << 1 | (pdr.is_uplink ? 1U : 0U); }

// If the first rule takes all packets of the list, their mark; otherwise that rule's slot.
uint32_t begin_of(const RuleTables& tables, uint32_t head) {
  const Rule& rule = tables.rules[head];
  const bool takes_all = rule.next == kNone && rule.filter == kNone && rule.match_qfi == kAnyQfi;
  return takes_all ? mark_of(head, rule) : head;
}
// Without an IPv4 address of the user, the rule itself says which source is right.
TunnelEntry tunnel_entry(const RuleTables& tables, uint32_t head) {
  const uint32_t ue_raw = tables.rules[head].ue_raw;
  return {.mark = ue_raw == 0 ? head : begin_of(tables, head), .ue_raw = ue_raw};
}

// Tables with keys from all sessions: finds the same key used twice.
template <class Key>
class KeyCheck {
 public:
  KeyCheck(const char* what, const std::unordered_map<Key, uint64_t>& known)
      : what_(what), known_(known) {}

  void claim(Key key, const std::string& text, const Session& session,
             const std::set<uint64_t>& leaving, const std::string& where) {
    const uint64_t seid = session.seid;
    const auto it = known_.find(key);
    const bool is_taken = it != known_.end() && it->second != seid && !leaving.contains(it->second);
    const auto [own, is_new] = claimed_.emplace(key, seid);
    if (!is_taken && (is_new || own->second == seid)) return;
    const std::string place = place_of(session, where);
    throw ConfigError(std::string(what_) + " " + text + " belongs to " +
                          name_of(is_taken ? it->second : own->second) + " already",
                      place.empty() ? name_of(seid) : place + ", " + name_of(seid),
                      "give each session its own");
  }

 private:
  const char* what_;
  const std::unordered_map<Key, uint64_t>& known_;
  std::unordered_map<Key, uint64_t> claimed_;
};

}  // namespace

SessionTable::SessionTable(const Quiescence* quiescence, const SessionTable* previous)
    : body_(previous != nullptr ? previous->body_ : std::make_shared<Body>(quiescence)) {}

void SessionTable::claim(const std::string& module) {
  if (!claimed_by_.empty() && claimed_by_ != module) {
    throw ConfigError("module '" + claimed_by_ + "' fills this table of sessions already", "",
                      "let one module say sessions, file or synthetic");
  }
  claimed_by_ = module;
}

bool SessionTable::note_user(const std::string& module) {
  if (!first_user_.empty()) return false;
  first_user_ = module;
  return true;
}

void SessionTable::check_keys_of(const std::vector<Session>& sessions,
                                 const std::set<uint64_t>& leaving,
                                 const std::string& where) const {
  KeyCheck<uint32_t> teids("tunnel endpoint", body_->seid_of_teid);
  KeyCheck<uint32_t> ues("address", body_->seid_of_ue);
  KeyCheck<uint64_t> ues6("prefix", body_->seid_of_ue6);
  std::set<uint64_t> seids;
  for (const Session& session : sessions) {
    if (!seids.insert(session.seid).second) {
      throw ConfigError(name_of(session.seid) + " is given twice", place_of(session, where),
                        "keep one of them");
    }
    for (const Pdr& pdr : session.pdrs) {
      if (!pdr.is_uplink) continue;
      teids.claim(pdr.teid, std::to_string(pdr.teid), session, leaving, where);
    }
    if (session.ue != 0) {
      ues.claim(session.ue, net::format_ipv4(session.ue), session, leaving, where);
    }
    if (session.has_ue6) {
      ues6.claim(ue6_key(session), net::format_prefix6(session.ue6), session, leaving, where);
    }
  }
}

std::vector<Ended> SessionTable::add(std::vector<Session> sessions, const std::string& where) {
  return commit(std::move(sessions), {}, where);
}

std::vector<Ended> SessionTable::erase(const std::vector<uint64_t>& seids,
                                       const std::string& where) {
  std::set<uint64_t> seen;
  for (const uint64_t seid : seids) {
    if (!body_->sessions.contains(seid)) {
      throw ConfigError("there is no " + name_of(seid), where, "the command list shows them");
    }
    if (!seen.insert(seid).second) throw ConfigError(name_of(seid) + " is given twice", where);
  }
  std::vector<uint64_t> bulk;
  for (const uint64_t seid : seids) {
    if (body_->sessions.at(seid).origin != Origin::kLive) bulk.push_back(seid);
  }
  std::vector<Ended> ended = commit({}, seids, where);
  body_->deleted.insert(bulk.begin(), bulk.end());
  return ended;
}

void SessionTable::declare(std::vector<Session> sessions, const std::set<uint64_t>& deleted,
                           const std::string& where) {
  std::set<uint64_t> given;
  for (const Session& session : sessions) given.insert(session.seid);
  std::vector<uint64_t> gone;
  for (const auto& [seid, session] : body_->sessions) {
    if (session.origin != Origin::kLive && !given.contains(seid)) gone.push_back(seid);
  }
  std::erase_if(sessions, [&](const Session& session) {
    const auto known = body_->sessions.find(session.seid);
    const bool is_live = known != body_->sessions.end() && known->second.origin == Origin::kLive;
    return is_live || deleted.contains(session.seid) || body_->deleted.contains(session.seid);
  });
  (void)commit(std::move(sessions), gone, where);
  body_->deleted.insert(deleted.begin(), deleted.end());
}

std::vector<Ended> SessionTable::replace(std::vector<Session> sessions, const std::string& where) {
  std::set<uint64_t> given;
  for (const Session& session : sessions) given.insert(session.seid);
  std::vector<uint64_t> gone;
  for (const auto& [seid, session] : body_->sessions) {
    if (!given.contains(seid)) gone.push_back(seid);
  }
  std::vector<uint64_t> bulk;
  for (const uint64_t seid : gone) {
    if (body_->sessions.at(seid).origin != Origin::kLive) bulk.push_back(seid);
  }
  std::vector<Ended> ended = commit(std::move(sessions), gone, where);
  body_->deleted.insert(bulk.begin(), bulk.end());
  return ended;
}

void SessionTable::release(const Session& session, Edit& edit) {
  const RuleTables& tables = body_->live.current();
  std::set<uint32_t> meters;
  for (const Pdr& pdr : session.pdrs) {
    const Rule& rule = tables.rules[pdr.slot];
    for (uint32_t at = rule.filter; at != kNone; at = tables.filters[at].next) {
      edit.freed_filters.push_back(at);
    }
    for (const uint32_t meter : rule.shared) {
      if (meter != kNone) meters.insert(meter);
    }
    for (uint32_t at = rule.quotas; at != kNone; at = tables.quotas[at].next) {
      edit.freed_quotas.push_back(at);
    }
    if (rule.is(Rule::kPeer6)) edit.freed_peers6.push_back(rule.peer_raw);
    edit.rules.emplace_back(pdr.slot, Rule{});
    if (!pdr.is_uplink) continue;
    edit.teids.emplace_back(pdr.teid, kNone);
    body_->seid_of_teid.erase(pdr.teid);
  }
  edit.freed_meters.insert(edit.freed_meters.end(), meters.begin(), meters.end());
  if (session.ue != 0) {
    edit.ues.emplace_back(net::be32(session.ue), kNone);
    body_->seid_of_ue.erase(session.ue);
  }
  if (session.has_ue6) {
    edit.ues6.emplace_back(ue6_key(session), kNone);
    body_->seid_of_ue6.erase(ue6_key(session));
  }
  release_watches(session, edit);
  body_->n_rules -= session.pdrs.size();
}

uint32_t SessionTable::take_slot(bool is_uplink) {
  std::deque<uint32_t>& free = body_->free_slots[is_uplink ? 1 : 0];
  const auto found =
      std::ranges::find_if(free, [&](uint32_t one) { return shaper_.is_free(one, is_uplink); });
  uint32_t slot = 0;
  if (found == free.end()) {
    slot = slot_at(body_->n_slots[is_uplink ? 1 : 0]++, is_uplink);
  } else {
    slot = *found;
    free.erase(found);
  }
  if (slot >= body_->generations.size()) body_->generations.resize(slot + 1);
  return slot;
}

// A rule that stays keeps its slot, and with it its counts.
void SessionTable::take_slots(Session& session, const Session* old, Edit& edit) {
  std::map<uint32_t, uint32_t> known;
  if (old != nullptr) {
    for (const Pdr& pdr : old->pdrs) known[key_of(pdr)] = pdr.slot;
  }
  for (Pdr& pdr : session.pdrs) {
    const auto it = known.find(key_of(pdr));
    if (it != known.end()) {
      pdr.slot = it->second;
      known.erase(it);
      continue;
    }
    pdr.slot = take_slot(pdr.is_uplink);
    edit.taken_slots.push_back(pdr.slot);
    body_->states.reserve(pdr.slot + 1);
    body_->dropped.reserve(pdr.slot + 1);
    PdrState& state = body_->states[pdr.slot];
    for (Tally* tally : {&state.pkts, &state.bytes, &state.due, &state.rate}) tally->set(0);
    body_->dropped[pdr.slot].set(0);
    uint8_t& generation = body_->generations[pdr.slot];
    generation = static_cast<uint8_t>(generation % 255 + 1);
  }
  for (const auto& [key, slot] : known) edit.freed_slots.push_back(slot);
}

const Session* SessionTable::known(uint64_t seid) const {
  const auto found = body_->sessions.find(seid);
  return found == body_->sessions.end() ? nullptr : &found->second;
}

LayoutSink SessionTable::sink_for(const Session& session, Edit& edit) {
  return {.add_filter =
              [this, &edit](const Filter& filter) {
                const uint32_t at = take(body_->free_filters, body_->n_filters);
                edit.filters.emplace_back(at, filter);
                return at;
              },
          .add_meter =
              [this, &edit](const MeterRate& rate) {
                const uint32_t at = take(body_->free_meters, body_->n_meters);
                edit.meters.emplace_back(at, rate);
                return at;
              },
          .add_peer6 =
              [this, &edit](const Peer6& peer) {
                const uint32_t at = take(body_->free_peers6, body_->n_peers6);
                edit.peers6.emplace_back(at, peer);
                return at;
              },
          .add_quota =
              [this, &edit](const Quota& quota) {
                const uint32_t at = take(body_->free_quotas, body_->n_quotas);
                edit.quotas.emplace_back(at, quota);
                return at;
              },
          .set_rule =
              [this, &edit](uint32_t slot, const Rule& rule) {
                edit.rules.emplace_back(slot, rule);
                edit.rules.back().second.generation = body_->generations[slot];
              },
          .set_teid =
              [this, &edit, seid = session.seid](uint32_t teid, uint32_t head) {
                edit.teids.emplace_back(teid, head);
                body_->seid_of_teid[teid] = seid;
              },
          .set_users =
              [this, &edit, &session](uint32_t head) {
                if (session.ue != 0) {
                  edit.ues.emplace_back(net::be32(session.ue), head);
                  body_->seid_of_ue[session.ue] = session.seid;
                }
                if (session.has_ue6) {
                  edit.ues6.emplace_back(ue6_key(session), head);
                  body_->seid_of_ue6[ue6_key(session)] = session.seid;
                }
              }};
}

void SessionTable::apply(const Edit& edit, RuleTables& tables) const {
  tables.rules.reserve(static_cast<uint32_t>(body_->generations.size()));
  tables.heads.reserve(static_cast<uint32_t>(body_->generations.size()));
  tables.is_large = body_->generations.size() > kFewRules;
  tables.filters.resize(body_->n_filters);
  tables.meters.resize(body_->n_meters);
  tables.peers6.resize(body_->n_peers6);
  tables.watches.resize(body_->n_watches);
  tables.watched.resize(body_->n_watched);
  tables.quotas.resize(body_->n_quotas);
  tables.hold_pkts.resize(body_->seids.size());
  tables.version = edit.version;
  for (const auto& [at, watch] : edit.watches) tables.watches[at] = watch;
  for (const auto& [at, rule] : edit.watched) tables.watched[at] = rule;
  for (const auto& [at, quota] : edit.quotas) tables.quotas[at] = quota;
  for (const auto& [number, pkts] : edit.hold_pkts) tables.hold_pkts[number] = pkts;
  for (const auto& [at, filter] : edit.filters) tables.filters[at] = filter;
  for (const auto& [at, rate] : edit.meters) tables.meters[at] = rate;
  for (const auto& [at, peer] : edit.peers6) tables.peers6[at] = peer;
  for (const auto& [slot, rule] : edit.rules) {
    tables.rules[slot] = rule;
    tables.heads[slot] = head_of(rule);
  }
  for (const auto& [teid, head] : edit.teids) {
    if (head == kNone) {
      tables.by_teid.erase(teid);
    } else {
      tables.by_teid.insert_or_assign(teid, tunnel_entry(tables, head));
    }
  }
  for (const auto& [ue, head] : edit.ues) {
    if (head == kNone) {
      tables.by_ue.erase(ue);
    } else {
      tables.by_ue.insert_or_assign(ue, {begin_of(tables, head)});
    }
  }
  for (const auto& [ue6, head] : edit.ues6) {
    if (head == kNone) {
      tables.by_ue6.erase({ue6});
    } else {
      tables.by_ue6.insert_or_assign({ue6}, head);
    }
  }
}

Usage SessionTable::usage(const Session& session, bool is_uplink) const {
  Usage usage;
  for (const Pdr& pdr : session.pdrs) {
    if (pdr.is_uplink == is_uplink) usage.add(state(pdr.slot), dropped(pdr.slot));
  }
  return usage;
}

Usage SessionTable::usage(const Session& session, bool is_uplink, uint32_t urr) const {
  Usage usage;
  for (const Pdr& pdr : session.pdrs) {
    if (pdr.is_uplink == is_uplink && std::ranges::find(pdr.urrs, urr) != pdr.urrs.end())
      usage.add(state(pdr.slot), dropped(pdr.slot));
  }
  return usage;
}

size_t SessionTable::size_bytes() const {
  return 2 * body_->live.current().size_bytes() + body_->states.size_bytes() +
         body_->dropped.size_bytes() + body_->meters.size_bytes() + body_->usages.size_bytes() +
         body_->quota_states.size_bytes();
}

// Called once no worker reads the old rules any more.
void SessionTable::free_all(const Edit& edit) {
  const auto free = [](std::deque<uint32_t>& list, const std::vector<uint32_t>& freed) {
    list.insert(list.end(), freed.begin(), freed.end());
  };
  for (const uint32_t slot : edit.freed_slots) {
    body_->free_slots[is_uplink_slot(slot) ? 1 : 0].push_back(slot);
  }
  free(body_->free_filters, edit.freed_filters);
  free(body_->free_meters, edit.freed_meters);
  free(body_->free_peers6, edit.freed_peers6);
  body_->free_watches.insert(body_->free_watches.end(), edit.unwatched.begin(),
                             edit.unwatched.end());
  free(body_->free_quotas, edit.freed_quotas);
  free(body_->free_quota_places, edit.freed_quota_places);
  free(body_->free_watched, edit.freed_watched);
  for (const uint32_t number : edit.freed_numbers) {
    body_->seids[number] = 0;
    body_->free_numbers.push_back(number);
  }
}

std::vector<Ended> SessionTable::commit(std::vector<Session> sessions,
                                        const std::vector<uint64_t>& erased,
                                        const std::string& where) {
  std::set<uint64_t> leaving(erased.begin(), erased.end());
  for (const Session& session : sessions) leaving.insert(session.seid);
  check_keys_of(sessions, leaving, where);
  uint64_t n_new = 0;
  for (const Session& session : sessions) n_new += session.pdrs.size();
  if (body_->n_rules + n_new >= kMaxSlots / 2) {
    throw ConfigError("there would be more than " + std::to_string(kMaxSlots / 2) + " rules", where,
                      "no more fit into one table");
  }
  check_quotas_of(sessions, where);
  Edit edit;
  take_leaves(sessions, leaving, edit, where);
  // All old keys are removed before any new one is added: sessions may swap addresses.
  for (const uint64_t seid : leaving) {
    if (const Session* const old = known(seid); old != nullptr) release(*old, edit);
  }
  for (const uint64_t seid : erased) {
    note_ending(body_->sessions.at(seid), nullptr, edit);
    for (const Pdr& pdr : body_->sessions.at(seid).pdrs) edit.freed_slots.push_back(pdr.slot);
    edit.freed_numbers.push_back(body_->sessions.at(seid).number);
    body_->sessions.erase(seid);
  }
  for (Session& session : sessions) {
    const Session* const old = known(session.seid);
    take_number(session, old, edit);
    if (old != nullptr) note_ending(*old, &session, edit);
    grant_quotas(session, old, edit);
    lay_out(session, sink_for(session, edit));
    set_watches(session, old, edit);
    body_->n_rules += session.pdrs.size();
    body_->deleted.erase(session.seid);
    const uint64_t seid = session.seid;
    body_->sessions.insert_or_assign(seid, std::move(session));
  }
  body_->states.reserve(static_cast<uint32_t>(body_->generations.size()));
  body_->meters.reserve(body_->n_meters);
  for (const auto& [at, rate] : edit.meters) body_->meters[at].set(0);
  edit.version = body_->live.current().version + 1;
  // The counts of a rule that joins a usage rule are subtracted before workers see the change; the
  // counts of a rule that leaves are added afterwards.
  settle_joined(edit);
  for (const auto& [slot, rule] : edit.rules) {
    if (rule.generation != 0) body_->states[slot].rate.set(rule.own.bits);
  }
  body_->live.edit([&](RuleTables& tables) { apply(edit, tables); });
  // By now every packet under a removed rule has been counted, or never will be.
  settle_left(edit);
  // Reports name sessions by numbers, which are freed below.
  collect();
  std::vector<Ended> ended = end_all(edit);
  free_all(edit);
  return ended;
}

}  // namespace batchplane::session
