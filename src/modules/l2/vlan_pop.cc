// SPDX-License-Identifier: BSD-3-Clause
// vlan_pop.cc - removes the outer VLAN tag, or all tags.
//
// in: 1   out: 1   drops: too_short, too_many_tags, not_tagged   state: none
#include "core/module/register.h"
#include "modules/headers/frame_reasons.h"
#include "modules/headers/ipv4_header.h"
#include "modules/headers/vlan_header.h"

namespace batchplane {
namespace {

class VlanPop final : public Module {
 public:
  explicit VlanPop(const Args& args)
      : pops_all_(args.string("tags") == "all"),
        drops_untagged_(args.string("untagged") == "drop"),
        max_tags_(args.u32("max_tags")) {}

  void process(Context& ctx, Batch& batch) noexcept {
    Packet* const* const pkts = batch.pkts;
    const uint32_t n = batch.size_pkts;
    for (uint32_t i = 0; i < n; ++i) {
      Packet& pkt = *pkts[i];
      uint8_t* const data = pkt.data();
      if (pkt.len_bytes() < vlan::FirstTag::kFrameBytes) [[unlikely]] {
        pop_slowly(ctx, batch, i);
        continue;
      }
      const vlan::FirstTag tag(data);
      if (!vlan::is_tag_raw(tag.type_raw()) || vlan::is_tag_raw(tag.next_type_raw())) [[unlikely]] {
        pop_slowly(ctx, batch, i);
        continue;
      }
      vlan::move_addresses(data, data + vlan::kTagBytes);
      pkt.pull_front(vlan::kTagBytes);
      vlan::move_headers(pkt.meta(), net::kEthBytes, -int32_t{vlan::kTagBytes});
    }
  }

 private:
  // Slow path: frames without a tag, with several tags, or too short.
  [[gnu::noinline]] void pop_slowly(Context& ctx, Batch& batch, uint32_t i) const noexcept {
    Packet& pkt = *batch[i];
    const vlan::TagCount tags = vlan::count_tags(pkt.data(), pkt.len_bytes(), max_tags_);
    if (tags.is_cut) return ctx.drop(batch, i, reason::kTooShort);
    if (tags.n > max_tags_) return ctx.drop(batch, i, frame::kTooManyTags);
    if (tags.n == 0 && drops_untagged_) return ctx.drop(batch, i, frame::kNotTagged);
    if (tags.n == 0) return;
    const uint32_t n_popped = pops_all_ ? tags.n : 1;
    const uint32_t n_left = tags.n - n_popped;
    vlan::pop_tags(pkt, n_popped);
    vlan::move_headers(pkt.meta(), net::kEthBytes + n_left * vlan::kTagBytes,
                       -static_cast<int32_t>(n_popped * vlan::kTagBytes));
  }

  const bool pops_all_;
  const bool drops_untagged_;
  const uint32_t max_tags_;
};

const Register<VlanPop> kVlanPop{{
    .kind = "vlan_pop",
    .state = StateOf::kNone,
    .help = "Takes the outer VLAN tag off, or all of them.",
    .params = {{.name = "tags",
                .type = ParamType::kString,
                .default_value = "one",
                .help = "one: the outer tag; all: every tag",
                .choices = {"one", "all"}},
               {.name = "untagged",
                .type = ParamType::kString,
                .default_value = "drop",
                .help = "what becomes of frames without a tag: drop (not_tagged) or pass",
                .choices = {"drop", "pass"}},
               vlan::max_tags_spec()},
    .drops = {&reason::kTooShort, &frame::kTooManyTags, &frame::kNotTagged},
    .notes = "Tags have the types 0x8100 and 0x88a8. The network header's place is noted anew.",
}};

}  // namespace
}  // namespace batchplane
