// SPDX-License-Identifier: BSD-3-Clause
// session_downlink.cc - finds the mobile user that a packet is for, and the bearer by the user's
// traffic filters.
//
// in: 1   out: gate 0, or by bearer, group or both   drops: unknown_ue, no_pdr, too_short,
// bad_version, no_match   state: sessions, shared, editable live
#include "core/module/register.h"
#include "modules/common/item_syntax.h"
#include "modules/headers/ipv4_header.h"
#include "modules/headers/ipv6_header.h"
#include "modules/headers/shared_reasons.h"
#include "modules/session/session_commands.h"
#include "modules/session/session_gates.h"
#include "modules/session/session_reasons.h"

namespace batchplane {
namespace {

using session::kNone;
using session::RuleTables;
using session::UserEntry;

class SessionDownlink final : public Module {
 public:
  explicit SessionDownlink(const Args& args) : commands_(args), gates_(args) {}

  uint32_t link(uint32_t connected) override { return n_gates_ = connected; }

  void classify(Context& ctx, Batch& batch) noexcept {
    const session::SessionTable& table = commands_.table();
    const RuleTables& tables = table.rules();
    const uint32_t n = batch.size_pkts;
    uint32_t keys[exec::kMaxBatchPkts];
    UserEntry users[exec::kMaxBatchPkts];
    for (uint32_t i = 0; i < n; ++i) {
      Packet& pkt = *batch[i];
      const uint32_t l3 = l3_offset_of(pkt);
      ctx.gates[i] = 0;
      const bool is_v4 =
          pkt.len_bytes() >= l3 + net::kIpv4Bytes && net::ip_version(pkt.data() + l3) == 4;
      // No user has the address 0; IPv6 and faulty packets are handled below.
      keys[i] = is_v4 ? header_in<net::Ipv4>(pkt, l3).dst.raw() : 0;
    }
    tables.by_ue.find_bulk(keys, n, users);
    const bool needs_heads = gates_.needs_heads();
    const bool asks_behind = table.asks_behind(tables, false);
    tables.prefetch_choice(users, n, needs_heads);
    for (uint32_t i = 0; i < n; ++i) {
      Packet& pkt = *batch[i];
      uint32_t head = users[i].mark;
      if (session::is_whole(head)) [[likely]] {
        pkt.set_mark(head);
        if (asks_behind) table.prefetch_behind(tables, head, false);
        if (needs_heads) {
          gates_.choose(ctx, batch, i, tables.heads[session::slot_of(head)], n_gates_);
        }
        continue;
      }
      const uint32_t l3 = l3_offset_of(pkt);
      if (head == kNone) [[unlikely]] {
        head = find_rest(ctx, batch, i, tables, l3);
        if (head == kNone) continue;
      }
      const uint8_t* const ip = pkt.data() + l3;
      const uint32_t slot = session::choose(tables, head, ip, pkt.len_bytes() - l3, false, 0);
      if (slot == kNone) [[unlikely]] {
        ctx.drop(batch, i, session::kNoPdr);
        continue;
      }
      const session::RuleHead& rule = tables.heads[slot];
      pkt.set_mark(session::mark_of(slot, rule));
      if (asks_behind) table.prefetch_behind(tables, slot, false);
      if (needs_heads) gates_.choose(ctx, batch, i, rule, n_gates_);
    }
  }

  Value command(const std::string& verb, const Value& args) override {
    return commands_.run(verb, args);
  }
  [[nodiscard]] Value show() const override { return commands_.show(); }
  [[nodiscard]] Dict saved_params() const override { return commands_.saved_params(); }

 private:
  [[gnu::noinline]] static uint32_t find_rest(Context& ctx, Batch& batch, uint32_t i,
                                              const RuleTables& tables, uint32_t l3) noexcept {
    Packet& pkt = *batch[i];
    const uint32_t len_bytes = pkt.len_bytes();
    if (len_bytes < l3 + net::kIpv4Bytes) {
      ctx.drop(batch, i, reason::kTooShort);
      return kNone;
    }
    const uint32_t version = net::ip_version(pkt.data() + l3);
    if (version == 6) {
      if (len_bytes < l3 + net::kIpv6Bytes) {
        ctx.drop(batch, i, reason::kTooShort);
        return kNone;
      }
      const uint32_t head = tables.by_ue6.find({header_in<net::Ipv6>(pkt, l3).dst.high_raw()});
      if (head != kNone) return head;
    } else if (version != 4) {
      ctx.drop(batch, i, reason::kBadVersion);
      return kNone;
    }
    ctx.drop(batch, i, session::kUnknownUe);
    return kNone;
  }

  session::SessionCommands commands_;
  const session::SessionGates gates_;
  uint32_t n_gates_ = 1;
};

const Register<SessionDownlink> kSessionDownlink{{
    .kind = "session_downlink",
    .state = StateOf::kShared,
    .help = "Finds the mobile user and bearer that a downlink packet goes to.",
    .params = joined(session::session_params(), {session::gate_by_spec(), session::bearers_spec()}),
    .drops = {&session::kUnknownUe, &session::kNoPdr, &reason::kNoMatch, &reason::kTooShort,
              &reason::kBadVersion},
    .notes = session::kSessionNotes,
}};

}  // namespace
}  // namespace batchplane
