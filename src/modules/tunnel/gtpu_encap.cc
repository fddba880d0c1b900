// SPDX-License-Identifier: BSD-3-Clause
// gtpu_encap.cc - encapsulates users' packets into the GTP-U tunnel of their session rule: outer
// Ethernet, IPv4 or IPv6, UDP and GTP-U headers, with QFI and sequence number if configured (3GPP
// TS 29.281, TS 38.415).
//
// in: 1   out: 1   state: sessions, shared, editable live; sequence number
// drops: session_gone, no_tunnel, no_local6, no_headroom, frame_too_long, too_short,
// bad_total_length, bad_version
#include "base/prefetch.h"
#include "core/module/register.h"
#include "modules/common/item_syntax.h"
#include "modules/headers/flow_key.h"
#include "modules/headers/frame_reasons.h"
#include "modules/session/session_commands.h"
#include "modules/session/session_reasons.h"
#include "modules/tunnel/gtpu_header.h"
#include "modules/tunnel/gtpu_outer6.h"

namespace batchplane {
namespace {

using SessionRule = session::Rule;
using session::RuleTables;

const DropReason kNoTunnel{"no_tunnel", "the packet's forwarding action creates no outer header",
                           "give the far teid and peer, or send such packets another way"};
const DropReason kNoLocal6{"no_local6", "the tunnel's peer has an IPv6 address, this end none",
                           "give the module local6, or the far a peer with an IPv4 address"};

struct [[gnu::may_alias]] OuterHeaders4 {
  net::Ethernet eth;
  net::Ipv4 ip;
  net::Udp udp;
};
constexpr uint32_t kOuterBytes = sizeof(OuterHeaders4);
constexpr uint32_t kNearBytes = 32;  // in front of the packet; less than the headroom
constexpr uint32_t kFirstFlowPort = 49152;
constexpr uint32_t kFlowPortBits = 14;

struct Style {
  uint8_t ttl = 64;
  int32_t dscp = -1;  // -1: copied from the inner packet
  bool sets_df = true;
  bool has_sequence = false;
  bool is_uplink = false;  // PDU type in the extension header with the QFI
  uint16_t source_port = gtpu::kPort;

  // True if the outer headers depend only on the inner header and the rule.
  [[nodiscard]] bool is_plain() const {
    return !has_sequence && sets_df && dscp < 0 && source_port != 0;
  }
};

class GtpuEncap final : public Module {
 public:
  explicit GtpuEncap(const Args& args)
      : commands_(args),
        style_{.ttl = static_cast<uint8_t>(args.u32("ttl")),
               .dscp = static_cast<int32_t>(args.integer("dscp")),
               .sets_df = args.flag("df"),
               .has_sequence = args.flag("sequence"),
               .is_uplink = args.string("pdu_type") == "uplink",
               .source_port = static_cast<uint16_t>(args.u32("source_port"))},
        outer6_(args.string("local6"), style_.ttl, args.where() + ".local6") {
    lay_out_header(args);
    commands_.table().note_tunnelling();
  }

  void process(Context& ctx, Batch& batch) noexcept {
    const RuleTables& tables = commands_.table().rules();
    const uint32_t n = batch.size_pkts;
    const bool is_plain = style_.is_plain();
    tables.prefetch(batch);
    // The outer headers start in the cache line in front of the packet, which is still cold.
    for (uint32_t i = 0; i < n; ++i) prefetch_for_read(batch[i]->data() - kNearBytes);
    for (uint32_t i = 0; i < n; ++i) {
      const SessionRule* const rule = tables.find(batch[i]->mark());
      if (!is_plain || rule == nullptr || !encap_plain(*batch[i], *rule)) [[unlikely]]
        encap(ctx, batch, i, tables, rule);
    }
  }

  Value command(const std::string& verb, const Value& args) override {
    return commands_.run(verb, args);
  }
  [[nodiscard]] Value show() const override { return commands_.show(); }
  [[nodiscard]] Dict saved_params() const override { return commands_.saved_params(); }
  void adopt(Module& old) noexcept override {
    sequence_ = static_cast<GtpuEncap&>(old).sequence_;
    next_id_ = static_cast<GtpuEncap&>(old).next_id_;
  }

 private:
  static constexpr uint32_t kPlainBytes = kOuterBytes + gtpu::kHeaderBytes;

  // The common case: IPv4 in IPv4, no GTP-U options. False: the packet is unchanged.
  [[nodiscard]] bool encap_plain(Packet& pkt, const SessionRule& rule) const noexcept {
    const uint32_t l3 = l3_offset_of(pkt);
    const uint32_t room_bytes = pkt.len_bytes() - l3;
    uint8_t* const inner = pkt.data() + l3;
    if (pkt.len_bytes() < l3 + net::kIpv4Bytes || net::ip_version(inner) != 4) return false;
    const uint32_t ip_bytes = header_at<net::Ipv4>(inner).total_length;
    const bool is_usual =
        (rule.flags & (SessionRule::kHasTunnel | SessionRule::kPeer6)) == SessionRule::kHasTunnel &&
        rule.qfi == session::kAnyQfi && ip_bytes <= room_bytes && ip_bytes >= net::kIpv4Bytes &&
        ip_bytes <= kMaxFrameBytes - kPlainBytes && pkt.headroom_bytes() + l3 >= kPlainBytes;
    if (!is_usual) return false;
    const uint32_t tos = header_at<net::Ipv4>(inner).tos;
    auto& out = header_at<OuterHeaders4>(inner - kPlainBytes);
    if (l3 <= kPlainBytes) {
      pkt.push_front(kPlainBytes - l3);
    } else {
      pkt.pull_front(l3 - kPlainBytes);
    }
    pkt.set_len_bytes(kPlainBytes + ip_bytes);
    const uint32_t udp_bytes = net::kUdpBytes + gtpu::kHeaderBytes + ip_bytes;
    const uint16_t total_raw = net::be16(static_cast<uint16_t>(net::kIpv4Bytes + udp_bytes));
    const uint64_t sum = uint64_t{sum_} + total_raw + (tos << 8) + rule.peer_raw;
    const auto checksum = static_cast<uint16_t>(~fold16(sum));
    out = header_;
    out.ip.tos = static_cast<uint8_t>(tos);
    out.ip.total_length.set_raw(total_raw);
    out.ip.checksum.set_raw(checksum);
    out.ip.dst.set_raw(rule.peer_raw);
    out.udp.length = static_cast<uint16_t>(udp_bytes);
    auto& gtp = behind<net::Gtpu>(out);
    gtp.flags = gtpu::kVersion1;
    gtp.type = gtpu::kGpdu;
    gtp.length = static_cast<uint16_t>(ip_bytes);
    gtp.teid.set_raw(rule.peer_teid_raw);
    pkt.meta().l3_offset_bytes = net::kEthBytes;
    pkt.meta().l4_offset_bytes = net::kEthBytes + net::kIpv4Bytes;
    return true;
  }

  // All other cases. `rule`: nullptr if the session is gone.
  [[gnu::noinline]] void encap(Context& ctx, Batch& batch, uint32_t i, const RuleTables& tables,
                               const SessionRule* rule) noexcept {
    Packet& pkt = *batch[i];
    const Style& style = style_;
    const uint32_t l3 = l3_offset_of(pkt);
    if (rule == nullptr || !rule->is(SessionRule::kHasTunnel) ||
        pkt.len_bytes() < l3 + net::kIpv4Bytes)
      return refuse(ctx, batch, i, rule);
    if (rule->is(SessionRule::kPeer6)) return encap6(ctx, batch, i, tables, *rule);
    uint8_t* const inner = pkt.data() + l3;
    const uint32_t ip_bytes = told_bytes_of(inner);
    const bool has_options = style.has_sequence || rule->qfi != session::kAnyQfi;
    const uint32_t gtpu_bytes = gtpu_bytes_of(style, *rule);
    // The old headers in front of the inner packet are overwritten, so they count as headroom.
    const uint32_t outer_bytes = kOuterBytes + gtpu_bytes;
    if (const DropReason* reason =
            fault_of(pkt, inner, ip_bytes, pkt.len_bytes() - l3, outer_bytes);
        reason != nullptr) {
      return ctx.drop(batch, i, *reason);
    }
    const uint32_t flow_port = style.source_port != 0 ? 0 : flow_port_of(pkt);
    make_room(pkt, l3, outer_bytes, ip_bytes);
    auto& out = header_at<OuterHeaders4>(inner - outer_bytes);
    if (has_options) write_options(behind<net::Gtpu>(out), style, *rule);
    write(out, *rule, inner, ip_bytes, gtpu_bytes, style, flow_port);
    pkt.meta().l3_offset_bytes = net::kEthBytes;
    pkt.meta().l4_offset_bytes = net::kEthBytes + net::kIpv4Bytes;
  }

  static net::Mac mac_of(const Args& args, const char* name) {
    const auto mac = net::parse_mac(args.string(name));
    if (!mac) {
      throw ConfigError("expected a MAC address", args.where() + "." + name,
                        "such as 02:00:00:00:00:01");
    }
    return *mac;
  }

  void lay_out_header(const Args& args) {
    const auto local = net::parse_ipv4(args.string("local"));
    if (!local || *local == 0) {
      throw ConfigError("expected an IPv4 address", args.where() + ".local", "such as 192.0.2.1");
    }
    header_ = {.eth = {.dst = mac_of(args, "dst_mac"),
                       .src = mac_of(args, "src_mac"),
                       .type = net::kTypeIpv4},
               .ip = {.version_ihl = net::Ipv4::kPlain,
                      .tos = static_cast<uint8_t>(style_.dscp < 0 ? 0 : style_.dscp << 2),
                      .fragment = style_.sets_df ? net::Ipv4::kDontFragment : uint16_t{0},
                      .ttl = style_.ttl,
                      .protocol = net::kProtoUdp,
                      .src = *local},
               .udp = {.src_port = style_.source_port, .dst_port = gtpu::kPort}};
    outer6_.set_macs(header_.eth);
    sum_ = fold16(sum_header20(header_.ip));
  }

  // Replaces everything in front of the inner packet.
  static void make_room(Packet& pkt, uint32_t l3, uint32_t outer_bytes,
                        uint32_t ip_bytes) noexcept {
    if (outer_bytes >= l3) {
      pkt.push_front(outer_bytes - l3);
    } else {
      pkt.pull_front(l3 - outer_bytes);
    }
    pkt.set_len_bytes(outer_bytes + ip_bytes);
  }

  static uint32_t gtpu_bytes_of(const Style& style, const SessionRule& rule) noexcept {
    if (rule.qfi != session::kAnyQfi) return gtpu::kHeaderBytes + gtpu::kOptionBytes + 4;
    return gtpu::kHeaderBytes + (style.has_sequence ? gtpu::kOptionBytes : 0);
  }

  static const DropReason* fault_of(Packet& pkt, const uint8_t* inner, uint32_t ip_bytes,
                                    uint32_t room_bytes, uint32_t outer_bytes) noexcept {
    if (net::ip_version(inner) != 4 && net::ip_version(inner) != 6) return &reason::kBadVersion;
    if (ip_bytes > room_bytes || ip_bytes < net::kIpv4Bytes) return &reason::kBadTotalLength;
    if (ip_bytes > kMaxFrameBytes - outer_bytes) return &frame::kFrameTooLong;
    if (pkt.headroom_bytes() + l3_offset_of(pkt) < outer_bytes) return &frame::kNoHeadroom;
    return nullptr;
  }

  static uint32_t flow_port_of(Packet& pkt) noexcept {
    return static_cast<uint32_t>(kFirstFlowPort + (hash_flow(pkt, 0) >> (64 - kFlowPortBits)));
  }

  void write(OuterHeaders4& out, const SessionRule& rule, const uint8_t* inner, uint32_t ip_bytes,
             uint32_t gtpu_bytes, const Style& style, uint32_t flow_port) noexcept {
    out = header_;
    const uint32_t udp_bytes = net::kUdpBytes + gtpu_bytes + ip_bytes;
    const uint16_t total_raw = net::be16(static_cast<uint16_t>(net::kIpv4Bytes + udp_bytes));
    const uint32_t tos = traffic_class_of(inner) & (style.dscp < 0 ? 0xffU : 3U);
    uint64_t sum = uint64_t{sum_} + total_raw + (tos << 8) + rule.peer_raw;
    out.ip.tos = static_cast<uint8_t>(out.ip.tos | tos);
    out.ip.total_length.set_raw(total_raw);
    out.ip.dst.set_raw(rule.peer_raw);
    if (!style.sets_df) {
      out.ip.id.set_raw(next_id_);
      sum += next_id_++;
    }
    out.ip.checksum.set_raw(static_cast<uint16_t>(~fold16(sum)));
    if (style.source_port == 0) out.udp.src_port = static_cast<uint16_t>(flow_port);
    out.udp.length = static_cast<uint16_t>(udp_bytes);
    write_gtpu(behind<net::Gtpu>(out), rule, ip_bytes, gtpu_bytes, style);
  }

  static void write_gtpu(net::Gtpu& gtp, const SessionRule& rule, uint32_t ip_bytes,
                         uint32_t gtpu_bytes, const Style& style) noexcept {
    const bool has_qfi = rule.qfi != session::kAnyQfi;
    gtp.flags = static_cast<uint8_t>(gtpu::kVersion1 | (has_qfi ? gtpu::kHasExtension : 0) |
                                     (style.has_sequence ? gtpu::kHasSequence : 0));
    gtp.type = gtpu::kGpdu;
    gtp.length = static_cast<uint16_t>(gtpu_bytes - gtpu::kHeaderBytes + ip_bytes);
    gtp.teid.set_raw(rule.peer_teid_raw);
  }

  void write_options(net::Gtpu& gtp, const Style& style, const SessionRule& rule) noexcept {
    auto& options = behind<net::GtpuOptions>(gtp);
    options = {};
    if (style.has_sequence) options.sequence = sequence_++;
    if (rule.qfi == session::kAnyQfi) return;
    options.next_extension = gtpu::kPduSessionContainer;
    behind<net::GtpuPduSession>(options) = {
        .length = 1,
        .pdu_type = style.is_uplink ? gtpu::kUplinkPdu : gtpu::kDownlinkPdu,
        .qfi = rule.qfi,
        .next_extension = 0};
  }

  // Outer IPv6: its UDP checksum covers the whole payload.
  [[gnu::noinline]] void encap6(Context& ctx, Batch& batch, uint32_t i, const RuleTables& tables,
                                const SessionRule& rule) noexcept {
    if (!outer6_.is_there()) return ctx.drop(batch, i, kNoLocal6);
    Packet& pkt = *batch[i];
    const uint32_t l3 = l3_offset_of(pkt);
    uint8_t* const inner = pkt.data() + l3;
    const uint32_t ip_bytes = told_bytes_of(inner);
    const uint32_t gtpu_bytes = gtpu_bytes_of(style_, rule);
    const uint32_t outer_bytes = gtpu::kOuter6Bytes + gtpu_bytes;
    if (const DropReason* reason =
            fault_of(pkt, inner, ip_bytes, pkt.len_bytes() - l3, outer_bytes);
        reason != nullptr) {
      return ctx.drop(batch, i, *reason);
    }
    const uint32_t port = style_.source_port != 0 ? style_.source_port : flow_port_of(pkt);
    const uint32_t tos = traffic_class_of(inner);
    make_room(pkt, l3, outer_bytes, ip_bytes);
    auto& out = header_at<gtpu::OuterHeaders6>(inner - outer_bytes);
    auto& gtp = behind<net::Gtpu>(out);
    const uint32_t udp_bytes = net::kUdpBytes + gtpu_bytes + ip_bytes;
    const uint32_t dscp = static_cast<uint32_t>(style_.dscp) << 2;
    outer6_.write(out, tables.peers6[rule.peer_raw].data(),
                  style_.dscp < 0 ? tos : dscp | (tos & 3U), port, udp_bytes);
    if (gtpu_bytes > gtpu::kHeaderBytes) write_options(gtp, style_, rule);
    write_gtpu(gtp, rule, ip_bytes, gtpu_bytes, style_);
    l4::write_udp6_checksum(out.ip, out.udp, udp_bytes);
    pkt.meta().l3_offset_bytes = net::kEthBytes;
    pkt.meta().l4_offset_bytes = net::kEthBytes + net::kIpv6Bytes;
  }

  [[gnu::noinline]] static void refuse(Context& ctx, Batch& batch, uint32_t i,
                                       const SessionRule* rule) noexcept {
    if (rule == nullptr) return ctx.drop(batch, i, session::kSessionGone);
    ctx.drop(batch, i, rule->is(SessionRule::kHasTunnel) ? reason::kTooShort : kNoTunnel);
  }

  session::SessionCommands commands_;
  const Style style_;
  gtpu::Outer6 outer6_;
  OuterHeaders4 header_ = {};
  uint32_t sum_ = 0;  // partial IPv4 header sum, in memory order
  uint16_t sequence_ = 0;
  uint16_t next_id_ = 1;
};

std::vector<ParamSpec> encap_params() {
  return {{.name = "local",
           .type = ParamType::kString,
           .help = "IPv4 address of the tunnels' end here"},
          {.name = "local6",
           .type = ParamType::kString,
           .default_value = "",
           .help = "IPv6 address of the tunnels' end here, for peers with such an address"},
          {.name = "dst_mac",
           .type = ParamType::kString,
           .default_value = "00:00:00:00:00:00",
           .help = "of the outer frame; a neighbour module behind sets it too"},
          {.name = "src_mac",
           .type = ParamType::kString,
           .default_value = "00:00:00:00:00:00",
           .help = "of the outer frame; a neighbour module behind sets it too"},
          {.name = "ttl",
           .type = ParamType::kInt,
           .unit = "hops",
           .default_value = 64,
           .help = "outer TTL",
           .min = 1,
           .max = 255},
          {.name = "dscp",
           .type = ParamType::kInt,
           .default_value = -1,
           .help = "outer DSCP; -1 takes that of the inner packet",
           .min = -1,
           .max = 63},
          {.name = "df",
           .type = ParamType::kBool,
           .default_value = true,
           .help = "forbid that routers on the way fragment the outer packet"},
          {.name = "sequence",
           .type = ParamType::kBool,
           .default_value = false,
           .help = "number the packets (the S flag)"},
          {.name = "pdu_type",
           .type = ParamType::kString,
           .default_value = "downlink",
           .help = "of the container with the QFI, which rules with one get",
           .choices = {"downlink", "uplink"}},
          {.name = "source_port",
           .type = ParamType::kInt,
           .default_value = gtpu::kPort,
           .help = "outer source port; 0 takes a hash of the inner flow, 49152 to 65535",
           .min = 0,
           .max = 65535}};
}

const Register<GtpuEncap> kGtpuEncap{{
    .kind = "gtpu_encap",
    .state = StateOf::kShared,
    .help = "Puts users' packets into the GTP-U tunnel of their session's rule, over IPv4 or IPv6.",
    .params = joined(session::session_params(), encap_params()),
    .drops = {&session::kSessionGone, &kNoTunnel, &kNoLocal6, &frame::kNoHeadroom,
              &frame::kFrameTooLong, &reason::kTooShort, &reason::kBadTotalLength,
              &reason::kBadVersion},
    .notes = "Adds 36 bytes, with a sequence number 40, with a QFI 44. What pads the frame is left "
             "out. The congestion bits are copied outwards. Over IPv4 the outer UDP checksum is 0; "
             "over IPv6, which adds 20 bytes more, it is computed. " +
             std::string(session::kSessionNotes),
}};

}  // namespace
}  // namespace batchplane
