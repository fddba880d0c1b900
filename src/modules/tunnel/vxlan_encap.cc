// SPDX-License-Identifier: BSD-3-Clause
// vxlan_encap.cc - encapsulates frames for VXLAN: outer Ethernet, IPv4, UDP and VXLAN headers.
//
// in: 1   out: 1   drops: unknown_tunnel, no_headroom, frame_too_long, too_short
// state: the tunnels, editable live
#include "core/module/live_table.h"
#include "core/module/register.h"
#include "modules/headers/frame_reasons.h"
#include "modules/headers/ipv4_header.h"
#include "modules/tunnel/vxlan_tunnels.h"

namespace batchplane {
namespace {

using vxlan::OuterHeader;
using vxlan::OuterHeaders;

const DropReason kUnknownTunnel{"unknown_tunnel", "no tunnel has the packet's number",
                                "add the tunnel, or look at the module that set the number"};

enum class By : uint8_t { kTunnelId, kVrf, kMark };

By by_of(const std::string& name) {
  if (name == "vrf") return By::kVrf;
  return name == "mark" ? By::kMark : By::kTunnelId;
}

vxlan::OuterStyle style_of(const Args& args) {
  return {.ttl = static_cast<uint8_t>(args.u32("ttl")),
          .dscp = static_cast<int32_t>(args.integer("dscp")),
          .copies_ecn = args.flag("copy_ecn"),
          .sets_df = args.flag("df"),
          .udp_port = static_cast<uint16_t>(args.u32("udp_port"))};
}

// Fields of the inner packet that the outer headers use.
struct Inner {
  uint64_t hash = 0;
  uint32_t tos = 0;
  uint32_t ttl = 64;  // for frames that are not IP
};

inline Inner read_inner(Packet& pkt, const uint8_t* data, uint32_t len_bytes) {
  const uint32_t l3 = l3_offset_of(pkt);
  if (l3 < net::kEthBytes || len_bytes < l3 + net::kIpv4Bytes) [[unlikely]]
    return {.hash = hash_flow(pkt, 0)};
  const uint16_t type = type_before(pkt, l3).raw();
  if (type == vxlan::kIpv4Raw) [[likely]] {
    const auto& ip = header_at<net::Ipv4>(data + l3);
    return {hash_flow(pkt, 0), ip.tos, ip.ttl};
  }
  if (type != vxlan::kIpv6Raw || len_bytes < l3 + net::kIpv6Bytes) {
    return {.hash = hash_flow(pkt, 0)};
  }
  const auto& ip = header_at<net::Ipv6>(data + l3);
  return {vxlan::hash_ipv6(ip, len_bytes - l3, 0), ip.traffic_class(), ip.hop_limit};
}

class VxlanEncap final : public Module {
 public:
  explicit VxlanEncap(const Args& args)
      : by_(by_of(args.string("by"))),
        style_(style_of(args)),
        book_(vxlan::make_tunnel_book()),
        live_(std::make_unique<vxlan::TunnelTable>(), std::make_unique<vxlan::TunnelTable>(),
              args.env().quiescence) {
    book_.load(args.list("tunnels"), args.where(), 1);
    apply();
  }

  void process(Context& ctx, Batch& batch) noexcept {
    switch (by_) {
      case By::kTunnelId:
        return process_by<By::kTunnelId>(ctx, batch);
      case By::kVrf:
        return process_by<By::kVrf>(ctx, batch);
      case By::kMark:
        return process_by<By::kMark>(ctx, batch);
    }
  }

  Value command(const std::string& verb, const Value& args) override {
    if (verb == "list") return Dict{{"tunnels", book_.list()}};
    if (verb != "add" && verb != "delete" && verb != "replace") return Module::command(verb, args);
    book_.edit(verb, args, 1);
    apply();
    return show();
  }
  [[nodiscard]] Value show() const override {
    const vxlan::TunnelTable& table = live_.current();
    return Dict{{"tunnels", static_cast<int64_t>(book_.items().size())},
                {"table_bytes", static_cast<int64_t>(table.index.size_bytes() +
                                                     table.headers.size() * sizeof(OuterHeader))}};
  }
  [[nodiscard]] Dict saved_params() const override { return {{"tunnels", book_.list()}}; }

 private:
  template <By kBy>
  void process_by(Context& ctx, Batch& batch) noexcept {
    const vxlan::TunnelTable& table = live_.read();
    // A local copy, because packet stores may alias style_.
    const vxlan::OuterStyle style = style_;
    Packet* const* const pkts = batch.pkts;
    const uint32_t n = batch.size_pkts;
    uint64_t last_key = ~0ULL;  // no packet has this key
    const OuterHeader* tunnel = nullptr;
    uint16_t next_id = next_id_;
    for (uint32_t i = 0; i < n; ++i) {
      Packet& pkt = *pkts[i];
      const uint64_t key = key_of<kBy>(pkt);
      if (key != last_key) {
        const uint32_t found = table.index.find({key});
        tunnel = found == FlatTable<1>::kMissing ? nullptr : &table.headers[found];
        last_key = key;
      }
      const uint32_t len_bytes = pkt.len_bytes();
      if (tunnel == nullptr ||
          len_bytes - net::kEthBytes > kMaxFrameBytes - vxlan::kOuterBytes - net::kEthBytes ||
          pkt.headroom_bytes() < vxlan::kOuterBytes) [[unlikely]] {
        refuse(ctx, batch, i, tunnel);
        continue;
      }
      uint8_t* const data = pkt.data();
      const Inner inner = read_inner(pkt, data, len_bytes);
      pkt.push_front(vxlan::kOuterBytes);
      write(header_at<OuterHeaders>(data - vxlan::kOuterBytes), *tunnel, inner, len_bytes, style,
            next_id);
      if (!style.sets_df) ++next_id;
      PacketMeta& meta = pkt.meta();
      meta.l3_offset_bytes = net::kEthBytes;
      meta.l4_offset_bytes = net::kEthBytes + net::kIpv4Bytes;
      if (tunnel->vrf >= 0) meta.vrf = static_cast<uint16_t>(tunnel->vrf);
    }
    next_id_ = next_id;
  }

  template <By kBy>
  static uint64_t key_of(Packet& pkt) {
    if constexpr (kBy == By::kTunnelId) return pkt.meta().tunnel_id;
    if constexpr (kBy == By::kVrf) return pkt.meta().vrf;
    return pkt.mark();
  }

  static void write(OuterHeaders& out, const OuterHeader& tunnel, const Inner& inner,
                    uint32_t len_bytes, const vxlan::OuterStyle& style, uint16_t id) {
    out = tunnel.headers;
    net::Ipv4& ip = out.ip;
    const uint32_t ip_bytes = len_bytes + vxlan::kOuterBytes - net::kEthBytes;
    const uint32_t taken = (style.dscp < 0 ? 0xfcU : 0U) | (style.copies_ecn ? 3U : 0U);
    const uint32_t tos = inner.tos & taken;
    const uint16_t ip_bytes_raw = net::be16(static_cast<uint16_t>(ip_bytes));
    uint32_t sum = tunnel.sum + ip_bytes_raw + (tos << 8);
    ip.tos = static_cast<uint8_t>(tunnel.headers.ip.tos | tos);
    ip.total_length.set_raw(ip_bytes_raw);
    if (style.ttl == 0) {
      ip.ttl = static_cast<uint8_t>(inner.ttl);
      sum += inner.ttl;
    }
    if (!style.sets_df) {
      ip.id.set_raw(id);
      sum += id;
    }
    ip.checksum.set_raw(static_cast<uint16_t>(~fold16(sum)));
    out.udp.src_port = static_cast<uint16_t>(vxlan::kFirstSourcePort +
                                             (inner.hash >> (64 - vxlan::kSourcePortBits)));
    out.udp.length = static_cast<uint16_t>(ip_bytes - net::kIpv4Bytes);
  }

  [[gnu::noinline]] static void refuse(Context& ctx, Batch& batch, uint32_t i,
                                       const OuterHeader* tunnel) noexcept {
    const uint32_t len_bytes = batch[i]->len_bytes();
    if (len_bytes < net::kEthBytes) return ctx.drop(batch, i, reason::kTooShort);
    if (tunnel == nullptr) return ctx.drop(batch, i, kUnknownTunnel);
    ctx.drop(batch, i,
             len_bytes > kMaxFrameBytes - vxlan::kOuterBytes ? frame::kFrameTooLong
                                                             : frame::kNoHeadroom);
  }

  void apply() {
    auto next = std::make_unique<vxlan::TunnelTable>(vxlan::make_table(book_, style_));
    auto spare = std::make_unique<vxlan::TunnelTable>(*next);
    live_.replace(std::move(next), std::move(spare));
  }

  const By by_;
  const vxlan::OuterStyle style_;
  uint16_t next_id_ = 1;
  vxlan::TunnelBook book_;
  LiveTable<vxlan::TunnelTable> live_;
};

std::vector<ParamSpec> params() {
  return {
      {.name = "tunnels",
       .type = ParamType::kList,
       .default_value = List{},
       .help = "[{id, vni, remote, local}], at most 65536; also dst_mac and src_mac of the outer "
               "frame (a neighbour module behind sets them too), and vrf, the table that routes "
               "the outer packet"},
      {.name = "by",
       .type = ParamType::kString,
       .default_value = "tunnel_id",
       .help = "which of the packet's notes is the tunnel's id",
       .choices = {"tunnel_id", "vrf", "mark"}},
      {.name = "ttl",
       .type = ParamType::kInt,
       .unit = "hops",
       .default_value = 64,
       .help = "outer TTL; 0 takes that of the inner packet",
       .min = 0,
       .max = 255},
      {.name = "dscp",
       .type = ParamType::kInt,
       .default_value = -1,
       .help = "outer DSCP; -1 takes that of the inner packet",
       .min = -1,
       .max = 63},
      {.name = "copy_ecn",
       .type = ParamType::kBool,
       .default_value = true,
       .help = "copy the congestion bits outwards (RFC 6040)"},
      {.name = "df",
       .type = ParamType::kBool,
       .default_value = true,
       .help = "forbid that routers on the way fragment the outer packet"},
      {.name = "udp_port",
       .type = ParamType::kInt,
       .default_value = net::Vxlan::kPort,
       .help = "outer destination port",
       .min = 1,
       .max = 65535},
  };
}

const Register<VxlanEncap> kVxlanEncap{{
    .kind = "vxlan_encap",
    .state = StateOf::kShared,
    .help = "Puts frames into VXLAN tunnels over IPv4.",
    .params = params(),
    .drops = {&kUnknownTunnel, &frame::kNoHeadroom, &frame::kFrameTooLong, &reason::kTooShort},
    .notes = "Adds 50 bytes. The outer source port, 49152 to 65535, is a hash of the inner flow; "
             "the outer UDP checksum is 0. Live commands: add {id, vni, remote, local, ..} "
             "(changes a tunnel that is there), delete {id}, replace {tunnels}, list; add and "
             "delete take {items: [...]} for many.",
}};

}  // namespace
}  // namespace batchplane
