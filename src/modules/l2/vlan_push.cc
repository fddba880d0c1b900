// SPDX-License-Identifier: BSD-3-Clause
// vlan_push.cc - adds an outer VLAN tag.
//
// in: 1   out: 1   drops: too_short, too_many_tags, no_headroom, frame_too_long
// state: the tag, editable live
#include "core/module/register.h"
#include "modules/common/item_syntax.h"
#include "modules/common/live_value.h"
#include "modules/headers/frame_reasons.h"
#include "modules/headers/vlan_header.h"

namespace batchplane {
namespace {

constexpr uint32_t kTaggedBytes = net::kEthBytes + vlan::kTagBytes;
constexpr uint32_t kPcpShift = 13;
constexpr uint32_t kDeiShift = 12;
constexpr uint32_t kPcpRaw = 0xe00000;  // the PCP bits of a tag, in memory order

struct Tag {
  uint32_t word = 0;  // in memory order
  bool takes_pcp = false;
};

const std::vector<ParamSpec>& tag_params() {
  static const std::vector<ParamSpec> kParams = {
      {.name = "vid",
       .type = ParamType::kInt,
       .help = "VLAN; 0 makes a priority tag",
       .min = 0,
       .max = vlan::kMaxVid},
      {.name = "pcp",
       .type = ParamType::kInt,
       .default_value = 0,
       .help = "priority; -1 takes that of the tag which the frame has, 0 where it has none",
       .min = -1,
       .max = 7},
      {.name = "dei",
       .type = ParamType::kBool,
       .default_value = false,
       .help = "mark frames as the first to drop"},
      {.name = "tpid",
       .type = ParamType::kString,
       .default_value = "0x8100",
       .help = "0x8100: customer tag (802.1Q); 0x88a8: service tag (802.1ad, QinQ)",
       .choices = {"0x8100", "0x88a8"}},
  };
  return kParams;
}

Tag tag_of(const Args& args) {
  const int64_t pcp = args.integer("pcp");
  const uint16_t type = args.string("tpid") == "0x8100" ? vlan::kCustomerTag : vlan::kServiceTag;
  const auto tci =
      static_cast<uint16_t>(args.u32("vid") | (args.flag("dei") ? 1U << kDeiShift : 0) |
                            (pcp < 0 ? 0 : static_cast<uint32_t>(pcp) << kPcpShift));
  return {net::be16(type) | uint32_t{net::be16(tci)} << 16, pcp < 0};
}

class VlanPush final : public Module {
 public:
  explicit VlanPush(const Args& args)
      : live_(tag_of(args), args.env().quiescence),
        values_(values_of(tag_params(), args)),
        max_tags_(args.u32("max_tags")) {}

  void process(Context& ctx, Batch& batch) noexcept {
    const Tag tag = live_.read();
    Packet* const* const pkts = batch.pkts;
    const uint32_t n = batch.size_pkts;
    for (uint32_t i = 0; i < n; ++i) {
      Packet& pkt = *pkts[i];
      const uint32_t len_bytes = pkt.len_bytes();
      // One comparison checks both limits: a length that is too short wraps around.
      if (len_bytes - net::kEthBytes > kMaxFrameBytes - kTaggedBytes ||
          pkt.headroom_bytes() < vlan::kTagBytes) [[unlikely]] {
        ctx.drop(batch, i,
                 len_bytes < net::kEthBytes                     ? reason::kTooShort
                 : len_bytes > kMaxFrameBytes - vlan::kTagBytes ? frame::kFrameTooLong
                                                                : frame::kNoHeadroom);
        continue;
      }
      uint8_t* const data = pkt.data();
      uint32_t word = tag.word;
      uint32_t l3 = kTaggedBytes;
      if (vlan::is_tag_raw(header_at<net::Ethernet>(data).type.raw())) [[unlikely]] {
        if (!add_to_tags(ctx, batch, i, tag.takes_pcp, word, l3)) continue;
      }
      pkt.push_front(vlan::kTagBytes);
      vlan::move_addresses(data, data - vlan::kTagBytes);
      vlan::tag_at(data - vlan::kTagBytes, 0).set_raw(word);
      vlan::move_headers(pkt.meta(), l3, vlan::kTagBytes);
    }
  }

  Value command(const std::string& verb, const Value& args) override {
    if (verb != "set") return Module::command(verb, args);
    const Args checked = checked_set(tag_params(), values_, args);
    live_.set(tag_of(checked));
    values_ = values_of(tag_params(), checked);
    return show();
  }
  [[nodiscard]] Value show() const override { return values_; }
  [[nodiscard]] Dict saved_params() const override { return values_; }

 private:
  bool add_to_tags(Context& ctx, Batch& batch, uint32_t i, bool takes_pcp, uint32_t& word,
                   uint32_t& l3) const noexcept {
    const uint8_t* const data = batch[i]->data();
    const vlan::TagCount tags = vlan::count_tags(data, batch[i]->len_bytes(), max_tags_);
    if (tags.is_cut || tags.n >= max_tags_) {
      ctx.drop(batch, i, tags.is_cut ? reason::kTooShort : frame::kTooManyTags);
      return false;
    }
    l3 += tags.n * vlan::kTagBytes;
    if (takes_pcp) word |= (vlan::tag_at(data, 0).raw() & kPcpRaw);
    return true;
  }

  LiveValue<Tag> live_;
  Dict values_;
  const uint32_t max_tags_;
};

const Register<VlanPush> kVlanPush{{
    .kind = "vlan_push",
    .state = StateOf::kNone,
    .help = "Puts a VLAN tag in front of those that a frame has.",
    .params = joined(tag_params(), {vlan::max_tags_spec()}),
    .drops = {&reason::kTooShort, &frame::kTooManyTags, &frame::kNoHeadroom, &frame::kFrameTooLong},
    .notes = "The new tag is the outer one. Live command: set {vid, pcp, dei, tpid}, some or all.",
}};

}  // namespace
}  // namespace batchplane
