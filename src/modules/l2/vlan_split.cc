// SPDX-License-Identifier: BSD-3-Clause
// vlan_split.cc - sends frames to gates by their VLAN, or by outer and inner VLAN, and sets the
// VRF.
//
// in: 1   out: up to 4096 gates   drops: no_match, not_tagged, too_many_tags, too_short
// state: the rules, editable live
#include "core/module/register.h"
#include "modules/common/rule_table.h"
#include "modules/headers/frame_reasons.h"
#include "modules/headers/ipv4_header.h"
#include "modules/headers/shared_reasons.h"
#include "modules/headers/vlan_header.h"
#include "modules/l2/vlan_rules.h"

namespace batchplane {
namespace {

class VlanSplit final : public Module {
 public:
  explicit VlanSplit(const Args& args)
      : default_gate_(default_gate_of(args)),
        untagged_gate_(args.integer("untagged_gate") < 0 ? kNoDefaultGate
                                                         : args.u32("untagged_gate")),
        pops_(args.flag("pop")),
        max_tags_(args.u32("max_tags")),
        live_(std::make_unique<VlanTable>(), std::make_unique<VlanTable>(), args.env().quiescence) {
    rules_.load(args.list("rules"), args.where());
    apply();
  }

  uint32_t link(uint32_t connected) override {
    const uint32_t highest =
        std::max(rules_.highest_gate(), untagged_gate_ == kNoDefaultGate ? 0 : untagged_gate_);
    return n_gates_ = gates_for(connected, highest, default_gate_);
  }

  void classify(Context& ctx, Batch& batch) noexcept {
    pops_ ? classify_as<true>(ctx, batch) : classify_as<false>(ctx, batch);
  }

  Value command(const std::string& verb, const Value& args) override {
    if (verb == "list") return Dict{{"rules", rules_.list()}};
    if (verb != "add" && verb != "delete" && verb != "replace") return Module::command(verb, args);
    rules_.edit(verb, args, n_gates_);
    apply();
    return show();
  }
  [[nodiscard]] Value show() const override {
    return Dict{{"rules", static_cast<int64_t>(rules_.size())},
                {"table_bytes", static_cast<int64_t>(sizeof(VlanTable::outer) +
                                                     live_.current().inner.size_bytes())}};
  }
  [[nodiscard]] Dict saved_params() const override { return {{"rules", rules_.list()}}; }

 private:
  template <bool kPops>
  void classify_as(Context& ctx, Batch& batch) noexcept {
    const VlanTable& table = live_.read();
    const uint32_t* const outer = table.outer.data();
    Packet* const* const pkts = batch.pkts;
    GateIndex* const gates = ctx.gates;
    const uint32_t n = batch.size_pkts;
    for (uint32_t i = 0; i < n; ++i) {
      Packet& pkt = *pkts[i];
      uint8_t* const data = pkt.data();
      if (pkt.len_bytes() < vlan::FirstTag::kFrameBytes) [[unlikely]] {
        judge(table, ctx, batch, i);
        continue;
      }
      const vlan::FirstTag tag(data);
      const uint32_t entry = outer[tag.vid()];
      if (!vlan::is_tag_raw(tag.type_raw()) || vlan::is_tag_raw(tag.next_type_raw()) ||
          (entry & VlanEntry::kIsRule) == 0) [[unlikely]] {
        judge(table, ctx, batch, i);
        continue;
      }
      gates[i] = static_cast<GateIndex>(entry & VlanEntry::kGateMask);
      PacketMeta& meta = pkt.meta();
      if ((entry & VlanEntry::kHasVrf) != 0) meta.vrf = static_cast<uint16_t>(entry >> 16);
      if constexpr (kPops) {
        vlan::move_addresses(data, data + vlan::kTagBytes);
        pkt.pull_front(vlan::kTagBytes);
        vlan::move_headers(meta, net::kEthBytes, -int32_t{vlan::kTagBytes});
      } else {
        meta.l3_offset_bytes = net::kEthBytes + vlan::kTagBytes;
      }
    }
  }

  // Slow path: frames with no tag or several, without a rule for their VLAN, or too short. Pops
  // priority tags (VLAN 0) unless VLAN 0 has a rule, as such frames count as untagged.
  [[gnu::noinline]] void judge(const VlanTable& table, Context& ctx, Batch& batch,
                               uint32_t i) const noexcept {
    Packet& pkt = *batch[i];
    while (table.outer[vlan::kNoVid] == 0 && vlan::has_priority_tag(pkt)) {
      vlan::pop_tags(pkt, 1);
    }
    const uint8_t* const data = pkt.data();
    const vlan::TagCount tags = vlan::count_tags(data, pkt.len_bytes(), max_tags_);
    ctx.gates[i] = 0;
    if (tags.is_cut) return ctx.drop(batch, i, reason::kTooShort);
    if (tags.n > max_tags_) return ctx.drop(batch, i, frame::kTooManyTags);
    if (tags.n == 0) {
      if (untagged_gate_ == kNoDefaultGate) return ctx.drop(batch, i, frame::kNotTagged);
      ctx.gates[i] = static_cast<GateIndex>(untagged_gate_);
      return;
    }
    const uint32_t vid = vlan::tag_at(data, 0).control & vlan::kVidMask;
    uint32_t entry = table.outer[vid];
    uint32_t n_matched = 1;
    if ((entry & VlanEntry::kHasInner) != 0 && tags.n > 1) {
      const uint32_t inner = vlan::tag_at(data, 1).control & vlan::kVidMask;
      const uint32_t found = table.inner.find(VlanTable::inner_key(vid, inner));
      if (found != FlatTable<1>::kMissing) {
        entry = found;
        n_matched = 2;
      }
    }
    settle(ctx, batch, i, entry, tags.n, n_matched);
  }

  void settle(Context& ctx, Batch& batch, uint32_t i, uint32_t entry, uint32_t n_tags,
              uint32_t n_matched) const noexcept {
    PacketMeta& meta = batch[i]->meta();
    meta.l3_offset_bytes = static_cast<uint8_t>(net::kEthBytes + n_tags * vlan::kTagBytes);
    if ((entry & VlanEntry::kIsRule) == 0) {
      if (default_gate_ == kNoDefaultGate) return ctx.drop(batch, i, reason::kNoMatch);
      ctx.gates[i] = static_cast<GateIndex>(default_gate_);
      return;
    }
    ctx.gates[i] = static_cast<GateIndex>(entry & VlanEntry::kGateMask);
    if ((entry & VlanEntry::kHasVrf) != 0) meta.vrf = static_cast<uint16_t>(entry >> 16);
    if (!pops_) return;
    vlan::pop_tags(*batch[i], n_matched);
    vlan::move_headers(meta, net::kEthBytes + (n_tags - n_matched) * vlan::kTagBytes,
                       -static_cast<int32_t>(n_matched * vlan::kTagBytes));
  }

  void apply() {
    auto next = std::make_unique<VlanTable>(rules_.table());
    auto spare = std::make_unique<VlanTable>(*next);
    live_.replace(std::move(next), std::move(spare));
  }

  const uint32_t default_gate_;
  const uint32_t untagged_gate_;
  const bool pops_;
  const uint32_t max_tags_;
  VlanRules rules_;
  LiveTable<VlanTable> live_;
  uint32_t n_gates_ = 1;  // number of linked gates; the limit for live rules
};

const Register<VlanSplit> kVlanSplit{{
    .kind = "vlan_split",
    .state = StateOf::kNone,
    .help = "Sends each frame to the gate of its VLAN, or of its outer and inner VLAN.",
    .params = {{.name = "rules",
                .type = ParamType::kList,
                .default_value = List{},
                .help = "[{vid, gate}], with inner_vid where two tags decide, and vrf to set that "
                        "of the packet; at most 65536"},
               {.name = "pop",
                .type = ParamType::kBool,
                .default_value = false,
                .help = "take off the tags that the rule names"},
               {.name = "untagged_gate",
                .type = ParamType::kInt,
                .default_value = -1,
                .help = "gate of frames without a tag; -1 drops them",
                .min = -1,
                .max = kMaxRuleGates - 1},
               default_gate_spec(),
               vlan::max_tags_spec()},
    .drops = {&reason::kNoMatch, &frame::kNotTagged, &frame::kTooManyTags, &reason::kTooShort},
    .notes = "A rule with inner_vid wins over one of the outer VLAN alone. The network header's "
             "place is noted. Tags of VLAN 0 (priority tags) are taken off, and the frame is one "
             "without them, unless a rule names VLAN 0. Live commands: add {vid, inner_vid, gate, "
             "vrf} (changes a rule that "
             "is there), delete {vid, inner_vid}, replace {rules}, list; add and delete take "
             "{items: [...]} for many.",
}};

}  // namespace
}  // namespace batchplane
