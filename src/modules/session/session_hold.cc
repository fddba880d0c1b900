// SPDX-License-Identifier: BSD-3-Clause
// session_hold.cc - buffers packets for users that cannot be reached, until their forwarding action
// changes (BUFF of 3GPP TS 29.244).
//
// in: 1   out: 1   drops: hold_full   state: sessions, shared, editable live; held packets
#include <algorithm>
#include <memory>

#include "core/module/register.h"
#include "modules/common/item_syntax.h"
#include "modules/session/session_commands.h"
#include "modules/session/session_queue.h"

namespace batchplane {
namespace {

using session::kNone;
using session::Rule;
using session::RuleTables;
using session::SessionQueues;

const DropReason kHoldFull{"session_hold_full",
                           "the session holds as many packets as it may, or the module does",
                           "raise hold_pkts of the session's bar, or session_pkts and hold_pkts of "
                           "the module"};

constexpr uint64_t kTickNs = 100'000;
// Packets examined per call, and the time that one takes.
constexpr uint64_t kMaxLooks = 512;
constexpr uint64_t kLookNs = 50;

class SessionHold final : public Module {
 public:
  explicit SessionHold(const Args& args)
      : commands_(args),
        session_pkts_(args.u32("session_pkts")),
        queues_(std::make_unique<SessionQueues>(args.u32("hold_pkts"))),
        ring_(commands_.table().make_ring()) {
    commands_.table().note_asking_heads();
    commands_.table().note_holding();
  }

  void process(Context& ctx, Batch& batch) noexcept {
    const RuleTables& tables = commands_.table().rules();
    const uint32_t n = batch.size_pkts;
    if (queues_->n_held() != 0) [[unlikely]]
      let_go(ctx, tables, kMaxLooks);
    tables.prefetch_heads(batch);
    for (uint32_t i = 0; i < n; ++i) {
      const session::RuleHead* const rule = tables.find_head(batch[i]->mark());
      // If the rule is gone, the packet goes on: the next module drops it with the reason.
      if (rule == nullptr) [[unlikely]]
        continue;
      if (rule->is(Rule::kBuffers) || is_behind_) [[unlikely]]
        hold(ctx, batch, i, tables, tables.rules[session::slot_of(batch[i]->mark())]);
    }
  }

  void housekeep(Context& ctx, uint64_t budget_ns) noexcept override {
    const uint64_t looks = std::clamp<uint64_t>(budget_ns / kLookNs, 32, kMaxLooks);
    if (queues_->n_held() != 0) let_go(ctx, commands_.table().rules(), looks);
  }
  [[nodiscard]] uint64_t housekeep_interval_ns() const override { return kTickNs; }
  [[nodiscard]] uint64_t held_pkts() const override { return queues_->n_held(); }
  [[nodiscard]] uint32_t max_held_pkts() const override { return queues_->max_pkts(); }
  void give_up_held(const std::function<void(Packet*)>& take) override { queues_->give_up(take); }

  // Takes the held packets over if their marks still mean the same and the capacity is unchanged.
  void adopt(Module& old) noexcept override {
    auto& other = static_cast<SessionHold&>(old);
    if (!commands_.table().has_same_sessions(other.commands_.table())) return;
    const auto take = [](Tally& to, const Tally& from) { to.set(from.value()); };
    take(held_, other.held_);
    take(released_, other.released_);
    take(full_, other.full_);
    if (queues_->max_pkts() == other.queues_->max_pkts()) std::swap(queues_, other.queues_);
  }

  Value command(const std::string& verb, const Value& args) override {
    return commands_.run(verb, args);
  }
  [[nodiscard]] Value show() const override {
    Dict shown = commands_.show();
    shown["held_pkts"] = queues_->n_held();
    shown["max_hold_pkts"] = queues_->max_pkts();
    shown["held_ever"] = held_.value();
    shown["released"] = released_.value();
    shown["full"] = full_.value();
    return shown;
  }
  [[nodiscard]] Dict saved_params() const override { return commands_.saved_params(); }

 private:
  // Releases packets whose rules no longer buffer, oldest first, some of the queues per call.
  // is_behind_ until all have been examined, and while the output has no room for more.
  void let_go(Context& ctx, const RuleTables& tables, uint64_t max_looks) noexcept {
    if (tables.version != seen_version_) {
      seen_version_ = tables.version;
      left_ = queues_->n_queues();
      is_behind_ = true;
    }
    left_ = std::min(left_, queues_->n_queues());
    for (uint64_t looks = 0; left_ != 0 && looks < max_looks;) {
      const uint32_t queue = queues_->active(left_ - 1);
      looks += queues_->size_pkts(queue);
      if (!sift(ctx, tables, queue)) return;
      --left_;
    }
    is_behind_ = left_ != 0;
  }

  bool sift(Context& ctx, const RuleTables& tables, uint32_t queue) noexcept {
    return queues_->sift(queue, [&](Packet* pkt) {
      const Rule* const rule = tables.find(pkt->mark());
      if (rule != nullptr && rule->is(Rule::kBuffers)) return SessionQueues::Taken::kNo;
      if (!ctx.emit(0, pkt)) return SessionQueues::Taken::kNoRoom;
      released_.add(1);
      return SessionQueues::Taken::kYes;
    });
  }

  [[gnu::noinline]] void hold(Context& ctx, Batch& batch, uint32_t i, const RuleTables& tables,
                              const Rule& rule) noexcept {
    const uint32_t queue = queues_->find(rule.session);
    if (!rule.is(Rule::kBuffers)) {
      // The packet must not overtake packets of its bearer that are still held.
      const uint32_t slot = session::slot_of(batch[i]->mark());
      if (queue == kNone || !queues_->holds_rule(queue, slot)) return;
    }
    const uint32_t own_pkts = tables.hold_pkts[rule.session];
    const uint32_t max_pkts = own_pkts != 0 ? own_pkts : session_pkts_;
    if (queues_->is_full() || (queue != kNone && queues_->size_pkts(queue) >= max_pkts)) {
      full_.add(1);
      ctx.drop(batch, i, kHoldFull);
      return;
    }
    held_.add(1);
    const uint32_t slot = session::slot_of(batch[i]->mark());
    const uint32_t own = queues_->push(rule.session, ctx.keep(batch, i));
    if (!rule.is(Rule::kNotifies) || queues_->is_told(own)) return;
    queues_->set_told(own, ring_->put({.kind = session::Report::Kind::kDownlinkData,
                                       .session = rule.session,
                                       .slot = slot,
                                       .begin_ns = ctx.now_ns,
                                       .end_ns = ctx.now_ns}));
  }

  session::SessionCommands commands_;
  const uint32_t session_pkts_;
  std::unique_ptr<SessionQueues> queues_;
  std::shared_ptr<session::ReportRing> ring_;
  uint64_t seen_version_ = 0;
  uint32_t left_ = 0;  // queues not yet examined since the rules last changed
  bool is_behind_ = false;
  Tally held_;
  Tally released_;
  Tally full_;
};

std::vector<ParamSpec> hold_params() {
  return {{.name = "hold_pkts",
           .type = ParamType::kInt,
           .unit = "packets",
           .default_value = 1024,
           .help = "held at most, of all sessions",
           .min = 1,
           .max = 65536},
          {.name = "session_pkts",
           .type = ParamType::kInt,
           .unit = "packets",
           .default_value = 64,
           .help = "held at most of a session whose bar says nothing",
           .min = 1,
           .max = 65535}};
}

const Register<SessionHold> kSessionHold{{
    .kind = "session_hold",
    .state = StateOf::kSharded,
    .help = "Holds packets for mobile users whose forwarding action is to buffer.",
    .params = joined(session::session_params(), hold_params()),
    .drops = {&kHoldFull},
    .notes = "In front of a session_enforce, which counts and limits what is let go. Packets leave "
             "in order when their FAR does not buffer any more: ahead of the next packet that "
             "comes, else 40 of them each 0.1 ms. With the first one of a session comes a report, "
             "unless the FAR says notify: false. " +
             std::string(session::kSessionNotes),
}};

}  // namespace
}  // namespace batchplane
