// SPDX-License-Identifier: BSD-3-Clause
// esp_decrypt.cc - takes IP packets out of IPsec tunnels: ESP in tunnel mode (RFC 4303) over IPv4 or
// IPv6, or behind UDP (RFC 3948).
//
// in: 1   out: inner, other, inner6   state: the SAs, editable live; what came of each
// drops: unknown_spi, unknown_remote, not_esp, bad_esp, bad_icv, replayed, bad_padding, bad_inner,
// dummy_packet, inner_ipv6, ecn_mismatch, too_short, bad_header_length,
// bad_total_length
#include "core/module/register.h"
#include "modules/esp/esp_commands.h"
#include "modules/headers/frame_reasons.h"
#include "modules/headers/l4_header.h"
#include "modules/headers/tunnel_ecn.h"

namespace batchplane {
namespace {

using esp::Sa;
using esp::Work;

enum EspGate : uint16_t { kEspInner, kEspOther, kEspInner6 };

// Where ESP is in packet i of a batch; 0 bytes where it is none.
struct EspPlaces {
  uint16_t offset_bytes[exec::kMaxBatchPkts];  // from the frame's start
  uint16_t esp_bytes[exec::kMaxBatchPkts];
  FlatTable<1>::Key spis[exec::kMaxBatchPkts];
  uint32_t sas[exec::kMaxBatchPkts];
};

class EspDecrypt final : public Module {
 public:
  explicit EspDecrypt(const Args& args)
      : udp_port_(static_cast<uint16_t>(args.u32("udp_port"))),
        sas_(args, {.direction = esp::Direction::kIn,
                    .replay_window_pkts = (args.u32("replay_window_pkts") + 63) / 64 * 64,
                    .repeats_packets = args.env().repeats_packets}) {}

  uint32_t link(uint32_t connected) override {
    n_connected_ = connected;
    return kEspInner6 + 1;
  }

  void classify(Context& ctx, Batch& batch) noexcept {
    const esp::SaTable& table = sas_.table();
    const uint32_t n = batch.size_pkts;
    EspPlaces places;
    for (uint32_t i = 0; i < n; ++i) read(ctx, batch, i, places);
    table.index.find_bulk(places.spis, n, places.sas);
    for (uint32_t i = 0; i < n; ++i) {
      if (places.sas[i] != FlatTable<1>::kMissing) {
        __builtin_prefetch(table.sas[places.sas[i]].state.get(), 1);
      }
    }
    Work works[exec::kMaxBatchPkts];
    uint32_t n_works = 0;
    for (uint32_t i = 0; i < n; ++i) {
      if (places.esp_bytes[i] == 0) continue;
      Work& work = works[n_works];
      const DropReason* const reason = prepare(*batch[i], i, table, places, work);
      if (reason != nullptr) [[unlikely]] {
        ctx.drop(batch, i, *reason);
        continue;
      }
      ++n_works;
    }
    crypto_.decrypt(works, n_works);
    for (uint32_t w = 0; w < n_works; ++w) {
      const uint32_t i = works[w].index;
      const DropReason* const reason = finish(ctx, *batch[i], table.sas[places.sas[i]], works[w]);
      if (reason != nullptr) [[unlikely]]
        ctx.drop(batch, i, *reason);
    }
  }

  Value command(const std::string& verb, const Value& args) override {
    return sas_.run(*this, verb, args);
  }
  [[nodiscard]] Value show() const override { return sas_.show(); }
  [[nodiscard]] Dict saved_params() const override { return sas_.saved_params(); }
  void inherit(Module& old) override { sas_.inherit(static_cast<EspDecrypt&>(old).sas_); }

 private:
  void read(Context& ctx, Batch& batch, uint32_t i, EspPlaces& places) const noexcept {
    Packet& pkt = *batch[i];
    const uint32_t l3 = l3_offset_of(pkt);
    ctx.gates[i] = kEspInner;
    places.esp_bytes[i] = 0;
    places.spis[i] = {0};  // no SA has it
    if (pkt.len_bytes() < l3) [[unlikely]]
      return ctx.drop(batch, i, reason::kTooShort);
    const uint8_t* const ip = pkt.data() + l3;
    l4::Place place = l4::find_plain(ip, pkt.len_bytes() - l3);
    if (place.proto == 0) [[unlikely]]
      place = l4::find(ip, pkt.len_bytes() - l3);
    uint32_t offset_bytes = l3 + place.offset_bytes;
    uint32_t esp_bytes = place.len_bytes;
    const bool is_udp = place.proto == net::kProtoUdp && udp_port_ != 0;
    if (place.find != l4::Find::kWhole || (place.proto != net::kProtoEsp && !is_udp)) [[unlikely]]
      return pass_or_drop(ctx, batch, i, place.find);
    if (is_udp) {
      if (esp_bytes < net::kUdpBytes) return pass_or_drop(ctx, batch, i, place.find);
      const auto& udp = header_in<net::Udp>(pkt, offset_bytes);
      const uint32_t udp_bytes = udp.length;
      const bool is_ours = udp.dst_port == udp_port_ && udp_bytes <= esp_bytes &&
                           udp_bytes >= net::kUdpBytes + esp::kEspHeaderBytes &&
                           behind<net::Esp>(udp).spi != 0;
      if (!is_ours) return pass_or_drop(ctx, batch, i, place.find);
      offset_bytes += net::kUdpBytes;
      esp_bytes = udp_bytes - net::kUdpBytes;
    }
    if (esp_bytes < esp::kEspHeaderBytes) [[unlikely]]
      return ctx.drop(batch, i, esp::kBadEsp);
    places.offset_bytes[i] = static_cast<uint16_t>(offset_bytes);
    places.esp_bytes[i] = static_cast<uint16_t>(esp_bytes);
    places.spis[i] = {header_in<net::Esp>(pkt, offset_bytes).spi};
  }

  void pass_or_drop(Context& ctx, Batch& batch, uint32_t i, l4::Find find) const noexcept {
    const bool is_broken = find != l4::Find::kBadVersion && l4::fault_of(find) != nullptr;
    if (is_broken) return ctx.drop(batch, i, *l4::fault_of(find));
    if (n_connected_ <= kEspOther) return ctx.drop(batch, i, esp::kNotEsp);
    ctx.gates[i] = kEspOther;
  }

  // What is known before anything is decrypted; the reason when the packet is refused.
  static const DropReason* prepare(Packet& pkt, uint32_t i, const esp::SaTable& table,
                                   const EspPlaces& places, Work& work) noexcept {
    if (places.sas[i] == FlatTable<1>::kMissing) return &esp::kUnknownSpi;
    const Sa& sa = table.sas[places.sas[i]];
    if (!is_remote(sa, pkt.data() + l3_offset_of(pkt))) return &frame::kUnknownRemote;
    const uint32_t own_bytes = esp::kEspHeaderBytes + sa.iv_bytes + sa.icv_bytes;
    const uint32_t esp_bytes = places.esp_bytes[i];
    const uint32_t body_bytes = esp_bytes - own_bytes;
    if (esp_bytes < own_bytes + sizeof(net::EspTrailer) || (body_bytes & sa.block_mask) != 0) {
      return &esp::kBadEsp;
    }
    uint8_t* const header = pkt.data() + places.offset_bytes[i];
    const uint32_t low = header_at<net::Esp>(header).sequence;
    work.sequence = sa.has_esn ? sa.state->window.sequence_of(low) : low;
    if (!sa.state->window.is_fresh(work.sequence)) return &esp::kReplayed;
    work.keys = sa.keys.get();
    work.esp = header;
    work.body_bytes = body_bytes;
    work.index = i;
    return nullptr;
  }
  static bool is_remote(const Sa& sa, const uint8_t* ip) noexcept {
    switch (sa.remote.version) {
      case esp::Endpoint::Version::kIpv4:
        return net::ip_version(ip) == 4 && header_at<net::Ipv4>(ip).src == sa.remote.v4;
      case esp::Endpoint::Version::kIpv6:
        return net::ip_version(ip) == 6 &&
               net::Address6(header_at<net::Ipv6>(ip).src) == sa.remote.v6;
      default:
        return true;
    }
  }

  const DropReason* finish(Context& ctx, Packet& pkt, const Sa& sa,
                           const Work& work) const noexcept {
    if (!esp::Crypto::is_genuine(work)) return &esp::kBadIcv;
    esp::SaState& state = *sa.state;
    // Once more: the same packet may be in the batch twice.
    if (!state.window.is_fresh(work.sequence)) return &esp::kReplayed;
    state.window.mark(work.sequence);
    state.sequence.set(state.window.highest());
    const uint8_t* const inner = work.esp + esp::kEspHeaderBytes + sa.iv_bytes;
    const uint8_t* const end = inner + work.body_bytes;
    const auto& trailer = header_at<net::EspTrailer>(end - sizeof(net::EspTrailer));
    const uint32_t cut_bytes = trailer.padding_bytes + static_cast<uint32_t>(sizeof trailer);
    if (cut_bytes > work.body_bytes || !is_padding(end - cut_bytes, trailer.padding_bytes)) {
      return &esp::kBadPadding;
    }
    if (trailer.next_header == net::kNextNone) return &esp::kDummy;
    const uint32_t inner_bytes = work.body_bytes - cut_bytes;
    const bool is_v4 = trailer.next_header == net::kProtoIpv4;
    if (!is_whole(inner, inner_bytes, is_v4) ||
        (!is_v4 && trailer.next_header != net::kProtoIpv6)) {
      return &esp::kBadInner;
    }
    // The modules behind `inner` take any packet for IPv4.
    if (!is_v4) {
      if (n_connected_ <= kEspInner6) return &esp::kNoInner6;
      ctx.gates[work.index] = kEspInner6;
    }
    const uint32_t told_bytes = told_bytes_of(inner);  // what is behind hides the length (2.7)
    state.pkts.add(1);
    state.bytes.add(told_bytes);
    const uint32_t ecn = traffic_class_of(pkt.data() + l3_offset_of(pkt)) & vxlan::kEcnMask;
    unwrap_ip(pkt, static_cast<uint32_t>(inner - pkt.data()), told_bytes, is_v4);
    PacketMeta& meta = pkt.meta();
    meta.tunnel_id = sa.id;
    if (sa.vrf >= 0) meta.vrf = static_cast<uint16_t>(sa.vrf);
    return ecn == 0 || carry_ecn(pkt, ecn) ? nullptr : &kEcnMismatch;
  }

  static bool is_padding(const uint8_t* at, uint32_t n_bytes) noexcept {
    uint32_t differs = 0;
    for (uint32_t i = 0; i < n_bytes; ++i) differs |= at[i] ^ (i + 1);
    return differs == 0;
  }
  static bool is_whole(const uint8_t* ip, uint32_t room_bytes, bool is_v4) noexcept {
    const uint32_t least_bytes = is_v4 ? net::kIpv4Bytes : net::kIpv6Bytes;
    return room_bytes >= least_bytes && net::ip_version(ip) == (is_v4 ? 4 : 6) &&
           told_bytes_of(ip) >= least_bytes && told_bytes_of(ip) <= room_bytes;
  }

  const uint16_t udp_port_;
  uint32_t n_connected_ = 1;
  esp::Crypto crypto_;
  esp::SaCommands sas_;
};

std::vector<ParamSpec> decrypt_params() {
  const std::vector<ParamSpec> own = {
      {.name = "replay_window_pkts",
       .type = ParamType::kInt,
       .unit = "pkts",
       .default_value = 1024,
       .help = "how far behind the highest sequence number packets may come; 0 takes any, also "
               "twice. Rounded up to a multiple of 64; an SA keeps it as long as its key",
       .min = 0,
       .max = 65536},
      {.name = "udp_port",
       .type = ParamType::kInt,
       .default_value = net::Esp::kUdpPort,
       .help = "UDP port behind which ESP is looked for; 0: none",
       .min = 0,
       .max = 65535}};
  return joined(esp::SaCommands::params(
                    "[{id, spi, suite}], at most 65536; also esn: true (64-bit sequence numbers), "
                    "remote, the only address whose packets are taken, and vrf, noted on what "
                    "comes out"),
                own);
}

const Register<EspDecrypt> kEspDecrypt{{
    .kind = "esp_decrypt",
    .state = StateOf::kOneOwner,
    .help = "Takes IP packets out of IPsec tunnels (ESP, tunnel mode).",
    .params = decrypt_params(),
    .gate_names = {"inner", "other", "inner6"},
    .drops = {&esp::kUnknownSpi, &frame::kUnknownRemote, &esp::kNotEsp, &esp::kBadEsp,
              &esp::kBadIcv, &esp::kReplayed, &esp::kBadPadding, &esp::kBadInner, &esp::kDummy,
              &esp::kNoInner6, &kEcnMismatch, &reason::kTooShort, &reason::kBadHeaderLength,
              &reason::kBadTotalLength},
    .notes = "Notes the SA's id as the packet's tunnel: whether an SA may send from an address is "
             "for a module behind to judge. Put `reassembly` in front where ESP may come in "
             "fragments. Packets dropped as bad_icv are changed already. Suites, keys and live "
             "commands: see esp_encrypt.",
    .can_offload = true,
}};

}  // namespace
}  // namespace batchplane
