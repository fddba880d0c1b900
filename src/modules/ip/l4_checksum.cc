// SPDX-License-Identifier: BSD-3-Clause
// l4_checksum.cc - verifies or recomputes the checksum of TCP, UDP, ICMP and ICMPv6.
//
// in: 1   out: 1   state: counters
// drops: bad_l4_checksum, bad_l4_length, too_short, bad_version, bad_header_length,
// bad_total_length
#include "core/module/register.h"
#include "modules/common/tally.h"
#include "modules/headers/l4_header.h"

namespace batchplane {
namespace {

class L4Checksum final : public Module {
 public:
  explicit L4Checksum(const Args& args)
      : updates_(args.string("mode") == "update"),
        fills_zero_udp_(args.flag("fill_zero_udp")),
        allows_zero_udp6_(args.flag("allow_zero_udp6")) {}

  void process(Context& ctx, Batch& batch) noexcept {
    updates_ ? process_as<true>(ctx, batch) : process_as<false>(ctx, batch);
  }

  [[nodiscard]] Value show() const override {
    return Dict{{"fragment_pkts", fragments_.value()},
                {"other_pkts", others_.value()},
                {"no_checksum_pkts", unsummed_.value()}};
  }
  void adopt(Module& old) noexcept override {
    const auto& other = static_cast<const L4Checksum&>(old);
    fragments_.set(other.fragments_.value());
    others_.set(other.others_.value());
    unsummed_.set(other.unsummed_.value());
  }

 private:
  template <bool kUpdates>
  void process_as(Context& ctx, Batch& batch) noexcept {
    Packet* const* const pkts = batch.pkts;
    const uint32_t n = batch.size_pkts;
    for (uint32_t i = 0; i < n; ++i) {
      Packet& pkt = *pkts[i];
      const uint32_t l3 = l3_offset_of(pkt);
      const uint32_t len_bytes = pkt.len_bytes();
      if (len_bytes < l3) [[unlikely]] {
        ctx.drop(batch, i, reason::kTooShort);
        continue;
      }
      const l4::Place place = l4::find_plain(pkt.data() + l3, len_bytes - l3);
      const uint32_t at = l4::checksum_offset(place);
      if (at == 0) [[unlikely]] {
        judge<kUpdates>(ctx, batch, i);
        continue;
      }
      const DropReason* const reason = sum_one<kUpdates>(pkt.data() + l3, place, at);
      if (reason != nullptr) [[unlikely]]
        ctx.drop(batch, i, *reason);
    }
  }

  // Slow path: options, extension headers, fragments, other protocols, broken packets.
  template <bool kUpdates>
  [[gnu::noinline]] void judge(Context& ctx, Batch& batch, uint32_t i) noexcept {
    const uint32_t l3 = l3_offset_of(*batch[i]);
    uint8_t* const ip = batch[i]->data() + l3;
    const l4::Place place = l4::find(ip, batch[i]->len_bytes() - l3);
    const uint32_t at = l4::checksum_offset(place);
    if (place.find != l4::Find::kWhole || at == 0) {
      pass_or_drop(ctx, batch, i, place.find);
      return;
    }
    const DropReason* const reason = sum_one<kUpdates>(ip, place, at);
    if (reason != nullptr) ctx.drop(batch, i, *reason);
  }

  void pass_or_drop(Context& ctx, Batch& batch, uint32_t i, l4::Find find) noexcept {
    if (const DropReason* reason = l4::fault_of(find); reason != nullptr) {
      ctx.drop(batch, i, *reason);
    } else {
      (find == l4::Find::kFragment ? fragments_ : others_).add(1);
    }
  }

  // Returns the drop reason, or nullptr.
  template <bool kUpdates>
  const DropReason* sum_one(uint8_t* ip, const l4::Place place, uint32_t at) noexcept {
    uint8_t* const l4 = ip + place.offset_bytes;
    uint32_t len_bytes = place.len_bytes;
    if (len_bytes < l4::min_bytes(place.proto)) [[unlikely]]
      return &l4::kBadL4Length;
    auto& field = header_at<net::Be16>(l4 + at);
    const uint16_t checksum = field.raw();
    const bool is_udp = place.proto == net::kProtoUdp;
    if (is_udp) {
      // Bytes of the IP packet behind the UDP length are not covered.
      const uint32_t own_bytes = header_at<net::Udp>(l4).length;
      if (own_bytes < net::kUdpBytes || own_bytes > len_bytes) [[unlikely]]
        return &l4::kBadL4Length;
      len_bytes = own_bytes;
      if (checksum == 0 && !(kUpdates && (fills_zero_udp_ || place.is_v6))) {
        if (place.is_v6 && !allows_zero_udp6_) return &l4::kBadL4Checksum;
        unsummed_.add(1);
        return nullptr;
      }
    }
    const uint64_t sum = l4::sum_bytes(l4, len_bytes) + l4::sum_pseudo_header(ip, place, len_bytes);
    if constexpr (!kUpdates) {
      return fold16(sum) == 0xffff ? nullptr : &l4::kBadL4Checksum;
    } else {
      // Adding the complement cancels the old checksum. Storing 0 into the field first would delay
      // the sum.
      auto next = static_cast<uint16_t>(~fold16(sum + (0xffffU ^ checksum)));
      if (next == 0 && is_udp) next = 0xffff;
      field.set_raw(next);
      return nullptr;
    }
  }

  const bool updates_;
  const bool fills_zero_udp_;
  const bool allows_zero_udp6_;
  Tally fragments_;
  Tally others_;
  Tally unsummed_;
};

const Register<L4Checksum> kL4Checksum{{
    .kind = "l4_checksum",
    .state = StateOf::kNone,
    .help = "Verifies the checksum of TCP, UDP, ICMP and ICMPv6, or computes it anew.",
    .params = {{.name = "mode",
                .type = ParamType::kString,
                .default_value = "check",
                .help = "check: drop packets where it is wrong; update: compute it",
                .choices = {"check", "update"}},
               {.name = "fill_zero_udp",
                .type = ParamType::kBool,
                .default_value = false,
                .help = "update only: also give UDP over IPv4 a checksum where its sender chose "
                        "none"},
               {.name = "allow_zero_udp6",
                .type = ParamType::kBool,
                .default_value = false,
                .help = "check only: UDP over IPv6 without checksum passes, as tunnels may send "
                        "it (RFC 6935)"}},
    .drops = {&l4::kBadL4Checksum, &l4::kBadL4Length, &reason::kTooShort, &reason::kBadVersion,
              &reason::kBadHeaderLength, &reason::kBadTotalLength},
    .notes = "Over IPv4 and IPv6, with options and extension headers. Fragments, other protocols "
             "and packets that a routing header sends on pass as they are; `show` counts them.",
}};

}  // namespace
}  // namespace batchplane
