// SPDX-License-Identifier: BSD-3-Clause
// fragment.cc - fragments IPv4 packets that are longer than the MTU of their outgoing interface
// (RFC 791), unless DF is set.
//
// in: 1   out: 1   drops: too_short, fragment_no_room, mtu_exceeded   state: none
#include <algorithm>
#include <array>
#include <string>

#include "core/module/register.h"
#include "modules/headers/ipv4_header.h"
#include "modules/headers/shared_reasons.h"
#include "modules/neighbour/neighbour_reasons.h"
#include "modules/route/route_commands.h"

namespace batchplane {
namespace {

const DropReason kNoRoom{"fragment_no_room",
                         "a packet was not cut, since no packets or no room for its parts was left",
                         "raise pool_pkts; or look for a flood of long packets"};

constexpr uint16_t kDontFragment = net::Ipv4::kDontFragment;
constexpr uint16_t kMoreFragments = net::Ipv4::kMoreFragments;
constexpr uint16_t kOffset = net::Ipv4::kFragmentOffset;
constexpr uint32_t kMaxHeaderBytes = 60;
constexpr uint32_t kMinMtuBytes = 68;  // RFC 791: the minimum MTU of a link
// New fragments per packet, the last one not counted. A 9728-byte frame without IP options needs
// 201 at the minimum MTU.
constexpr uint32_t kMaxParts = 256;

// Builds the header of later fragments: only options with the copied bit stay (RFC 791, 3.1).
uint32_t later_header(const uint8_t* ip, uint32_t header_bytes, uint8_t* later) {
  constexpr uint8_t kEnd = 0;
  constexpr uint8_t kNop = 1;
  constexpr uint8_t kCopied = 0x80;
  std::memcpy(later, ip, net::kIpv4Bytes);
  uint32_t at = net::kIpv4Bytes;
  for (uint32_t from = net::kIpv4Bytes; from < header_bytes && ip[from] != kEnd;) {
    if (ip[from] == kNop) {
      ++from;
      continue;
    }
    const uint32_t bytes = from + 1 < header_bytes ? ip[from + 1] : 0;
    if (bytes < 2 || from + bytes > header_bytes) break;
    if ((ip[from] & kCopied) != 0) {
      std::memcpy(later + at, ip + from, bytes);
      at += bytes;
    }
    from += bytes;
  }
  while (at % 4 != 0) later[at++] = kEnd;
  header_at<net::Ipv4>(later).version_ihl = static_cast<uint8_t>(0x40 | at / 4);
  return at;
}

void finish_header(net::Ipv4& ip, uint32_t payload_bytes, uint32_t fragment) {
  const uint32_t header_bytes = ip.header_bytes();
  ip.total_length = static_cast<uint16_t>(header_bytes + payload_bytes);
  ip.fragment = static_cast<uint16_t>(fragment);
  write_checksum(ip, header_bytes);
}

class Fragment final : public Module {
 public:
  explicit Fragment(const Args& args)
      : interfaces_(args.env().interfaces),
        routes_(args.string("table").empty()
                    ? nullptr
                    : shared_route_table(args.env(), args.string("table"))),
        mtu_bytes_(args.u32("mtu_bytes")),
        drops_df_(args.string("df") == "drop") {
    if (routes_ == nullptr && mtu_bytes_ == 0) {
      throw ConfigError("the MTU is not known", args.where(),
                        "give table (the lookup's, for the MTU of each interface) or mtu_bytes");
    }
    if (mtu_bytes_ != 0 && mtu_bytes_ < kMinMtuBytes) {
      throw ConfigError("an MTU of " + std::to_string(mtu_bytes_) + " bytes is not one of IPv4",
                        args.where(), "mtu_bytes is 0 or 68 to 9710 (RFC 791)");
    }
  }

  void process(Context& ctx, Batch& batch) noexcept {
    const uint32_t n = batch.size_pkts;
    for (uint32_t i = 0; i < n; ++i) {
      Packet& pkt = *batch[i];
      const uint32_t l3 = l3_offset_of(pkt);
      if (pkt.len_bytes() < l3 + net::kIpv4Bytes) [[unlikely]] {
        ctx.drop(batch, i, reason::kTooShort);
        continue;
      }
      const uint32_t total_bytes = header_in<net::Ipv4>(pkt, l3).total_length;
      if (total_bytes > mtu_of(pkt)) [[unlikely]]
        cut(ctx, batch, i, l3, total_bytes);
    }
  }

  [[nodiscard]] bool may_emit() const override { return true; }
  [[nodiscard]] Value show() const override {
    return Dict{{"cut_pkts", cut_pkts_}, {"fragments", fragments_}};
  }

 private:
  [[nodiscard]] uint32_t mtu_of(Packet& pkt) const noexcept {
    if (routes_ == nullptr) return mtu_bytes_;
    const NextHop* hop = routes_->is_built() ? routes_->hops().at(pkt.meta().next_hop) : nullptr;
    if (hop != nullptr && hop->interface < interfaces_.size()) {
      return interfaces_[hop->interface].mtu_bytes;
    }
    return mtu_bytes_ != 0 ? mtu_bytes_ : ~0U;
  }

  void cut(Context& ctx, Batch& batch, uint32_t i, uint32_t l3, uint32_t total_bytes) noexcept {
    Packet& pkt = *batch[i];
    const auto& original = header_in<net::Ipv4>(pkt, l3);
    const uint8_t* const ip = bytes_of(original);
    const uint32_t header_bytes = original.header_bytes();
    const uint32_t mtu_bytes = mtu_of(pkt);
    const uint32_t fragment = original.fragment;
    if (header_bytes < net::kIpv4Bytes || total_bytes > pkt.len_bytes() - l3 ||
        header_bytes > total_bytes) {
      ctx.drop(batch, i, reason::kTooShort);
      return;
    }
    // Unless df is `drop`, the packet goes on and the neighbour module drops it for mtu_exceeded.
    if ((fragment & kDontFragment) != 0 || mtu_bytes < header_bytes + 8) {
      if (drops_df_) ctx.drop(batch, i, neighbour::kMtuExceeded);
      return;
    }
    // All fragments but the last carry a multiple of 8 bytes. The last one reuses this packet.
    const uint32_t payload_bytes = total_bytes - header_bytes;
    const uint32_t first_bytes = (mtu_bytes - header_bytes) & ~7U;
    const uint32_t n_new = (payload_bytes - 1) / first_bytes;
    std::array<Packet*, kMaxParts> parts;
    if (n_new > parts.size() || ctx.n_emitted + n_new > Context::kMaxEmitPkts ||
        ctx.pool == nullptr || l3 + mtu_bytes > ctx.pool->data_bytes() ||
        !ctx.pool->alloc_bulk(parts.data(), n_new)) {
      ctx.drop(batch, i, kNoRoom);
      return;
    }
    ctx.originated_pkts += n_new;
    ++cut_pkts_;
    fragments_ += n_new + 1;
    std::array<uint8_t, kMaxHeaderBytes> later;
    const uint32_t later_bytes = later_header(ip, header_bytes, later.data());
    for (uint32_t part = 0; part < n_new; ++part) {
      const uint8_t* header = part == 0 ? ip : later.data();
      const uint32_t own_bytes = part == 0 ? header_bytes : later_bytes;
      Packet& out = *parts[part];
      out.reset(l3 + own_bytes + first_bytes);
      copy_meta(pkt, out);
      std::memcpy(out.data(), pkt.data(), l3);
      std::memcpy(out.data() + l3, header, own_bytes);
      std::memcpy(out.data() + l3 + own_bytes, ip + header_bytes + part * first_bytes, first_bytes);
      finish_header(header_in<net::Ipv4>(out, l3), first_bytes,
                    fragment_word(fragment, part * first_bytes, true));
      if (part != 0) out.meta().l4_offset_bytes = 0;
      ctx.emit(0, parts[part]);
    }
    keep_last(pkt, l3, header_bytes, later.data(), later_bytes, n_new * first_bytes, payload_bytes,
              fragment);
  }

  // If the packet is a fragment itself, offsets continue from its own, and its last fragment keeps
  // its more-fragments bit.
  static uint32_t fragment_word(uint32_t original, uint32_t at_bytes, bool is_more) {
    return ((original & kOffset) + at_bytes / 8) | (original & kMoreFragments) |
           (is_more ? kMoreFragments : 0U);
  }

  // Turns the packet into its own last fragment: the headers move up to the remaining payload.
  static void keep_last(Packet& pkt, uint32_t l3, uint32_t header_bytes, const uint8_t* later,
                        uint32_t later_bytes, uint32_t done_bytes, uint32_t payload_bytes,
                        uint32_t fragment) noexcept {
    const uint32_t rest_bytes = payload_bytes - done_bytes;
    const uint32_t shift_bytes = header_bytes + done_bytes - later_bytes;
    std::memmove(pkt.data() + shift_bytes, pkt.data(), l3);
    pkt.pull_front(shift_bytes);
    pkt.set_len_bytes(l3 + later_bytes + rest_bytes);
    std::memcpy(pkt.data() + l3, later, later_bytes);
    finish_header(header_in<net::Ipv4>(pkt, l3), rest_bytes,
                  fragment_word(fragment, done_bytes, false));
    pkt.meta().l4_offset_bytes = 0;
  }

  const std::vector<Interface> interfaces_;
  const std::shared_ptr<RouteTable> routes_;
  const uint32_t mtu_bytes_;
  const bool drops_df_;
  uint64_t cut_pkts_ = 0;
  uint64_t fragments_ = 0;
};

const Register<Fragment> kFragment{{
    .kind = "fragment",
    .state = StateOf::kNone,
    .help = "Cuts IPv4 packets that are longer than the MTU of their way out.",
    .params = {{.name = "table",
                .type = ParamType::kString,
                .default_value = "",
                .help = "the route table of the lookup in front; the MTU is that of the next hop's "
                        "interface"},
               {.name = "mtu_bytes",
                .type = ParamType::kInt,
                .unit = "bytes",
                .default_value = 0,
                .help = "longest IPv4 packet, for packets without such an interface; 0 = any",
                .min = 0,
                .max = 9710},
               {.name = "df",
                .type = ParamType::kString,
                .default_value = "pass",
                .help = "what becomes of longer packets that may not be cut",
                .choices = {"pass", "drop"}}},
    .drops = {&reason::kTooShort, &kNoRoom, &neighbour::kMtuExceeded},
    .notes =
        "Put it between the lookup and the neighbour module. Packets that may not be cut (DF) "
        "pass as they are, and the neighbour module drops them for mtu_exceeded; with df: drop "
        "they end here, which tells the sender its own addresses where a NAT follows. Options go "
        "into "
        "later fragments as their copied bits say.",
}};

}  // namespace
}  // namespace batchplane
