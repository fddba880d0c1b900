// SPDX-License-Identifier: BSD-3-Clause
// session_enforce.cc - applies a bearer's rules to each packet: whether it may pass (FAR, QER
// gates), whether it is within the rates (QER) and quotas (URR); and counts usage (URR).
//
// in: 1   out: 1   drops: session_gone, far_drop, far_buffer, qer_gate, qer_rate, urr_quota,
//   too_short
// state: sessions, shared, editable live; counts and meters
#include <algorithm>
#include <memory>

#include "base/prefetch.h"
#include "core/module/register.h"
#include "modules/headers/ipv4_header.h"
#include "modules/headers/shared_reasons.h"
#include "modules/session/session_commands.h"
#include "modules/session/session_reasons.h"
#include "modules/session/session_watch.h"

namespace batchplane {
namespace {

using session::PdrState;
using session::Rule;
using session::RuleHead;
using session::RuleTables;
using session::SessionTable;

// Bytes of the IP packet, without the frame's padding.
inline uint32_t ip_bytes_of(Packet& pkt, uint32_t l3) {
  const uint32_t room_bytes = pkt.len_bytes() - l3;
  return std::min(room_bytes, told_bytes_of(pkt.data() + l3));
}

// A meter is the time at which the packets that have passed are paid for at its rate. A packet
// passes while that time is at most one burst ahead of now.
inline bool may_pass(const Tally& due, uint64_t burst, uint64_t now) {
  return due.value() <= now + burst;
}
inline void charge(Tally& due, uint64_t cost, uint64_t now) {
  due.set(std::max(due.value(), now) + cost);
}

class SessionEnforce final : public Module {
 public:
  explicit SessionEnforce(const Args& args) : commands_(args) {
    commands_.table().note_asking_heads();
    commands_.table().note_enforcing();
    if (commands_.table().claim_watching()) {
      watcher_ = std::make_unique<session::UsageWatcher>(commands_.table());
    }
  }

  void process(Context& ctx, Batch& batch) noexcept {
    const SessionTable& table = commands_.table();
    const RuleTables& tables = table.rules();
    const uint32_t n = batch.size_pkts;
    const uint64_t now = ctx.now_ns << 8;
    if (tables.is_large) prefetch(table, tables, batch);
    for (uint32_t i = 0; i < n; ++i) {
      Packet& pkt = *batch[i];
      const uint32_t mark = pkt.mark();
      const RuleHead* const rule = tables.find_head(mark);
      const uint32_t l3 = l3_offset_of(pkt);
      if (rule == nullptr || pkt.len_bytes() < l3 + net::kIpv4Bytes) [[unlikely]] {
        ctx.drop(batch, i, rule == nullptr ? session::kSessionGone : reason::kTooShort);
        continue;
      }
      PdrState& state = table.state(session::slot_of(mark));
      const uint32_t bytes = ip_bytes_of(pkt, l3);
      const session::PackedRate rate = state.packed_rate();
      const DropReason* reason = judge(table, *rule, state, rate, now);
      if (reason == nullptr && rule->is(Rule::kShares)) {
        reason = judge_shared(table, tables, session::slot_of(mark), ctx.now_ns, bytes);
      }
      if (reason != nullptr) [[unlikely]] {
        table.dropped(session::slot_of(mark)).add(1);
        ctx.drop(batch, i, *reason);
        continue;
      }
      if (rate.has_limit()) charge(state.due, rate.cost(bytes), now);
      state.pkts.add(1);
      state.bytes.add(bytes);
    }
  }

  // One of the modules that share a table reports usage.
  void housekeep(Context& ctx, uint64_t budget_ns) noexcept override {
    if (watcher_ != nullptr) watcher_->look(commands_.table(), ctx.now_ns, budget_ns);
  }
  [[nodiscard]] uint64_t housekeep_interval_ns() const override {
    return watcher_ == nullptr ? 0 : session::UsageWatcher::kTickNs;
  }

  Value command(const std::string& verb, const Value& args) override {
    return commands_.run(verb, args);
  }
  [[nodiscard]] Value show() const override { return commands_.show(); }
  [[nodiscard]] Dict saved_params() const override { return commands_.saved_params(); }

 private:
  static void prefetch(const SessionTable& table, const RuleTables& tables,
                       const Batch& batch) noexcept {
    for (uint32_t i = 0; i < batch.size_pkts; ++i) {
      const uint32_t slot = session::slot_of(batch.pkts[i]->mark());
      if (!tables.heads.holds(slot)) continue;
      prefetch_for_read(&table.state(slot));
      prefetch_for_read(&tables.heads[slot]);
    }
    if (!tables.quotas.empty()) [[unlikely]]
      prefetch_quotas(table, tables, batch);
  }
  // The rule leads to its quota and the quota to its state: prefetches in steps, each for all
  // packets.
  [[gnu::noinline]] static void prefetch_quotas(const SessionTable& table, const RuleTables& tables,
                                                const Batch& batch) noexcept {
    uint32_t first[exec::kMaxBatchPkts];
    uint32_t n = 0;
    for (uint32_t i = 0; i < batch.size_pkts; ++i) {
      const RuleHead* const rule = tables.find_head(batch.pkts[i]->mark());
      if (rule == nullptr || !rule->is(Rule::kShares)) continue;
      first[n] = session::slot_of(batch.pkts[i]->mark());
      prefetch_for_read(&tables.rules[first[n++]]);
    }
    for (uint32_t i = 0; i < n; ++i) {
      first[i] = tables.rules[first[i]].quotas;
      if (first[i] != session::kNone) prefetch_for_read(&tables.quotas[first[i]]);
    }
    for (uint32_t i = 0; i < n; ++i) {
      if (first[i] == session::kNone) continue;
      prefetch_for_read(&table.quota_states()[tables.quotas[first[i]].place]);
    }
  }

  // If the FAR buffers but the packet got here, it was already past the hold when buffering began.
  [[gnu::noinline]] static const DropReason* closed(const SessionTable& table,
                                                    const RuleHead& rule) noexcept {
    if (rule.is(Rule::kBuffers) && !table.is_held_before()) return &session::kFarBuffer;
    if (!rule.is(Rule::kForwards) && !rule.is(Rule::kBuffers)) return &session::kFarDrop;
    return rule.is(Rule::kGateOpen) ? nullptr : &session::kQerGate;
  }

  // All meters of a packet are checked before any is charged.
  static const DropReason* judge(const SessionTable& table, const RuleHead& rule,
                                 const PdrState& state, session::PackedRate rate,
                                 uint64_t now) noexcept {
    if (!rule.is(Rule::kForwards | Rule::kGateOpen)) [[unlikely]] {
      if (const DropReason* const reason = closed(table, rule); reason != nullptr) return reason;
    }
    return rate.has_limit() && !may_pass(state.due, rate.burst(), now) ? &session::kQerRate
                                                                       : nullptr;
  }
  // Kept out of the path of most packets.
  [[gnu::noinline]] static bool take_of_quotas(const SessionTable& table, const RuleTables& tables,
                                               const Rule& rule, uint64_t now_ns,
                                               uint32_t bytes) noexcept {
    return session::take_of_all(tables.quotas, table.quota_states(), rule.quotas, bytes, now_ns);
  }

  // Meters shared with other rules, and quotas: only these are in the rule. A packet that is
  // dropped for another reason uses no quota, and a packet that a quota stops uses no rate.
  static const DropReason* judge_shared(const SessionTable& table, const RuleTables& tables,
                                        uint32_t slot, uint64_t now_ns, uint32_t bytes) noexcept {
    const Rule& rule = tables.rules[slot];
    const uint64_t now = now_ns << 8;
    for (const uint32_t at : rule.shared) {
      if (at != session::kNone && !may_pass(table.meter(at), tables.meters[at].burst, now))
        return &session::kQerRate;
    }
    if (rule.quotas != session::kNone && !take_of_quotas(table, tables, rule, now_ns, bytes)) {
      return &session::kUrrQuota;
    }
    for (const uint32_t at : rule.shared) {
      if (at != session::kNone) charge(table.meter(at), bytes * tables.meters[at].cost >> 10, now);
    }
    return nullptr;
  }

  session::SessionCommands commands_;
  std::unique_ptr<session::UsageWatcher> watcher_;
};

const Register<SessionEnforce> kSessionEnforce{{
    .kind = "session_enforce",
    .state = StateOf::kSharded,
    .help = "Enforces rates, gates and quotas of a mobile user's bearers, counts what they use.",
    .params = session::session_params(),
    .drops = {&session::kSessionGone, &session::kFarDrop, &session::kFarBuffer, &session::kQerGate,
              &session::kQerRate, &session::kUrrQuota, &reason::kTooShort},
    .notes = session::kSessionNotes,
}};

}  // namespace
}  // namespace batchplane
