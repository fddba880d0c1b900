// SPDX-License-Identifier: BSD-3-Clause
// ipv6_check.cc - passes only well-formed IPv6 packets, trims padding and records their header
// offsets.
//
// in: 1   out: 1   drops: one per kind of fault   state: none
#include "core/module/register.h"
#include "modules/headers/ipv6_header.h"
#include "modules/headers/shared_reasons.h"

namespace batchplane {
namespace {

const DropReason kBadPayloadLength{
    "bad_payload_length", "the IPv6 payload length goes beyond the frame",
    "look for truncation on the way, or a tap with a short snap length"};
const DropReason kHopLimitZero{"hop_limit_zero", "the packet arrived with a hop limit of 0",
                               "the router before this one did not drop it; look at that one"};
const DropReason kBadExtension{
    "bad_extension_header",
    "an extension header is cut short, or a hop-by-hop one is not the first",
    "look at the sender; such packets are broken or forged"};
const DropReason kTooManyExtensions{"too_many_extension_headers",
                                    "the packet has more than 8 extension headers",
                                    "look at the sender; no common protocol needs so many"};

class Ipv6Check final : public Module {
 public:
  explicit Ipv6Check(const Args& args)
      : l3_offset_bytes_(static_cast<uint8_t>(args.u32("l3_offset_bytes"))),
        drops_martians_(args.flag("drop_martians")) {}

  void process(Context& ctx, Batch& batch) noexcept {
    // Packet stores may alias anything, so members that the loop reads are copied to locals.
    const uint32_t l3 = l3_offset_bytes_;
    const bool drops_martians = drops_martians_;
    Packet* const* const pkts = batch.pkts;
    const uint32_t n = batch.size_pkts;
    for (uint32_t i = 0; i < n; ++i) {
      Packet& pkt = *pkts[i];
      const uint32_t len_bytes = pkt.len_bytes();
      const auto& ip = header_in<net::Ipv6>(pkt, l3);
      if (len_bytes < l3 + net::kIpv6Bytes) [[unlikely]] {
        ctx.drop(batch, i, reason::kTooShort);
        continue;
      }
      PacketMeta& meta = pkt.meta();
      meta.l3_offset_bytes = static_cast<uint8_t>(l3);
      meta.l4_offset_bytes = static_cast<uint8_t>(l3 + net::kIpv6Bytes);
      if (!is_plain_and_good(ip, len_bytes - l3, drops_martians)) [[unlikely]]
        judge(ctx, batch, i);
    }
  }

 private:
  // The common case, with one branch at the end: no padding; TCP, UDP or ICMPv6 without extension
  // headers; global unicast addresses. judge() examines all other packets.
  static bool is_plain_and_good(const net::Ipv6& ip, uint32_t room_bytes, bool drops_martians) {
    const uint32_t total_bytes = net::kIpv6Bytes + ip.payload_length;
    const uint8_t next = ip.next_header;
    const bool is_plain_next =
        (next == net::kProtoTcp) | (next == net::kProtoUdp) | (next == net::kProtoIcmp6);
    // A martian starts with byte 0 or 255; other addresses hardly ever do.
    const bool may_be_martian = (static_cast<uint8_t>(ip.src.first_octet() + 1) <= 1) |
                                (static_cast<uint8_t>(ip.dst.first_octet() + 1) <= 1);
    return (ip.version() == 6) & (total_bytes == room_bytes) & (ip.hop_limit != 0) & is_plain_next &
           !(may_be_martian & drops_martians);
  }

  void judge(Context& ctx, Batch& batch, uint32_t i) const {
    const DropReason* reason = fault_of(*batch[i]);
    if (reason != nullptr) ctx.drop(batch, i, *reason);
  }

  [[nodiscard]] const DropReason* fault_of(Packet& pkt) const {
    const uint32_t l3 = l3_offset_bytes_;
    const auto& ip = header_in<net::Ipv6>(pkt, l3);
    const uint32_t total_bytes = net::kIpv6Bytes + ip.payload_length;
    if (ip.version() != 6) return &reason::kBadVersion;
    if (total_bytes > pkt.len_bytes() - l3) return &kBadPayloadLength;
    if (ip.hop_limit == 0) return &kHopLimitZero;
    const UpperLayer6 upper = upper_layer6(ip, total_bytes);
    if (upper.fault == UpperLayer6::Fault::kTooMany) return &kTooManyExtensions;
    if (upper.fault != UpperLayer6::Fault::kNone) return &kBadExtension;
    if (drops_martians_) {
      const net::Address6 src = ip.src;
      const net::Address6 dst = ip.dst;
      if (is_martian_source(src, dst)) return &reason::kMartianSource;
      if (is_martian_destination(dst)) return &reason::kMartianDestination;
    }
    pkt.set_len_bytes(l3 + total_bytes);
    const uint32_t l4 = upper.offset_bytes == 0 ? 0 : l3 + upper.offset_bytes;
    pkt.meta().l4_offset_bytes = static_cast<uint8_t>(l4 <= 255 ? l4 : 0);
    return nullptr;
  }

  // A host without an address yet sends from :: to link-scope multicast (RFC 4861, 4862).
  static bool is_martian_source(const net::Address6& src, const net::Address6& dst) {
    return src.is_multicast() || src.is_loopback() ||
           (src.is_unspecified() && !dst.is_link_group());
  }
  // Multicast of scope 0 and 1 stays within a host.
  static bool is_martian_destination(const net::Address6& dst) {
    return dst.is_unspecified() || dst.is_loopback() ||
           (dst.is_multicast() && ((dst.high >> 48) & 15) <= 1);
  }

  const uint8_t l3_offset_bytes_;
  const bool drops_martians_;
};

const Register<Ipv6Check> kIpv6Check{{
    .kind = "ipv6_check",
    .state = StateOf::kNone,
    .help = "Drops malformed IPv6 packets and notes where the headers of the others lie.",
    .params = {{.name = "l3_offset_bytes",
                .type = ParamType::kInt,
                .unit = "bytes",
                .default_value = static_cast<int>(net::kEthBytes),
                .help = "where the IPv6 header starts",
                .min = 0,
                .max = 195},
               {.name = "drop_martians",
                .type = ParamType::kBool,
                .default_value = true,
                .help = "drop packets from or to addresses that no router may forward"}},
    .drops = {&reason::kTooShort, &reason::kBadVersion, &kBadPayloadLength, &kHopLimitZero,
              &kBadExtension, &kTooManyExtensions, &reason::kMartianSource,
              &reason::kMartianDestination},
    .notes =
        "Bytes behind the payload length (Ethernet padding) are cut off. Extension headers are "
        "followed to the upper-layer header, up to 8 of them; in later fragments, and behind "
        "more than 255 bytes, its place stays unknown. From :: only what goes to a group of "
        "the link passes: duplicate address detection needs it.",
    .is_for_ipv6 = true,
}};

}  // namespace
}  // namespace batchplane
