// SPDX-License-Identifier: BSD-3-Clause
// session_table.h - the mobile sessions that modules of one pipeline share by name.
//
// When a pipeline is applied, the new one takes over the table's contents: counts, meters and live
// edits included. The control thread keeps the sessions; workers read the rules made from them
// through a LiveTable and write the states, which never move.
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

// What a change ends: removed rules, and the usage of each that was not reported yet.
struct EndedPdr {
  uint16_t id = 0;
  bool is_uplink = false;
  Usage usage;  // since the rule was created
};
struct EndedUrr {
  uint32_t id = 0;
  uint64_t number = 0;  // of the report that says the same
  Used used;            // since the last report
};
struct Ended {
  uint64_t seid = 0;
  bool is_whole = false;  // the whole session is removed
  std::vector<EndedPdr> pdrs;
  std::vector<EndedUrr> urrs;
};

// The rules whose counts a usage rule adds up: slot x 2 + uplink.
[[nodiscard]] std::set<uint32_t> rules_under(const Session& session, uint32_t urr);

// rules, state, meter, quota_states, note_look: workers. Everything else: control thread, one
// caller at a time.
class SessionTable {
 public:
  using Sessions = std::map<uint64_t, Session>;  // by SEID

  // `previous`: the table of the same name in the pipeline that is being replaced, if any.
  SessionTable(const Quiescence* quiescence, const SessionTable* previous);

  // Load once per call of process/classify.
  [[nodiscard]] const RuleTables& rules() const noexcept { return body_->live.read(); }
  [[nodiscard]] PdrState& state(uint32_t slot) const noexcept { return body_->states[slot]; }
  // Packets that the rule dropped.
  [[nodiscard]] Tally& dropped(uint32_t slot) const noexcept { return body_->dropped[slot]; }
  [[nodiscard]] Tally& meter(uint32_t index) const noexcept { return body_->meters[index]; }
  [[nodiscard]] UsageState& usage_state(uint32_t place) const noexcept {
    return body_->usages[place];
  }

  [[nodiscard]] PagedArray<QuotaState>& quota_states() const noexcept {
    return body_->quota_states;
  }
  // When usage was last checked: the clock for reports.
  void note_look(uint64_t now_ns) const noexcept { body_->looked.ns.set(now_ns); }
  [[nodiscard]] uint64_t looked_ns() const { return body_->looked.ns.value(); }

  // Each call is one step: workers see it when it returns, or it throws ConfigError and nothing has
  // changed. Adding a session whose SEID exists replaces it; rules with the same ID keep their
  // counts, and quotas what is left of them unless they are granted anew. Returns what was removed;
  // each usage rule that ends also gets a final report.
  std::vector<Ended> add(std::vector<Session> sessions, const std::string& where);
  std::vector<Ended> erase(const std::vector<uint64_t>& seids, const std::string& where);
  // Leaves sessions that were edited or deleted live as they are.
  void declare(std::vector<Session> sessions, const std::set<uint64_t>& deleted,
               const std::string& where);
  std::vector<Ended> replace(std::vector<Session> sessions, const std::string& where);

  [[nodiscard]] const Sessions& sessions() const { return body_->sessions; }
  // SEIDs from a file or generator that were deleted live.
  [[nodiscard]] const std::set<uint64_t>& deleted() const { return body_->deleted; }
  [[nodiscard]] Usage usage(const Session& session, bool is_uplink) const;
  [[nodiscard]] Usage usage(const Session& session, bool is_uplink, uint32_t urr) const;
  [[nodiscard]] const RuleTables& current_rules() const { return body_->live.current(); }
  [[nodiscard]] uint64_t n_rules() const { return body_->n_rules; }
  [[nodiscard]] size_t size_bytes() const;

  // Only one module of a pipeline fills the table; throws for a second one.
  void claim(const std::string& module);
  // Called by each module that looks sessions up; true for the first. If no module fills the table,
  // that one saves the sessions added live.
  [[nodiscard]] bool note_user(const std::string& module);
  // Shapes the sessions. If anything is shaped, the table is filled once all modules exist.
  [[nodiscard]] SessionShaper& shaper() { return shaper_; }
  void declare_when_complete(std::function<void()> declare) { declare_ = std::move(declare); }
  void complete();
  [[nodiscard]] bool is_written_by(const std::string& module) const {
    return module == (claimed_by_.empty() ? first_user_ : claimed_by_);
  }
  // True for the first module of the pipeline that asks: it compares usage with thresholds.
  [[nodiscard]] bool claim_watching() { return !std::exchange(is_watched_, true); }
  // Whether a module of the pipeline holds packets that FARs buffer. Set before workers run.
  void note_holding() { is_held_before_ = true; }
  [[nodiscard]] bool is_held_before() const noexcept { return is_held_before_; }
  // Modules behind a lookup that read data which the lookup does not. Set before workers run.
  void note_asking_heads() { are_heads_asked_ = true; }
  void note_enforcing() { is_enforced_ = true; }
  void note_tunnelling() { is_tunnelled_ = true; }
  // Whether to prefetch what the modules behind will read, once a packet's rule is known. Those
  // modules see few packets at a time and have little to do while a cache line arrives; a lookup
  // has a whole batch and spreads the prefetches over it.
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

  // For one worker's reports, which stay in it until the control thread reads them.
  [[nodiscard]] std::shared_ptr<ReportRing> make_ring();
  // The latest reports, including those that workers have just sent.
  [[nodiscard]] const ReportBook& collected_reports();

  // What the table was filled from; null until it was filled.
  [[nodiscard]] const Value& declaration() const { return body_->declaration; }
  void set_declaration(Value declaration) { body_->declaration = std::move(declaration); }

 private:
  struct Body {
    explicit Body(const Quiescence* quiescence)
        : live(std::make_unique<RuleTables>(), std::make_unique<RuleTables>(), quiescence) {}

    LiveTable<RuleTables> live;
    PagedArray<PdrState> states;
    PagedArray<Tally> dropped;  // apart from the states: rarely used
    PagedArray<Tally> meters;
    PagedArray<UsageState> usages;
    PagedArray<QuotaState> quota_states;
    struct alignas(64) Looked {
      Tally ns;
    };
    Looked looked;  // in a cache line of its own: its neighbours are read often by workers
    Sessions sessions;
    std::set<uint64_t> deleted;
    std::unordered_map<uint32_t, uint64_t> seid_of_teid;
    std::unordered_map<uint32_t, uint64_t> seid_of_ue;
    std::unordered_map<uint64_t, uint64_t> seid_of_ue6;
    std::vector<uint8_t> generations;  // by slot
    std::array<std::deque<uint32_t>, 2>
        free_slots;  // [is_uplink]; the slot that has been free longest is used first
    std::array<uint32_t, 2> n_slots{};  // [is_uplink]: slots ever used
    std::deque<uint32_t> free_filters;
    std::deque<uint32_t> free_meters;
    std::deque<uint32_t> free_peers6;
    std::deque<uint32_t> free_watches;
    std::deque<uint32_t> free_watched;
    std::deque<uint32_t> free_quotas;
    std::deque<uint32_t> free_quota_places;
    std::deque<uint32_t> free_numbers;
    std::vector<uint64_t> seids;  // by session number
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
  // A rule joins or leaves a usage rule. `place`: of the usage rule's watch.
  struct Move {
    uint32_t place = kNone;
    uint64_t seid = 0;
    uint32_t urr = 0;
    uint32_t rule = 0;  // slot x 2 + uplink
    bool is_known =
        false;  // it belonged to the usage rule already, which is watched only from now on
  };
  // What a change removes, as it was before.
  struct Ending {
    uint64_t seid = 0;
    uint32_t number = kNone;
    bool is_whole = false;
    std::vector<Pdr> pdrs;
    std::vector<std::pair<Urr, std::set<uint32_t>>> urrs;  // with their rules
  };
  // The changes to make in both copies of the rule tables.
  struct Edit {
    std::vector<std::pair<uint32_t, Rule>> rules;
    std::vector<std::pair<uint32_t, Filter>> filters;
    std::vector<std::pair<uint32_t, MeterRate>> meters;
    std::vector<std::pair<uint32_t, Peer6>> peers6;
    std::vector<std::pair<uint32_t, uint32_t>> teids;  // kNone: remove
    std::vector<std::pair<uint32_t, uint32_t>> ues;
    std::vector<std::pair<uint64_t, uint32_t>> ues6;
    std::vector<uint32_t> taken_slots;
    std::vector<uint32_t> freed_slots;
    std::vector<uint32_t> freed_filters;
    std::vector<uint32_t> freed_meters;
    std::vector<uint32_t> freed_peers6;
    std::vector<std::pair<uint32_t, Watch>> watches;
    std::map<uint32_t, Used> read;  // by rule that joins a usage rule: its count at that time
    std::vector<std::pair<uint32_t, WatchedRule>> watched;
    std::vector<std::pair<uint32_t, uint16_t>> hold_pkts;  // by session number
    std::vector<uint32_t> freed_watched;
    std::vector<uint32_t> freed_numbers;
    std::vector<std::pair<uint32_t, Quota>> quotas;
    std::vector<uint32_t> freed_quotas;
    std::vector<uint32_t> freed_quota_places;
    std::set<uint32_t> unwatched;  // places
    std::vector<Move> joined;      // rules with earlier counts
    std::vector<Move> left_over;
    std::vector<Move>
        unwatching;  // usage rules that stay but are no longer watched; `rule` is unused
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
