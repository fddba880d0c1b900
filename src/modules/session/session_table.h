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

#include "core/module/live_table.h"
#include "modules/session/session.h"
#include "modules/session/session_layout.h"
#include "modules/session/session_reports.h"
#include "modules/session/session_shape.h"

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

// What ends with a change: rules that go, and all that they used and no report has told.
struct EndedPdr {
  uint16_t id = 0;
  bool is_uplink = false;
  Usage usage;  // ever
};
struct EndedUrr {
  uint32_t id = 0;
  uint64_t number = 0;  // of the report that tells the same
  Used used;            // since the report before
};
struct Ended {
  uint64_t seid = 0;
  bool is_whole = false;  // the session goes
  std::vector<EndedPdr> pdrs;
  std::vector<EndedUrr> urrs;
};

// The rules that a session's usage rule adds up: slots x 2 + uplink.
[[nodiscard]] std::set<uint32_t> rules_under(const Session& session, uint32_t urr);

// rules, state, meter, quota_states, note_look: workers. Everything else: control thread, one
// caller at a time.
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

  [[nodiscard]] PagedArray<QuotaState>& quota_states() const noexcept {
    return body_->quota_states;
  }
  // When usage was looked at last: the table's clock for what is told of it.
  void note_look(uint64_t now_ns) const noexcept { body_->looked.ns.set(now_ns); }
  [[nodiscard]] uint64_t looked_ns() const { return body_->looked.ns.value(); }

  // Each is one step: visible to workers when it returns, or nothing changed and ConfigError.
  // A session of a SEID that is there is replaced; rules of the same id keep their counts, and
  // quotas what is left of them, unless they are granted anew. What goes is told, each usage rule
  // by a last report besides.
  std::vector<Ended> add(std::vector<Session> sessions, const std::string& where);
  std::vector<Ended> erase(const std::vector<uint64_t>& seids, const std::string& where);
  // Sessions with live edits, and those that were deleted live, stay as they are.
  void declare(std::vector<Session> sessions, const std::set<uint64_t>& deleted,
               const std::string& where);
  std::vector<Ended> replace(std::vector<Session> sessions, const std::string& where);

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
  // Each module that looks sessions up; true: the first one. Without one that fills the table that one
  // writes down what was added live.
  [[nodiscard]] bool note_user(const std::string& module);
  // What shapes sessions. Where something does, the table is filled once all modules are there.
  [[nodiscard]] SessionShaper& shaper() { return shaper_; }
  void declare_when_complete(std::function<void()> declare) { declare_ = std::move(declare); }
  void complete();
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
    PagedArray<PdrState> states;
    PagedArray<Tally> dropped;  // apart from the states: hardly ever asked for
    PagedArray<Tally> meters;
    PagedArray<UsageState> usages;
    PagedArray<QuotaState> quota_states;
    struct alignas(64) Looked {
      Tally ns;
    };
    Looked looked;  // in a line of its own: what workers read often lies around it
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
    std::deque<uint32_t> free_quotas;
    std::deque<uint32_t> free_quota_places;
    std::deque<uint32_t> free_numbers;
    std::vector<uint64_t> seids;  // by the session's number
    ReportBook reports;
    uint32_t n_watches = 0;
    uint32_t n_watched = 0;
    uint32_t n_quotas = 0;
    uint32_t n_quota_places = 0;
    uint32_t n_peers6 = 0;
    uint32_t n_filters = 0;
    uint32_t n_meters = 0;
    uint64_t n_rules = 0;
    Value declaration;
  };
  // A rule comes under a usage rule, or leaves it. `place`: where the latter is watched.
  struct Move {
    uint32_t place = kNone;
    uint64_t seid = 0;
    uint32_t urr = 0;
    uint32_t rule = 0;      // slot x 2 + uplink
    bool is_known = false;  // it was the usage rule's already, which is watched from now on
  };
  // What goes with a change, as it was.
  struct Ending {
    uint64_t seid = 0;
    uint32_t number = kNone;
    bool is_whole = false;
    std::vector<Pdr> pdrs;
    std::vector<std::pair<Urr, std::set<uint32_t>>> urrs;  // with their rules
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
    std::vector<uint32_t> taken_slots;
    std::vector<uint32_t> freed_slots;
    std::vector<uint32_t> freed_filters;
    std::vector<uint32_t> freed_meters;
    std::vector<uint32_t> freed_peers6;
    std::vector<std::pair<uint32_t, Watch>> watches;
    std::map<uint32_t, Used> read;  // by rule that comes under a usage rule: counted until then
    std::vector<std::pair<uint32_t, WatchedRule>> watched;
    std::vector<std::pair<uint32_t, uint16_t>> hold_pkts;  // by the session's number
    std::vector<uint32_t> freed_watched;
    std::vector<uint32_t> freed_numbers;
    std::vector<std::pair<uint32_t, Quota>> quotas;
    std::vector<uint32_t> freed_quotas;
    std::vector<uint32_t> freed_quota_places;
    std::set<uint32_t> unwatched;  // places
    std::vector<Move> joined;      // rules that have counted before
    std::vector<Move> left_over;
    std::vector<Move> unwatching;  // usage rules that stay; without a rule
    std::vector<Ending> endings;
    uint64_t version = 0;
  };
  std::vector<Ended> commit(std::vector<Session> sessions, const std::vector<uint64_t>& erased,
                            const std::string& where);
  void check_keys_of(const std::vector<Session>& sessions, const std::set<uint64_t>& leaving,
                     const std::string& where) const;
  [[nodiscard]] uint32_t mark_of_slot(uint32_t slot) const {
    return uint32_t{body_->generations[slot]} << kSlotBits | slot;
  }
  [[nodiscard]] const Session* known(uint64_t seid) const;
  void stage_shapes(const std::vector<Session>& sessions, const std::set<uint64_t>& leaving,
                    const std::string& where);
  void give_back_slots(const Edit& edit);
  void take_leaves(std::vector<Session>& sessions, const std::set<uint64_t>& leaving, Edit& edit,
                   const std::string& where);
  void check_quotas_of(const std::vector<Session>& sessions, const std::string& where) const;
  void release(const Session& session, Edit& edit);
  [[nodiscard]] LayoutSink sink_for(const Session& session, Edit& edit);
  [[nodiscard]] uint32_t take_slot(bool is_uplink);
  void take_slots(Session& session, const Session* old, Edit& edit);
  void apply(const Edit& edit, RuleTables& tables) const;
  void take_number(Session& session, const Session* old, Edit& edit);
  void release_watches(const Session& session, Edit& edit);
  [[nodiscard]] uint32_t place_for(const Urr& urr, const Session* old);
  void set_watches(Session& session, const Session* old, Edit& edit);
  static void note_moves(const Session& session, const Session& old, const Urr& urr, Edit& edit);
  void grant_quotas(Session& session, const Session* old, Edit& edit);
  void note_ending(const Session& old, const Session* next, Edit& edit);
  [[nodiscard]] Used counted(uint32_t rule) const;
  [[nodiscard]] Used carried(uint32_t place) const;
  void carry(uint32_t place, const Used& used) const;
  [[nodiscard]] Urr& urr_of(const Move& move) const;
  void settle_joined(Edit& edit);
  [[nodiscard]] Used counted_until(uint32_t rule, const Edit& edit) const;
  void settle_left(const Edit& edit);
  [[nodiscard]] std::vector<Ended> end_all(const Edit& edit);
  void collect();
  void free_all(const Edit& edit);

  std::shared_ptr<Body> body_;
  SessionShaper shaper_;
  std::function<void()> declare_;
  std::string claimed_by_;
  std::string first_user_;
  bool is_watched_ = false;
  bool is_held_before_ = false;
  bool are_heads_asked_ = false;
  bool is_enforced_ = false;
  bool is_tunnelled_ = false;
};

}  // namespace batchplane::session
