// SPDX-License-Identifier: BSD-3-Clause
// session_table.h - the mobile sessions that modules of one pipeline share by name.
//
// A table's contents go on in the pipeline that an apply brings: counts, meters and live edits
// included. The control thread keeps the sessions; workers read the rules made of them behind a
// LiveTable and write the states, which never move.
#pragma once

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/live_table.h"
#include "modules/session.h"
#include "modules/session_layout.h"
#include "modules/session_reports.h"

namespace batchplane::session {

struct Usage {
  uint64_t pkts = 0;
  uint64_t bytes = 0;
  uint64_t dropped_pkts = 0;

  void add(const PdrState& state, const Tally& dropped) {
    pkts += state.pkts.value();
    bytes += state.bytes.value();
    dropped_pkts += dropped.value();
  }
};

// rules, state, meter: workers. Everything else: control thread, one caller at a time.
class SessionTable {
 public:
  using Sessions = std::map<uint64_t, Session>;  // by SEID

  // `previous`: the table of that name in the pipeline that an apply replaces, if any.
  SessionTable(const Quiescence* quiescence, const SessionTable* previous);

  // Load once per call of process/classify.
  [[nodiscard]] const RuleTables& rules() const noexcept { return body_->live.read(); }
  [[nodiscard]] PdrState& state(uint32_t slot) const noexcept { return body_->states[slot]; }
  // Packets that the rule did not let pass.
  [[nodiscard]] Tally& dropped(uint32_t slot) const noexcept { return body_->dropped[slot]; }
  [[nodiscard]] Tally& meter(uint32_t index) const noexcept { return body_->meters[index]; }
  [[nodiscard]] UsageState& usage_state(uint32_t place) const noexcept {
    return body_->usages[place];
  }

  // Each is one step: visible to workers when it returns, or nothing changed and ConfigError.
  // A session of a SEID that is there is replaced; rules of the same id keep their counts.
  void add(std::vector<Session> sessions, const std::string& where);
  void erase(const std::vector<uint64_t>& seids, const std::string& where);
  // Sessions with live edits, and those that were deleted live, stay as they are.
  void declare(std::vector<Session> sessions, const std::set<uint64_t>& deleted,
               const std::string& where);
  void replace(std::vector<Session> sessions, const std::string& where);

  [[nodiscard]] const Sessions& sessions() const { return body_->sessions; }
  // SEIDs of a file or generator that were deleted live.
  [[nodiscard]] const std::set<uint64_t>& deleted() const { return body_->deleted; }
  [[nodiscard]] Usage usage(const Session& session, bool is_uplink) const;
  [[nodiscard]] Usage usage(const Session& session, bool is_uplink, uint32_t urr) const;
  [[nodiscard]] const RuleTables& current_rules() const { return body_->live.current(); }
  [[nodiscard]] uint64_t n_rules() const { return body_->n_rules; }
  [[nodiscard]] size_t size_bytes() const;

  // One module of a pipeline fills the table; throws when a second one wants to.
  void claim(const std::string& module);
  // Each module that looks sessions up. Without one that fills the table the first one writes down
  // what was added live.
  void note_user(const std::string& module);
  [[nodiscard]] bool is_written_by(const std::string& module) const {
    return module == (claimed_by_.empty() ? first_user_ : claimed_by_);
  }
  // Of a pipeline's modules the first one that asks compares usage with thresholds.
  [[nodiscard]] bool claim_watching() { return !std::exchange(is_watched_, true); }
  // Whether a module of the pipeline holds what FARs buffer. Set before workers run.
  void note_holding() { is_held_before_ = true; }
  [[nodiscard]] bool is_held_before() const noexcept { return is_held_before_; }
  // Modules that come behind a look-up and read what it does not. Set before workers run.
  void note_asking_heads() { are_heads_asked_ = true; }
  void note_enforcing() { is_enforced_ = true; }
  void note_tunnelling() { is_tunnelled_ = true; }
  // Once a packet's rule is known: asks for what the modules behind will read of it. They see a few
  // packets at a time, with little to do while a line comes; a look-up has a batch of them, and
  // asks in between, so that not all of it is asked for at once.
  [[nodiscard]] bool asks_behind(const RuleTables& tables, bool is_uplink) const noexcept {
    return tables.is_large && (are_heads_asked_ || is_enforced_ || (is_tunnelled_ && !is_uplink));
  }
  void prefetch_behind(const RuleTables& tables, uint32_t mark, bool is_uplink) const noexcept {
    const uint32_t slot = slot_of(mark);
    if (are_heads_asked_) prefetch_for_read(&tables.heads[slot]);
    if (is_enforced_) prefetch_for_read(&body_->states[slot]);
    if (is_tunnelled_ && !is_uplink) prefetch_for_read(&tables.rules[slot]);
  }
  [[nodiscard]] bool has_same_sessions(const SessionTable& other) const noexcept {
    return body_ == other.body_;
  }

  // For a worker's reports; they are kept until the control thread reads them.
  [[nodiscard]] std::shared_ptr<ReportRing> make_ring();
  // The latest reports, after what workers have sent was taken in.
  [[nodiscard]] const ReportBook& collected_reports();

  // What the table was filled from: null until it was.
  [[nodiscard]] const Value& declaration() const { return body_->declaration; }
  void set_declaration(Value declaration) { body_->declaration = std::move(declaration); }

 private:
  struct Body {
    explicit Body(const Quiescence* quiescence)
        : live(std::make_unique<RuleTables>(), std::make_unique<RuleTables>(), quiescence) {}

    LiveTable<RuleTables> live;
    mutable PagedArray<PdrState> states;
    mutable PagedArray<Tally> dropped;  // apart from the states: hardly ever asked for
    mutable PagedArray<Tally> meters;
    mutable PagedArray<UsageState> usages;
    Sessions sessions;
    std::set<uint64_t> deleted;
    std::unordered_map<uint32_t, uint64_t> seid_of_teid;
    std::unordered_map<uint32_t, uint64_t> seid_of_ue;
    std::unordered_map<uint64_t, uint64_t> seid_of_ue6;
    std::vector<uint8_t> generations;                // by slot
    std::array<std::deque<uint32_t>, 2> free_slots;  // [is_uplink]; the longest free goes first
    std::array<uint32_t, 2> n_slots{};               // ever taken, likewise
    std::deque<uint32_t> free_filters;
    std::deque<uint32_t> free_meters;
    std::deque<uint32_t> free_peers6;
    std::deque<uint32_t> free_watches;
    std::deque<uint32_t> free_watched;
    std::deque<uint32_t> free_numbers;
    std::vector<uint64_t> seids;  // by the session's number
    ReportBook reports;
    uint32_t n_watches = 0;
    uint32_t n_watched = 0;
    uint32_t n_peers6 = 0;
    uint32_t n_filters = 0;
    uint32_t n_meters = 0;
    uint64_t n_rules = 0;
    Value declaration;
  };
  // What changes in the rule tables, for both copies.
  struct Edit {
    std::vector<std::pair<uint32_t, Rule>> rules;
    std::vector<std::pair<uint32_t, Filter>> filters;
    std::vector<std::pair<uint32_t, MeterRate>> meters;
    std::vector<std::pair<uint32_t, Peer6>> peers6;
    std::vector<std::pair<uint32_t, uint32_t>> teids;  // kNone: gone
    std::vector<std::pair<uint32_t, uint32_t>> ues;
    std::vector<std::pair<uint64_t, uint32_t>> ues6;
    std::vector<uint32_t> freed_slots;
    std::vector<uint32_t> freed_filters;
    std::vector<uint32_t> freed_meters;
    std::vector<uint32_t> freed_peers6;
    std::vector<std::pair<uint32_t, Watch>> watches;
    std::vector<std::pair<uint32_t, WatchedRule>> watched;
    std::vector<std::pair<uint32_t, uint16_t>> hold_pkts;  // by the session's number
    std::vector<uint32_t> freed_watched;
    std::vector<uint32_t> freed_numbers;
    std::map<uint32_t, std::set<uint32_t>> unwatched;      // slots x 2 + uplink, by place
    std::vector<std::pair<uint32_t, uint32_t>> joined;     // place, and a rule counted before
    std::vector<std::pair<uint32_t, uint32_t>> left_over;  // and one that goes
    uint64_t version = 0;
  };
  void commit(std::vector<Session> sessions, const std::vector<uint64_t>& erased,
              const std::string& where);
  void check_keys_of(const std::vector<Session>& sessions, const std::set<uint64_t>& leaving,
                     const std::string& where) const;
  void release(const Session& session, Edit& edit);
  [[nodiscard]] LayoutSink sink_for(const Session& session, Edit& edit);
  [[nodiscard]] uint32_t take_slot(bool is_uplink);
  void take_slots(Session& session, const Session* old, Edit& edit);
  void apply(const Edit& edit, RuleTables& tables) const;
  void take_number(Session& session, const Session* old, Edit& edit);
  void release_watches(const Session& session, Edit& edit);
  [[nodiscard]] uint32_t place_for(const Urr& urr, const Session* old);
  void set_watches(Session& session, const Session* old, Edit& edit);
  void carry(uint32_t place, uint32_t rule, int sign) const;
  void collect();

  std::shared_ptr<Body> body_;
  std::string claimed_by_;
  std::string first_user_;
  bool is_watched_ = false;
  bool is_held_before_ = false;
  bool are_heads_asked_ = false;
  bool is_enforced_ = false;
  bool is_tunnelled_ = false;
};

}  // namespace batchplane::session
