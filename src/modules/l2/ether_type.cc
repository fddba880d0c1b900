// SPDX-License-Identifier: BSD-3-Clause
// ether_type.cc - sends frames to gates by their EtherType, sixteen frames per comparison.
//
// in: 1   out: up to 4096 gates   drops: no_match, too_short   state: the rules, editable live
#include <immintrin.h>

#include "core/module/register.h"
#include "modules/common/match_fields.h"
#include "modules/common/rule_table.h"
#include "modules/headers/shared_reasons.h"
#include "modules/headers/vlan_header.h"

namespace batchplane {
namespace {

constexpr uint32_t kMaxTypes = 32;
constexpr GateIndex kDropGate = 0xffff;  // never linked: gates stay below kMaxRuleGates

struct TypeRules {
  uint32_t n = 0;
  uint16_t types[kMaxTypes] = {};  // memory order
  GateIndex gates[kMaxTypes] = {};
};

uint16_t type_of(const Value& value, const std::string& where) {
  static constexpr std::pair<const char*, uint16_t> kNames[] = {
      {"ipv4", net::kTypeIpv4}, {"arp", net::kTypeArp}, {"vlan", net::kTypeVlan},
      {"ipv6", net::kTypeIpv6}, {"mpls", 0x8847},       {"qinq", 0x88a8}};
  for (const auto& [name, type] : kNames) {
    if (value.is_string() && value.as_string() == name) return type;
  }
  try {
    return static_cast<uint16_t>(parse_field_value(value, 2, where + ".ether_type"));
  } catch (const ConfigError& error) {
    throw ConfigError(error.what(), where + ".ether_type",
                      "write 0x0800 or a name: ipv4, arp, vlan, ipv6, mpls, qinq");
  }
}

class EtherType final : public Module {
 public:
  explicit EtherType(const Args& args)
      : default_gate_(default_gate_of(args)),
        book_("ether_type", "rules", kMaxTypes, type_of),
        live_(std::make_unique<TypeRules>(), std::make_unique<TypeRules>(), args.env().quiescence) {
    book_.load(args.list("rules"), args.where());
    apply();
  }

  uint32_t link(uint32_t connected) override {
    return n_gates_ = gates_for(connected, book_.highest_gate(), default_gate_);
  }

  void classify(Context& ctx, Batch& batch) noexcept {
    const uint32_t n = batch.size_pkts;
    uint16_t types[exec::kMaxBatchPkts];
    uint32_t shortest = ~0U;
    uint32_t differs = 0;
    const uint32_t first = type_in(*batch[0]);
    for (uint32_t i = 0; i < n; ++i) {
      const uint16_t type = type_in(*batch[i]);
      shortest = std::min(shortest, batch[i]->len_bytes());
      differs |= type ^ first;
      types[i] = type;
    }
    bool any_dropped = shortest < net::kEthBytes;
    if (differs == 0) [[likely]] {
      any_dropped |= assign_all(static_cast<uint16_t>(first), n, ctx.gates);
    } else {
      any_dropped |= assign(types, n, ctx.gates);
    }
    if (any_dropped) [[unlikely]]
      drop_marked(ctx, batch);
  }

  Value command(const std::string& verb, const Value& args) override {
    if (verb == "list") return Dict{{"rules", book_.list()}};
    if (verb != "add" && verb != "delete" && verb != "replace") return Module::command(verb, args);
    book_.edit(verb, args, n_gates_);
    apply();
    return show();
  }

  [[nodiscard]] Value show() const override {
    return Dict{{"rules", static_cast<int64_t>(book_.rules().size())}};
  }

  [[nodiscard]] Dict saved_params() const override { return {{"rules", book_.list()}}; }

 private:
  // The EtherType in network byte order; 0 for frames too short to have one.
  static uint16_t type_in(Packet& pkt) {
    uint16_t type = 0;
    if (pkt.len_bytes() >= net::kEthBytes) [[likely]]
      type = header_in<net::Ethernet>(pkt, 0).type.raw();
    return type;
  }

  // The same for a batch with a single EtherType, the common case. assign() would stall: its
  // 32-byte loads read what 2-byte stores have just written.
  bool assign_all(uint16_t type, uint32_t n, GateIndex* gates) const {
    const GateIndex gate = gate_of(type);
    fill_gates(gates, gate, n);
    return gate == kDropGate;
  }
  [[nodiscard]] GateIndex gate_of(uint16_t type) const {
    const TypeRules& rules = live_.read();
    uint32_t gate = default_gate_ == kNoDefaultGate ? kDropGate : default_gate_;
    for (uint32_t r = 0; r < rules.n; ++r) {
      if (rules.types[r] == type) gate = rules.gates[r];
    }
    return static_cast<GateIndex>(gate);
  }

  // gates[i] = gate of types[i], 16 packets at a time; true if any packet has no gate. Both arrays
  // have room up to the next multiple of 16; the excess values do not matter.
  bool assign(const uint16_t* types, uint32_t n, GateIndex* gates) const {
    const TypeRules& rules = live_.read();
    const auto other =
        static_cast<GateIndex>(default_gate_ == kNoDefaultGate ? kDropGate : default_gate_);
    const __m256i drop_v = _mm256_set1_epi16(static_cast<int16_t>(kDropGate));
    uint32_t n_dropped = 0;
    for (uint32_t at = 0; at < n; at += 16) {
      const __m256i type_v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(types + at));
      __m256i gate_v = _mm256_set1_epi16(static_cast<int16_t>(other));
      for (uint32_t r = 0; r < rules.n; ++r) {
        const __m256i hit =
            _mm256_cmpeq_epi16(type_v, _mm256_set1_epi16(static_cast<int16_t>(rules.types[r])));
        gate_v = _mm256_blendv_epi8(gate_v, _mm256_set1_epi16(static_cast<int16_t>(rules.gates[r])),
                                    hit);
      }
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(gates + at), gate_v);
      auto lost = static_cast<uint32_t>(_mm256_movemask_epi8(_mm256_cmpeq_epi16(gate_v, drop_v)));
      if (n - at < 16) lost &= (1U << (2 * (n - at))) - 1;
      n_dropped |= lost;
    }
    return n_dropped != 0;
  }

  // Packets without a gate: pops a priority tag (VLAN 0), as the frame counts as untagged, and
  // looks up the type behind it. Drops the rest.
  void drop_marked(Context& ctx, Batch& batch) const {
    for (uint32_t i = 0; i < batch.size_pkts; ++i) {
      if (ctx.gates[i] == kDropGate && vlan::has_priority_tag(*batch[i])) {
        vlan::pop_tags(*batch[i], 1);
        ctx.gates[i] = gate_of(type_in(*batch[i]));
      }
      if (batch[i]->len_bytes() < net::kEthBytes) {
        ctx.drop(batch, i, reason::kTooShort);
      } else if (ctx.gates[i] == kDropGate) {
        ctx.drop(batch, i, reason::kNoMatch);
      }
    }
  }

  void apply() {
    TypeRules next;
    for (const auto& [type, rule] : book_.rules()) {
      next.types[next.n] = net::be16(type);
      next.gates[next.n++] = static_cast<GateIndex>(rule.gate);
    }
    live_.edit([&](TypeRules& rules) { rules = next; });
  }

  const uint32_t default_gate_;
  RuleBook<uint16_t> book_;
  LiveTable<TypeRules> live_;
  uint32_t n_gates_ = 1;  // number of linked gates; the limit for live rules
};

const Register<EtherType> kEtherType{{
    .kind = "ether_type",
    .state = StateOf::kNone,
    .help = "Sends each frame to the gate of its EtherType.",
    .params =
        {{.name = "rules",
          .type = ParamType::kList,
          .default_value = List{},
          .help =
              "[{ether_type, gate}], at most 32; a number, \"0x0800\", or ipv4, arp, vlan, ipv6, "
              "mpls, qinq"},
         default_gate_spec()},
    .drops = {&reason::kNoMatch, &reason::kTooShort},
    .notes = "Looks at bytes 12 and 13: of a tagged frame that is the tag's type. Where neither a "
             "rule nor "
             "default_gate takes tagged frames, tags of VLAN 0 (priority tags) are taken off "
             "first. Live "
             "commands: add {ether_type, gate}, delete {ether_type}, replace {rules}, list.",
}};

}  // namespace
}  // namespace batchplane
