// SPDX-License-Identifier: BSD-3-Clause
// dscp_split.cc - sends IPv4 and IPv6 packets to gates by their DSCP.
//
// in: 1   out: up to 4096 gates   drops: no_match, too_short   state: the rules, editable live
#include <array>

#include "core/module/register.h"
#include "modules/common/rule_table.h"
#include "modules/headers/shared_reasons.h"
#include "modules/policy/dscp_field.h"

namespace batchplane {
namespace {

constexpr GateIndex kDropGate = 0xffff;  // never linked: gates stay below kMaxRuleGates

struct DscpGates {
  std::array<GateIndex, kDscpValues + 1> gates;  // the last entry is for non-IP packets
};

class DscpSplit final : public Module {
 public:
  explicit DscpSplit(const Args& args)
      : default_gate_(default_gate_of(args)),
        book_("dscp", "rules", kDscpValues,
              [](const Value& value, const std::string& where) {
                return static_cast<uint8_t>(parse_dscp(value, where + ".dscp"));
              }),
        live_(std::make_unique<DscpGates>(), std::make_unique<DscpGates>(), args.env().quiescence) {
    book_.load(args.list("rules"), args.where());
    apply();
  }

  uint32_t link(uint32_t connected) override {
    return n_gates_ = gates_for(connected, book_.highest_gate(), default_gate_);
  }

  void classify(Context& ctx, Batch& batch) noexcept {
    const DscpGates& table = live_.read();
    GateIndex* const gates = ctx.gates;
    const uint32_t n = batch.size_pkts;
    for (uint32_t i = 0; i < n; ++i) {
      Packet& pkt = *batch[i];
      const IpKind kind = ip_kind_of(pkt);
      if (kind == IpKind::kTooShort) [[unlikely]] {
        ctx.drop(batch, i, reason::kTooShort);
        continue;
      }
      const bool is_ip = kind != IpKind::kNone;
      const uint32_t dscp =
          is_ip ? dscp_of(pkt.data() + l3_offset_of(pkt), kind) : uint32_t{kDscpValues};
      const GateIndex gate = table.gates[dscp];
      gates[i] = gate;
      if (gate == kDropGate) [[unlikely]]
        ctx.drop(batch, i, reason::kNoMatch);
    }
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
  void apply() {
    DscpGates next;
    next.gates.fill(
        static_cast<GateIndex>(default_gate_ == kNoDefaultGate ? kDropGate : default_gate_));
    for (const auto& [dscp, rule] : book_.rules()) {
      next.gates[dscp] = static_cast<GateIndex>(rule.gate);
    }
    live_.edit([&](DscpGates& gates) { gates = next; });
  }

  const uint32_t default_gate_;
  RuleBook<uint8_t> book_;
  LiveTable<DscpGates> live_;
  uint32_t n_gates_ = 1;  // number of linked gates; live rules may name no other
};

const Register<DscpSplit> kDscpSplit{{
    .kind = "dscp_split",
    .state = StateOf::kNone,
    .help = "Sends each IPv4 or IPv6 packet to the gate of its DSCP.",
    .params = {{.name = "rules",
                .type = ParamType::kList,
                .default_value = List{},
                .help = "[{dscp, gate}]; 0 to 63, ef, af11 to af43, cs0 to cs7, be, le, va"},
               default_gate_spec()},
    .drops = {&reason::kNoMatch, &reason::kTooShort},
    .notes = "What is no IP goes to default_gate. Live commands: add {dscp, gate}, delete {dscp}, "
             "replace {rules}, list.",
}};

}  // namespace
}  // namespace batchplane
