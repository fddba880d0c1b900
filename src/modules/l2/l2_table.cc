// SPDX-License-Identifier: BSD-3-Clause
// l2_table.cc - sends frames to gates by their destination MAC address.
//
// in: 1   out: up to 4096 gates   drops: unknown_mac, too_short   state: the entries, editable live
#include "core/module/register.h"
#include "modules/common/match_fields.h"
#include "modules/common/rule_table.h"
#include "modules/headers/shared_reasons.h"

namespace batchplane {
namespace {

using Table = FlatTable<1>;

const DropReason kUnknownMac{"unknown_mac",
                             "the destination MAC has no entry and there is no default gate",
                             "add an entry, or set default_gate"};

constexpr uint64_t kMacMask = 0xffff'ffff'ffffULL;

Table::Key key_of_mac(const Value& mac, const std::string& where) {
  if (!mac.is_string() || !net::parse_mac(mac.as_string())) {
    throw ConfigError("expected a MAC address", where + ".mac", "such as 02:00:00:00:00:01");
  }
  return {to_memory_order(parse_field_value(mac, 6, where), 6)};
}

class L2Table final : public Module {
 public:
  explicit L2Table(const Args& args)
      : default_gate_(default_gate_of(args)),
        book_("mac", "entries", kMaxRules, key_of_mac),
        live_(std::make_unique<Table>(), std::make_unique<Table>(), args.env().quiescence) {
    book_.load(args.list("entries"), args.where());
    RuleBook<Table::Key>::Edits all;
    for (const auto& [key, rule] : book_.rules()) all.set.emplace_back(key, rule.gate);
    apply_edits(live_, all);
  }

  uint32_t link(uint32_t connected) override {
    return n_gates_ = gates_for(connected, book_.highest_gate(), default_gate_);
  }

  void classify(Context& ctx, Batch& batch) noexcept {
    const uint32_t n = batch.size_pkts;
    Table::Key keys[exec::kMaxBatchPkts];
    uint64_t differs = 0;
    for (uint32_t i = 0; i < n; ++i) {
      uint64_t bits = 0;
      // The header has 14 bytes, so the 8-byte load stays inside.
      if (batch[i]->len_bytes() >= net::kEthBytes) [[likely]]
        bits = header_in<net::Ethernet>(*batch[i], 0).front_raw();
      keys[i] = {bits & kMacMask};
      differs |= keys[i][0] ^ keys[0][0];
    }
    // From a port, nearly all frames have one destination MAC.
    if (differs == 0) [[likely]] {
      const uint32_t gate = live_.read().find(keys[0]);
      if (gate != Table::kMissing && keys[0][0] != 0) [[likely]] {
        fill_gates(ctx.gates, static_cast<GateIndex>(gate), n);
        return;
      }
    }
    uint32_t gates[exec::kMaxBatchPkts];
    live_.read().find_bulk(keys, n, gates);
    for (uint32_t i = 0; i < n; ++i) {
      const uint32_t gate = gates[i] == Table::kMissing ? default_gate_ : gates[i];
      ctx.gates[i] = static_cast<GateIndex>(gate);
      // Frames too short for a header have the all-zero key.
      if (gate == kNoDefaultGate || keys[i][0] == 0) [[unlikely]]
        judge(ctx, batch, i, gate);
    }
  }

  Value command(const std::string& verb, const Value& args) override {
    if (verb == "list") return Dict{{"entries", book_.list()}};
    if (verb != "add" && verb != "delete" && verb != "replace") return Module::command(verb, args);
    apply_edits(live_, book_.edit(verb, args, n_gates_));
    return Dict{{"entries", static_cast<int64_t>(book_.rules().size())}};
  }

  [[nodiscard]] Value show() const override {
    return Dict{{"entries", static_cast<int64_t>(book_.rules().size())},
                {"table_bytes", static_cast<int64_t>(live_.current().size_bytes())}};
  }

  [[nodiscard]] Dict saved_params() const override { return {{"entries", book_.list()}}; }

 private:
  static void judge(Context& ctx, Batch& batch, uint32_t i, uint32_t gate) {
    if (batch[i]->len_bytes() < net::kEthBytes) {
      ctx.drop(batch, i, reason::kTooShort);
    } else if (gate == kNoDefaultGate) {
      ctx.drop(batch, i, kUnknownMac);
    }
  }

  const uint32_t default_gate_;
  RuleBook<Table::Key> book_;
  LiveTable<Table> live_;
  uint32_t n_gates_ = 1;  // number of linked gates; the limit for live entries
};

const Register<L2Table> kL2Table{{
    .kind = "l2_table",
    .state = StateOf::kShared,
    .help = "Sends each frame to the gate of its destination MAC address.",
    .params = {{.name = "entries",
                .type = ParamType::kList,
                .unit = "",
                .default_value = List{},
                .help = "[{mac, gate}], at most 65536"},
               default_gate_spec()},
    .drops = {&kUnknownMac, &reason::kTooShort},
    .notes = "Live commands: add {mac, gate} (changes the gate of an entry that is there), delete "
             "{mac}, replace {entries}, list; add and delete take {items: [...]} for many. Entries "
             "are static: nothing is learned or aged.",
}};

}  // namespace
}  // namespace batchplane
