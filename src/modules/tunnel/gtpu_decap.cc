// SPDX-License-Identifier: BSD-3-Clause
// gtpu_decap.cc - decapsulates users' packets from GTP-U tunnels (3GPP TS 29.281), finds their
// session rule, and answers path management messages.
//
// in: 1   out: inner, reply, other, signalling, inner6
// state: sessions, shared, editable live; counters
// drops: unknown_teid, gtpu_extension, gtpu_inner, gtpu_signalling, not_gtpu, bad_gtpu,
// gtpu_inner6, gtpu_version, no_pdr, ue_source, ecn_mismatch, bad_l4_checksum, too_short,
// bad_header_length, bad_total_length
#include <optional>

#include "base/prefetch.h"
#include "core/module/register.h"
#include "modules/common/item_syntax.h"
#include "modules/headers/tunnel_ecn.h"
#include "modules/icmp/icmp_rate.h"
#include "modules/session/session_commands.h"
#include "modules/session/session_reasons.h"
#include "modules/tunnel/gtpu_reply.h"

namespace batchplane {
namespace {

using gtpu::Asker;
using gtpu::Message;
using session::kNone;
using SessionRule = session::Rule;
using session::RuleTables;

constexpr GateIndex kInnerGate = 0;
constexpr GateIndex kReplyGate = 1;
constexpr GateIndex kOtherGate = 2;
constexpr GateIndex kSignallingGate = 3;
constexpr GateIndex kInner6Gate = 4;

const DropReason kUnknownTeid{"unknown_teid", "no session has the packet's tunnel endpoint",
                              "add the session; the peer is told by an error indication"};
const DropReason kExtension{"gtpu_extension",
                            "an extension header that has to be understood is not known here",
                            "look at the peer, which is told what is supported"};
const DropReason kInner{"gtpu_inner", "what the tunnel carries is neither IPv4 nor IPv6, or cut",
                        "look at the peer; other kinds of PDU sessions are not supported"};
const DropReason kInner6{"gtpu_inner6",
                         "the tunnel carries an IPv6 packet, which nothing takes here",
                         "connect the gate inner6 to modules for IPv6"};
const DropReason kSignalling{"gtpu_signalling",
                             "a GTP-U message for the control plane, which nothing takes here",
                             "connect the gate signalling to what should have it"};
const DropReason kNotGtpu{"not_gtpu", "the packet is no GTP-U over UDP",
                          "connect the gate other to what should get such packets"};

// Per-packet results between the steps; payload_offset_bytes 0: the packet needs no further step.
struct Found {
  uint32_t teids[exec::kMaxBatchPkts];
  uint32_t payload_offset_bytes[exec::kMaxBatchPkts];
  uint32_t payload_bytes[exec::kMaxBatchPkts];
  session::TunnelEntry tunnels[exec::kMaxBatchPkts];
  uint8_t qfis[exec::kMaxBatchPkts];
  uint8_t ecns[exec::kMaxBatchPkts];
};

class GtpuDecap final : public Module {
 public:
  explicit GtpuDecap(const Args& args)
      : commands_(args),
        local_raw_(local_of(args)),
        local6_(local6_of(args)),
        verifies_sum_(args.flag("verify_udp_checksum")),
        takes_any_(args.flag("any_teid")),
        budget_(args) {}

  uint32_t link(uint32_t connected) override {
    n_connected_ = connected;
    return kInner6Gate + 1;
  }
  [[nodiscard]] bool may_emit() const override { return true; }

  void classify(Context& ctx, Batch& batch) noexcept {
    const session::SessionTable& table = commands_.table();
    const RuleTables& tables = table.rules();
    const uint32_t n = batch.size_pkts;
    const bool asks_behind = !takes_any_ && table.asks_behind(tables, true);
    Found found;
    for (uint32_t i = 0; i < n; ++i) read(ctx, batch, i, found);
    if (!takes_any_) {
      tables.by_teid.find_bulk(found.teids, n, found.tunnels);
      tables.prefetch_choice(found.tunnels, n, false);
    }
    uint64_t n_gpdus = 0;
    for (uint32_t i = 0; i < n; ++i) {
      if (found.payload_offset_bytes[i] == 0) continue;
      ++n_gpdus;
      finish(ctx, batch, i, tables, found);
      if (asks_behind && batch[i] != nullptr) {
        table.prefetch_behind(tables, batch[i]->mark(), true);
      }
    }
    gpdus_.add(n_gpdus);
  }

  Value command(const std::string& verb, const Value& args) override {
    return commands_.run(verb, args);
  }
  [[nodiscard]] Value show() const override {
    Dict shown = commands_.show();
    shown["gpdus"] = gpdus_.value();
    shown["echo_requests"] = echo_requests_.value();
    shown["end_markers"] = end_markers_.value();
    shown["error_indications_sent"] = errors_sent_.value();
    shown["error_indications_received"] = errors_received_.value();
    shown["supported_extensions_sent"] = extensions_sent_.value();
    shown["messages_held_back"] = held_back_.value();
    return shown;
  }
  [[nodiscard]] Dict saved_params() const override { return commands_.saved_params(); }

  void adopt(Module& old) noexcept override {
    auto& other = static_cast<GtpuDecap&>(old);
    budget_ = other.budget_;
    const auto take = [](Tally& to, const Tally& from) { to.set(from.value()); };
    take(gpdus_, other.gpdus_);
    take(echo_requests_, other.echo_requests_);
    take(end_markers_, other.end_markers_);
    take(errors_sent_, other.errors_sent_);
    take(errors_received_, other.errors_received_);
    take(extensions_sent_, other.extensions_sent_);
    take(held_back_, other.held_back_);
  }

 private:
  static uint32_t local_of(const Args& args) {
    const std::string& text = args.string("local");
    if (text.empty()) return 0;
    const auto address = net::parse_ipv4(text);
    if (!address) {
      throw ConfigError("expected an IPv4 address", args.where() + ".local", "such as 192.0.2.1");
    }
    return net::be32(*address);
  }

  static std::optional<net::Address6> local6_of(const Args& args) {
    const std::string& text = args.string("local6");
    if (text.empty()) return std::nullopt;
    const auto address = net::parse_ipv6(text);
    if (!address) {
      throw ConfigError("expected an IPv6 address", args.where() + ".local6",
                        "such as 2001:db8::1");
    }
    return address;
  }

  // Reads the outer headers of packet i and records user packets in `found`. Handles the common
  // case only: IPv4, no options, no UDP checksum; read_rest() handles all others.
  void read(Context& ctx, Batch& batch, uint32_t i, Found& found) noexcept {
    Packet& pkt = *batch[i];
    const uint32_t l3 = l3_offset_of(pkt);
    const uint32_t len_bytes = pkt.len_bytes();
    const auto& ip = header_in<net::Ipv4>(pkt, l3);
    ctx.gates[i] = kInnerGate;
    constexpr uint32_t kOuterBytes = net::kIpv4Bytes + net::kUdpBytes + gtpu::kHeaderBytes;
    if (len_bytes < l3 + kOuterBytes) [[unlikely]]
      return read_rest(ctx, batch, i, found);
    const auto& udp = behind<net::Udp>(ip);
    const auto& gtp = behind<net::Gtpu>(udp);
    const uint32_t l4_bytes = ip.total_length - net::kIpv4Bytes;
    const uint32_t udp_bytes = udp.length;
    const uint32_t payload_bytes = gtp.length;
    const bool is_usual = ip.version_ihl == net::Ipv4::kPlain && ip.protocol == net::kProtoUdp &&
                          !ip.is_fragment() && udp.dst_port == gtpu::kPort && udp.checksum == 0 &&
                          gtp.flags == gtpu::kVersion1 && gtp.type == gtpu::kGpdu;
    const bool is_whole = l4_bytes <= len_bytes - l3 - net::kIpv4Bytes && udp_bytes <= l4_bytes &&
                          payload_bytes + net::kUdpBytes + gtpu::kHeaderBytes <= udp_bytes;
    if (!is_usual || !is_whole || has_local()) [[unlikely]]
      return read_rest(ctx, batch, i, found);
    // The inner addresses are in the next cache line, which is still cold.
    prefetch_for_read(bytes_of(behind<net::Ipv4>(gtp)) + net::kIpv4Bytes);
    found.teids[i] = gtp.teid;
    found.payload_offset_bytes[i] = l3 + kOuterBytes;
    found.payload_bytes[i] = payload_bytes;
    found.qfis[i] = session::kAnyQfi;
    found.ecns[i] = ip.tos & vxlan::kEcnMask;
  }

  [[gnu::noinline]] void read_rest(Context& ctx, Batch& batch, uint32_t i, Found& found) noexcept {
    Packet& pkt = *batch[i];
    const uint32_t l3 = l3_offset_of(pkt);
    found.payload_offset_bytes[i] = 0;
    found.teids[i] = 0;
    if (pkt.len_bytes() < l3) return ctx.drop(batch, i, reason::kTooShort);
    const uint8_t* const ip = pkt.data() + l3;
    const l4::Place place = l4::find(ip, pkt.len_bytes() - l3);
    const auto& udp = header_at<net::Udp>(ip + place.offset_bytes);
    if (place.find != l4::Find::kWhole || place.proto != net::kProtoUdp ||
        place.len_bytes < net::kUdpBytes || udp.dst_port != gtpu::kPort || !is_local(ip, place)) {
      return pass_or_drop(ctx, batch, i, place.find);
    }
    const uint32_t udp_bytes = udp.length;
    if (udp_bytes < net::kUdpBytes || udp_bytes > place.len_bytes)
      return ctx.drop(batch, i, gtpu::kBadGtpu);
    const Message message = gtpu::read(behind<net::Gtpu>(udp), udp_bytes - net::kUdpBytes);
    if (message.fault != nullptr) return ctx.drop(batch, i, *message.fault);
    if (verifies_sum_ && !is_sum_good(ip, place, udp, udp_bytes))
      return ctx.drop(batch, i, l4::kBadL4Checksum);
    if (message.type != gtpu::kGpdu || message.unknown_extension != 0)
      return answer(ctx, batch, i, {l3, ip, place}, message);
    found.teids[i] = message.teid;
    found.payload_offset_bytes[i] =
        l3 + place.offset_bytes + net::kUdpBytes + message.payload_offset_bytes;
    found.payload_bytes[i] = message.payload_bytes;
    found.qfis[i] = message.qfi;
    found.ecns[i] = traffic_class_of(ip) & vxlan::kEcnMask;
  }

  void finish(Context& ctx, Batch& batch, uint32_t i, const RuleTables& tables,
              const Found& found) noexcept {
    Packet& pkt = *batch[i];
    const uint32_t teid = found.teids[i];
    const session::TunnelEntry tunnel = takes_any_ ? session::TunnelEntry{} : found.tunnels[i];
    if (tunnel.mark == kNone && (!takes_any_ || teid == 0)) [[unlikely]] {
      refuse_unknown(ctx, batch, i, teid);
      return;
    }
    uint8_t* const inner = pkt.data() + found.payload_offset_bytes[i];
    const uint32_t inner_bytes = found.payload_bytes[i];
    const bool is_v4 = inner_bytes >= net::kIpv4Bytes && net::ip_version(inner) == 4;
    if (!is_v4 && !(inner_bytes >= net::kIpv6Bytes && net::ip_version(inner) == 6)) [[unlikely]] {
      ctx.drop(batch, i, kInner);
      return;
    }
    // Modules behind gate `inner` assume IPv4, so IPv6 has its own gate.
    if (!is_v4) {
      if (n_connected_ <= kInner6Gate) return ctx.drop(batch, i, kInner6);
      ctx.gates[i] = kInner6Gate;
    }
    if (session::is_whole(tunnel.mark) && is_v4) [[likely]] {
      if (header_at<net::Ipv4>(inner).src.raw() != tunnel.ue_raw) [[unlikely]] {
        ctx.drop(batch, i, session::kUeSource);
        return;
      }
      pkt.set_mark(tunnel.mark);
    } else if (tunnel.mark != kNone) {
      const uint32_t slot = session::choose(tables, session::slot_of(tunnel.mark), inner,
                                            inner_bytes, true, found.qfis[i]);
      if (slot == kNone) [[unlikely]] {
        ctx.drop(batch, i, session::kNoPdr);
        return;
      }
      const SessionRule& rule = tables.rules[slot];
      if (!is_own_source(rule, inner, is_v4)) [[unlikely]] {
        ctx.drop(batch, i, session::kUeSource);
        return;
      }
      pkt.set_mark(session::mark_of(slot, rule));
    }
    unwrap_ip(pkt, found.payload_offset_bytes[i], inner_bytes, is_v4);
    pkt.meta().tunnel_id = teid;
    if (found.ecns[i] != 0 && !carry_ecn(pkt, found.ecns[i])) [[unlikely]]
      ctx.drop(batch, i, kEcnMismatch);
  }

  // A session without addresses accepts any source. A session with an address of the other IP
  // version only accepts none: 0 in a rule means no address.
  static bool is_own_source(const SessionRule& rule, const uint8_t* inner, bool is_v4) noexcept {
    if ((rule.ue_raw | rule.ue6_raw) == 0) return true;
    if (is_v4) return rule.ue_raw != 0 && header_at<net::Ipv4>(inner).src.raw() == rule.ue_raw;
    return rule.ue6_raw != 0 && header_at<net::Ipv6>(inner).src.high_raw() == rule.ue6_raw;
  }

  [[nodiscard]] bool has_local() const noexcept { return local_raw_ != 0 || local6_.has_value(); }
  [[nodiscard]] bool is_local(const uint8_t* ip, const l4::Place& place) const noexcept {
    if (!has_local()) return true;
    if (place.is_v6) return local6_ && net::Address6(header_at<net::Ipv6>(ip).dst) == *local6_;
    return local_raw_ != 0 && header_at<net::Ipv4>(ip).dst.raw() == local_raw_;
  }
  // IPv6 requires a UDP checksum (RFC 8200, 8.1).
  static bool is_sum_good(const uint8_t* ip, const l4::Place& place, const net::Udp& udp,
                          uint32_t udp_bytes) noexcept {
    if (udp.checksum == 0) return !place.is_v6;
    return fold16(l4::sum_bytes(bytes_of(udp), udp_bytes) +
                  l4::sum_pseudo_header(ip, place, udp_bytes)) == 0xffff;
  }

  void pass_or_drop(Context& ctx, Batch& batch, uint32_t i, l4::Find find) const noexcept {
    const bool is_broken = find != l4::Find::kBadVersion && l4::fault_of(find) != nullptr;
    if (is_broken) return ctx.drop(batch, i, *l4::fault_of(find));
    if (n_connected_ <= kOtherGate) return ctx.drop(batch, i, kNotGtpu);
    ctx.gates[i] = kOtherGate;
  }

  [[gnu::noinline]] void answer(Context& ctx, Batch& batch, uint32_t i, const Asker& asker,
                                const Message& message) noexcept {
    Packet& pkt = *batch[i];
    if (message.unknown_extension != 0) {
      send(ctx, asker, extensions_sent_,
           [&] { return gtpu::make_supported_extensions(ctx, pkt, asker); });
      return ctx.drop(batch, i, kExtension);
    }
    if (message.type == gtpu::kEchoRequest) {
      echo_requests_.add(1);
      if (!gtpu::may_answer(asker) || !gtpu::turn_into_echo_response(pkt, asker, message))
        return ctx.drop(batch, i, gtpu::kBadGtpu);
      ctx.gates[i] = kReplyGate;
      return;
    }
    if (message.type == gtpu::kErrorIndication) errors_received_.add(1);
    if (message.type == gtpu::kEndMarker) {
      const bool is_known =
          takes_any_ || commands_.table().rules().by_teid.find(message.teid).mark != kNone;
      if (!is_known) return ctx.drop(batch, i, kUnknownTeid);
      end_markers_.add(1);
      pkt.meta().tunnel_id = message.teid;
    }
    if (n_connected_ <= kSignallingGate) return ctx.drop(batch, i, kSignalling);
    ctx.gates[i] = kSignallingGate;
  }

  // TS 29.281, 7.3.1: sends an error indication, except for TEID 0.
  [[gnu::noinline]] void refuse_unknown(Context& ctx, Batch& batch, uint32_t i,
                                        uint32_t teid) noexcept {
    Packet& pkt = *batch[i];
    const uint32_t l3 = l3_offset_of(pkt);
    const uint8_t* const ip = pkt.data() + l3;
    const Asker asker{l3, ip, l4::find(ip, pkt.len_bytes() - l3)};
    if (teid != 0) {
      send(ctx, asker, errors_sent_,
           [&] { return gtpu::make_error_indication(ctx, pkt, asker, teid); });
    }
    ctx.drop(batch, i, kUnknownTeid);
  }

  template <class Make>
  void send(Context& ctx, const Asker& asker, Tally& sent, Make make) noexcept {
    budget_.refill(ctx.now_ns);
    if (!gtpu::may_answer(asker) || !budget_.take()) return held_back_.add(1);
    Packet* const reply = make();
    if (reply == nullptr) return held_back_.add(1);
    if (!ctx.emit(kReplyGate, reply)) {
      ctx.free(reply);
      return held_back_.add(1);
    }
    sent.add(1);
  }

  session::SessionCommands commands_;
  const uint32_t local_raw_;  // 0: none; with neither local nor local6, any address is ours
  const std::optional<net::Address6> local6_;
  const bool verifies_sum_;
  const bool takes_any_;
  icmp::ErrorBudget budget_;
  Tally gpdus_;
  Tally echo_requests_;
  Tally end_markers_;
  Tally errors_sent_;
  Tally errors_received_;
  Tally extensions_sent_;
  Tally held_back_;
  uint32_t n_connected_ = 1;
};

std::vector<ParamSpec> decap_params() {
  return {{.name = "local",
           .type = ParamType::kString,
           .default_value = "",
           .help = "IPv4 address of the tunnels' end here; packets to others leave by `other`; "
                   "without it and local6: any address"},
          {.name = "local6",
           .type = ParamType::kString,
           .default_value = "",
           .help = "likewise an IPv6 address"},
          {.name = "any_teid",
           .type = ParamType::kBool,
           .default_value = false,
           .help = "take packets of all tunnels, and look no session up; the endpoint is noted"},
          {.name = "verify_udp_checksum",
           .type = ParamType::kBool,
           .default_value = true,
           .help = "drop packets whose outer UDP checksum is wrong, or is missing over IPv6"},
          icmp::errors_per_s_spec(),
          icmp::burst_spec()};
}

const Register<GtpuDecap> kGtpuDecap{{
    .kind = "gtpu_decap",
    .state = StateOf::kShared,
    .help = "Takes users' packets out of GTP-U tunnels and finds their session's rule.",
    .params = joined(session::session_params(), decap_params()),
    .gate_names = {"inner", "reply", "other", "signalling", "inner6"},
    .drops = {&kUnknownTeid, &kExtension, &kInner, &kInner6, &kSignalling, &kNotGtpu,
              &gtpu::kBadGtpu, &gtpu::kGtpuVersion, &session::kNoPdr, &session::kUeSource,
              &kEcnMismatch, &l4::kBadL4Checksum, &reason::kTooShort, &reason::kBadHeaderLength,
              &reason::kBadTotalLength},
    .notes = "Echo responses, error indications for unknown endpoints and lists of supported "
             "extension headers leave by `reply`, the latter two at most errors_per_s; end "
             "markers and other messages by `signalling`; IPv6 packets out of tunnels by `inner6`, "
             "IPv4 ones by `inner`. Their headers are not checked: put an ipv4_check or ipv6_check "
             "in front of what counts or routes them. Fragments are not looked into: put a "
             "reassembly in front. " +
             std::string(session::kSessionNotes),
}};

}  // namespace
}  // namespace batchplane
