// SPDX-License-Identifier: BSD-3-Clause
// esp_decrypt.cc - decapsulates IP packets from IPsec tunnels: ESP in tunnel mode (RFC 4303) over
// IPv4 or IPv6, or over UDP (RFC 3948).
//
// in: 1   out: inner, other, inner6   state: the SAs, editable live; packet counts by outcome
// drops: unknown_spi, unknown_remote, not_esp, bad_esp, bad_icv, replayed, bad_padding, bad_inner,
// dummy_packet, inner_ipv6, ecn_mismatch, too_short, bad_header_length, bad_total_length
#include "core/module/register.h"
#include "modules/esp/esp_kernel.h"
#include "modules/headers/frame_reasons.h"
#include "modules/headers/l4_header.h"
#include "modules/headers/tunnel_ecn.h"

namespace batchplane {
namespace {

using esp::Sa;
using esp::Work;

enum EspGate : uint16_t { kEspInner, kEspOther, kEspInner6 };

// Position of ESP in packet i of a batch; 0 bytes if it is not ESP.
struct EspPlaces {
  uint16_t offset_bytes[exec::kMaxBatchPkts];  // from the start of the frame
  uint16_t esp_bytes[exec::kMaxBatchPkts];
  FlatTable<1>::Key spis[exec::kMaxBatchPkts];
  uint32_t sas[exec::kMaxBatchPkts];
};

// The same for one packet, and its kind if it is not ESP.
struct EspPlace {
  enum class Is : uint8_t { kEsp, kOther, kTooShort, kBadEsp };
  Is is = Is::kEsp;
  l4::Find find = l4::Find::kWhole;
  uint32_t offset_bytes = 0;
  uint32_t esp_bytes = 0;
};

class EspDecrypt final : public Module, public esp::EspKernel {
 public:
  explicit EspDecrypt(const Args& args)
      : EspKernel(esp::Direction::kIn, sas_, crypto_),
        udp_port_(static_cast<uint16_t>(args.u32("udp_port"))),
        sas_(args, {.direction = esp::Direction::kIn,
                    .replay_window_pkts = (args.u32("replay_window_pkts") + 63) / 64 * 64,
                    .repeats_packets = args.env().repeats_packets}) {}

  uint32_t link(uint32_t connected) override {
    n_connected_ = connected;
    return kEspInner6 + 1;
  }

  void classify(Context& ctx, Batch& batch) noexcept {
    run(ctx, batch, sas_.table(), [](const Sa&, Work&) { return false; });
  }

  Kernel* kernel() override { return checked(); }
  // Derives the high half of the sequence number from the highest one received so far; apply_over()
  // checks it.
  uint32_t write_input(Packet& pkt, std::span<uint8_t> to) noexcept override {
    const esp::SaTable& table = sas_.table();
    const EspPlace place = find_esp(pkt);
    if (place.is != EspPlace::Is::kEsp) return 0;
    const uint8_t* const from = pkt.data() + place.offset_bytes;
    const auto& header = header_at<net::Esp>(from);
    const uint32_t found = table.index.find({header.spi});
    if (found == FlatTable<1>::kMissing) return 0;
    const Sa& sa = table.sas[found];
    if (sa.kernel_index == esp::kNoKernel || !has_good_length(sa, place.esp_bytes)) return 0;
    const auto n_bytes = static_cast<uint32_t>(sizeof(esp::KernelHead)) + place.esp_bytes;
    if (n_bytes > to.size()) return kNoRoom;
    const esp::SaState& state = *sa.state;
    const uint64_t sequence =
        sa.has_esn ? state.window.sequence_of(header.sequence, state.sequence.value()) : 0;
    const esp::KernelHead head{sa.kernel_index, n_bytes - esp::kKernelOwnBytes,
                               static_cast<uint32_t>(sequence >> 32), 0};
    std::memcpy(to.data(), &head, sizeof head);
    std::memcpy(&to[sizeof head], from, place.esp_bytes);
    return n_bytes;
  }
  bool apply_over(KernelTable* table, Context& ctx, Batch& batch, const uint8_t* results,
                  const Rewritten* rewritten) noexcept override {
    run(ctx, batch, static_cast<esp::SaTable&>(*table), [&](const Sa& sa, Work& work) {
      const uint32_t i = work.index;
      const esp::Verdict verdict = verdict_of(results, i);
      if (verdict != esp::Verdict::kRight && verdict != esp::Verdict::kWrongIcv) return false;
      if (!is_of(sa, work, rewritten[i].sent)) return false;
      std::memcpy(work.esp + esp::kKernelEspBytes,
                  rewritten[i].returned + sizeof(esp::KernelHead) + esp::kKernelEspBytes,
                  work.body_bytes);
      esp::Crypto::conclude(work, verdict == esp::Verdict::kRight);
      return true;
    });
    return true;
  }

  Value command(const std::string& verb, const Value& args) override {
    return sas_.run(*this, verb, args);
  }
  [[nodiscard]] Value show() const override { return sas_.show(); }
  [[nodiscard]] Dict saved_params() const override { return sas_.saved_params(); }
  void inherit(Module& old) override { sas_.inherit(static_cast<EspDecrypt&>(old).sas_); }

 private:
  // `take` copies in the result for a packet that a device has decrypted, and returns whether it
  // did. Packets are judged in order in either case.
  template <class Take>
  void run(Context& ctx, Batch& batch, const esp::SaTable& table, Take take) noexcept {
    const uint32_t n = batch.size_pkts;
    if (n == 0) return;
    EspPlaces places;
    for (uint32_t i = 0; i < n; ++i) read(ctx, batch, i, places);
    table.index.find_bulk(places.spis, n, places.sas);
    for (uint32_t i = 0; i < n; ++i) {
      if (places.sas[i] != FlatTable<1>::kMissing) {
        __builtin_prefetch(table.sas[places.sas[i]].state.get(), 1);
      }
    }
    Work works[exec::kMaxBatchPkts];  // taken ones are stored from the end
    const Work* in_order[exec::kMaxBatchPkts];
    uint32_t n_works = 0;
    uint32_t n_taken = 0;
    for (uint32_t i = 0; i < n; ++i) {
      if (places.esp_bytes[i] == 0) continue;
      Work& work = works[n_works];
      const DropReason* const reason = prepare(*batch[i], i, table, places, work);
      if (reason != nullptr) [[unlikely]] {
        ctx.drop(batch, i, *reason);
        continue;
      }
      Work* judged = &work;
      if (!take(table.sas[places.sas[i]], work)) {
        ++n_works;
      } else if (judged = &works[exec::kMaxBatchPkts - ++n_taken]; judged != &work) {
        *judged = work;
      }
      in_order[n_works + n_taken - 1] = judged;
    }
    crypto_.decrypt(works, n_works);
    for (uint32_t w = 0; w < n_works + n_taken; ++w) {
      const uint32_t i = in_order[w]->index;
      const DropReason* const reason =
          finish(ctx, *batch[i], table.sas[places.sas[i]], *in_order[w]);
      if (reason != nullptr) [[unlikely]]
        ctx.drop(batch, i, *reason);
    }
  }

  [[nodiscard]] EspPlace find_esp(Packet& pkt) const noexcept {
    using Is = EspPlace::Is;
    const uint32_t l3 = l3_offset_of(pkt);
    if (pkt.len_bytes() < l3) [[unlikely]]
      return {.is = Is::kTooShort};
    const uint8_t* const ip = pkt.data() + l3;
    l4::Place place = l4::find_plain(ip, pkt.len_bytes() - l3);
    if (place.proto == 0) [[unlikely]]
      place = l4::find(ip, pkt.len_bytes() - l3);
    const EspPlace other{.is = Is::kOther, .find = place.find};
    uint32_t offset_bytes = l3 + place.offset_bytes;
    uint32_t esp_bytes = place.len_bytes;
    const bool is_udp = place.proto == net::kProtoUdp && udp_port_ != 0;
    if (place.find != l4::Find::kWhole || (place.proto != net::kProtoEsp && !is_udp)) [[unlikely]]
      return other;
    if (is_udp) {
      if (esp_bytes < net::kUdpBytes) return other;
      const auto& udp = header_in<net::Udp>(pkt, offset_bytes);
      const uint32_t udp_bytes = udp.length;
      const bool is_ours = udp.dst_port == udp_port_ && udp_bytes <= esp_bytes &&
                           udp_bytes >= net::kUdpBytes + esp::kEspHeaderBytes &&
                           behind<net::Esp>(udp).spi != 0;
      if (!is_ours) return other;
      offset_bytes += net::kUdpBytes;
      esp_bytes = udp_bytes - net::kUdpBytes;
    }
    if (esp_bytes < esp::kEspHeaderBytes) [[unlikely]]
      return {.is = Is::kBadEsp};
    return {.offset_bytes = offset_bytes, .esp_bytes = esp_bytes};
  }

  void read(Context& ctx, Batch& batch, uint32_t i, EspPlaces& places) const noexcept {
    ctx.gates[i] = kEspInner;
    places.esp_bytes[i] = 0;
    places.spis[i] = {0};  // no SA has SPI 0
    const EspPlace place = find_esp(*batch[i]);
    switch (place.is) {
      case EspPlace::Is::kTooShort:
        return ctx.drop(batch, i, reason::kTooShort);
      case EspPlace::Is::kBadEsp:
        return ctx.drop(batch, i, esp::kBadEsp);
      case EspPlace::Is::kOther:
        return pass_or_drop(ctx, batch, i, place.find);
      case EspPlace::Is::kEsp:
        places.offset_bytes[i] = static_cast<uint16_t>(place.offset_bytes);
        places.esp_bytes[i] = static_cast<uint16_t>(place.esp_bytes);
        places.spis[i] = {header_in<net::Esp>(*batch[i], place.offset_bytes).spi};
    }
  }

  void pass_or_drop(Context& ctx, Batch& batch, uint32_t i, l4::Find find) const noexcept {
    const bool is_broken = find != l4::Find::kBadVersion && l4::fault_of(find) != nullptr;
    if (is_broken) return ctx.drop(batch, i, *l4::fault_of(find));
    if (n_connected_ <= kEspOther) return ctx.drop(batch, i, esp::kNotEsp);
    ctx.gates[i] = kEspOther;
  }

  // Checks before decryption; returns the drop reason, or null.
  static const DropReason* prepare(Packet& pkt, uint32_t i, const esp::SaTable& table,
                                   const EspPlaces& places, Work& work) noexcept {
    if (places.sas[i] == FlatTable<1>::kMissing) return &esp::kUnknownSpi;
    const Sa& sa = table.sas[places.sas[i]];
    if (!is_remote(sa, pkt.data() + l3_offset_of(pkt))) return &frame::kUnknownRemote;
    if (!has_good_length(sa, places.esp_bytes[i])) return &esp::kBadEsp;
    uint8_t* const header = pkt.data() + places.offset_bytes[i];
    const uint32_t low = header_at<net::Esp>(header).sequence;
    work.sequence = sa.has_esn ? sa.state->window.sequence_of(low) : low;
    if (!sa.state->window.is_fresh(work.sequence)) return &esp::kReplayed;
    work.keys = sa.keys.get();
    work.esp = header;
    work.body_bytes = places.esp_bytes[i] - own_bytes_of(sa);
    work.index = i;
    return nullptr;
  }
  static uint32_t own_bytes_of(const Sa& sa) noexcept {
    return esp::kEspHeaderBytes + sa.iv_bytes + sa.icv_bytes;
  }
  static bool has_good_length(const Sa& sa, uint32_t esp_bytes) noexcept {
    const uint32_t own_bytes = own_bytes_of(sa);
    return esp_bytes >= own_bytes + sizeof(net::EspTrailer) &&
           ((esp_bytes - own_bytes) & sa.block_mask) == 0;
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
    // Checked again, since the same packet may be in the batch twice.
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
    // Modules behind `inner` assume IPv4.
    if (!is_v4) {
      if (n_connected_ <= kEspInner6) return &esp::kNoInner6;
      ctx.gates[work.index] = kEspInner6;
    }
    const uint32_t told_bytes = told_bytes_of(inner);  // further bytes hide the length (2.7)
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
