// SPDX-License-Identifier: BSD-3-Clause
// esp_encrypt.cc - encapsulates IP packets in IPsec tunnels: ESP in tunnel mode (RFC 4303) over
// IPv4 or IPv6, or over UDP (RFC 3948).
//
// in: 1   out: 1   drops: unknown_sa, not_ip, sequence_exhausted, no_headroom, no_tailroom,
// frame_too_long, too_short, bad_total_length, crypto_failed
// state: the SAs, editable live; their sequence numbers
#include "core/module/register.h"
#include "modules/esp/esp_kernel.h"
#include "modules/headers/frame_reasons.h"
#include "modules/headers/ipv4_header.h"
#include "modules/headers/l4_header.h"

namespace batchplane {
namespace {

using esp::Sa;
using esp::Work;

enum class SaBy : uint8_t { kTunnelId, kVrf, kMark };
enum class OuterDf : uint8_t { kCopy, kSet, kClear };

SaBy sa_by_of(const std::string& name) {
  if (name == "vrf") return SaBy::kVrf;
  return name == "mark" ? SaBy::kMark : SaBy::kTunnelId;
}
OuterDf df_of(const std::string& name) {
  if (name == "set") return OuterDf::kSet;
  return name == "clear" ? OuterDf::kClear : OuterDf::kCopy;
}

// Sizes and offsets of an encapsulation.
struct Fit {
  uint32_t l3;
  uint32_t ip_bytes;
  uint32_t padding_bytes;
  uint32_t body_bytes;
  uint32_t front_bytes;
  uint32_t len_bytes;
};

class EspEncrypt final : public Module, public esp::EspKernel {
 public:
  explicit EspEncrypt(const Args& args)
      : EspKernel(esp::Direction::kOut, sas_, crypto_),
        by_(sa_by_of(args.string("by"))),
        df_(df_of(args.string("df"))),
        dscp_(static_cast<int32_t>(args.integer("dscp"))),
        copies_ecn_(args.flag("copy_ecn")),
        sas_(args,
             {.direction = esp::Direction::kOut, .ttl = static_cast<uint8_t>(args.u32("ttl"))}) {}

  void process(Context& ctx, Batch& batch) noexcept {
    run(ctx, batch, sas_.table(), [](const Sa&, const Work&) { return false; });
  }

  Kernel* kernel() override { return checked(); }
  [[nodiscard]] bool guesses() const override { return true; }
  void guess_anew() noexcept override {
    static std::atomic<uint64_t> last_run{
        0};  // modules before and after an apply have the same SAs
    guess_run_.store(last_run.fetch_add(1, std::memory_order_relaxed) + 1,
                     std::memory_order_relaxed);
  }
  uint32_t write_input(Packet& pkt, std::span<uint8_t> to) noexcept override {
    const esp::SaTable& table = sas_.table();
    const uint32_t found = table.index.find({key_of(pkt)});
    if (found == FlatTable<1>::kMissing) return 0;
    const Sa& sa = table.sas[found];
    Fit fit;
    if (sa.kernel_index == esp::kNoKernel || measure(pkt, sa, fit) != nullptr) return 0;
    const uint32_t n_bytes = esp::kKernelOwnBytes + fit.body_bytes;
    if (n_bytes > to.size()) return kNoRoom;
    const uint64_t sequence =
        sa.state->guess(guess_run_.load(std::memory_order_relaxed), sa.last_sequence);
    if (sequence == 0) return 0;
    const esp::KernelHead head{sa.kernel_index, fit.body_bytes,
                               static_cast<uint32_t>(sequence >> 32), 0};
    std::memcpy(to.data(), &head, sizeof head);
    uint8_t* const esp_header = &to[sizeof head];
    header_at<net::Esp>(esp_header) = {.spi = sa.spi, .sequence = static_cast<uint32_t>(sequence)};
    net::store64(esp_header + esp::kEspHeaderBytes, sequence);
    uint8_t* const body = esp_header + esp::kKernelEspBytes;
    const uint8_t* const inner = pkt.data() + fit.l3;
    std::memcpy(body, inner, fit.ip_bytes);
    write_trailer(body + fit.ip_bytes, fit.padding_bytes, net::ip_version(inner));
    return n_bytes;
  }
  // Sequence numbers are assigned here, in order. If the guess sent to the device was wrong, its
  // result is discarded, so no two packets sent share a nonce.
  bool apply_over(KernelTable* table, Context& ctx, Batch& batch, const uint8_t* results,
                  const Rewritten* rewritten) noexcept override {
    bool is_right = true;
    run(ctx, batch, static_cast<esp::SaTable&>(*table), [&](const Sa& sa, const Work& work) {
      const uint32_t i = work.index;
      const bool is_of_packet = is_of(sa, work, rewritten[i].sent);
      is_right = is_right && (is_of_packet || sa.kernel_index == esp::kNoKernel);
      if (!is_of_packet || verdict_of(results, i) != esp::Verdict::kRight) return false;
      net::store64(work.esp + esp::kEspHeaderBytes, work.sequence);
      std::memcpy(work.esp + esp::kKernelEspBytes,
                  rewritten[i].returned + sizeof(esp::KernelHead) + esp::kKernelEspBytes,
                  work.body_bytes + esp::kMaxIcvBytes);
      return true;
    });
    return is_right;
  }

  Value command(const std::string& verb, const Value& args) override {
    return sas_.run(*this, verb, args);
  }
  [[nodiscard]] Value show() const override { return sas_.show(); }
  [[nodiscard]] Dict saved_params() const override { return sas_.saved_params(); }
  void inherit(Module& old) override { sas_.inherit(static_cast<EspEncrypt&>(old).sas_); }

 private:
  // `take` copies in the result for a packet that a device has encrypted, and returns whether it
  // did.
  template <class Take>
  void run(Context& ctx, Batch& batch, const esp::SaTable& table, Take take) noexcept {
    const uint32_t n = batch.size_pkts;
    if (n == 0) return;
    find_sas(table, batch);
    Work works[exec::kMaxBatchPkts];
    uint32_t n_works = 0;
    for (uint32_t i = 0; i < n; ++i) {
      if (found_[i] == FlatTable<1>::kMissing) [[unlikely]] {
        ctx.drop(batch, i, esp::kUnknownSa);
        continue;
      }
      const Sa& sa = table.sas[found_[i]];
      Work& work = works[n_works];
      if (const DropReason* reason = wrap(*batch[i], sa, work); reason != nullptr) [[unlikely]] {
        ctx.drop(batch, i, *reason);
        continue;
      }
      work.index = i;
      if (take(sa, work)) {
        write_udp6_sum(*batch[i], sa);
      } else {
        ++n_works;
      }
    }
    crypto_.encrypt(works, n_works);
    for (uint32_t w = 0; w < n_works; ++w) finish(ctx, batch, table, works[w]);
  }

  void find_sas(const esp::SaTable& table, Batch& batch) noexcept {
    FlatTable<1>::Key keys[exec::kMaxBatchPkts];
    const uint32_t n = batch.size_pkts;
    for (uint32_t i = 0; i < n; ++i) keys[i] = {key_of(*batch[i])};
    table.index.find_bulk(keys, n, found_);
    for (uint32_t i = 0; i < n; ++i) {
      if (found_[i] == FlatTable<1>::kMissing) continue;
      __builtin_prefetch(table.sas[found_[i]].state.get(), 1);
      __builtin_prefetch(table.sas[found_[i]].outer);
    }
  }
  [[nodiscard]] uint64_t key_of(Packet& pkt) const noexcept {
    switch (by_) {
      case SaBy::kTunnelId:
        return pkt.meta().tunnel_id;
      case SaBy::kVrf:
        return pkt.meta().vrf;
      default:
        return pkt.mark();
    }
  }

  // Returns the drop reason if the packet cannot be encapsulated.
  static const DropReason* measure(Packet& pkt, const Sa& sa, Fit& fit) noexcept {
    const uint32_t l3 = l3_offset_of(pkt);
    const uint32_t room_bytes = pkt.len_bytes() - l3;
    if (pkt.len_bytes() < l3 + net::kIpv4Bytes) [[unlikely]]
      return &reason::kTooShort;
    const uint8_t* const inner = pkt.data() + l3;
    const uint32_t version = net::ip_version(inner);
    if (version != 4 && version != 6) [[unlikely]]
      return &esp::kNotIp;
    if (version == 6 && room_bytes < net::kIpv6Bytes) [[unlikely]]
      return &reason::kTooShort;
    const uint32_t ip_bytes = told_bytes_of(inner);
    if (ip_bytes > room_bytes || ip_bytes < net::kIpv4Bytes) [[unlikely]]
      return &reason::kBadTotalLength;
    const uint32_t padding_bytes =
        -(ip_bytes + static_cast<uint32_t>(sizeof(net::EspTrailer))) & sa.block_mask;
    const uint32_t body_bytes =
        ip_bytes + padding_bytes + static_cast<uint32_t>(sizeof(net::EspTrailer));
    const uint32_t front_bytes = sa.outer_bytes + esp::kEspHeaderBytes + sa.iv_bytes;
    const uint32_t len_bytes = front_bytes + body_bytes + sa.icv_bytes;
    // The new frame has exactly this length: bytes behind the IP packet are padding and not kept.
    if (len_bytes > kMaxFrameBytes) [[unlikely]]
      return &frame::kFrameTooLong;
    if (pkt.headroom_bytes() + l3 < front_bytes) [[unlikely]]
      return &frame::kNoHeadroom;
    const uint32_t tail_bytes = body_bytes - ip_bytes + sa.icv_bytes;
    if (pkt.tailroom_bytes() + (room_bytes - ip_bytes) < tail_bytes) [[unlikely]]
      return &esp::kNoTailroom;
    fit = {l3, ip_bytes, padding_bytes, body_bytes, front_bytes, len_bytes};
    return nullptr;
  }

  // Adds outer headers, ESP header, padding and trailer; returns the drop reason if it cannot.
  const DropReason* wrap(Packet& pkt, const Sa& sa, Work& work) noexcept {
    Fit fit;
    if (const DropReason* reason = measure(pkt, sa, fit); reason != nullptr) [[unlikely]]
      return reason;
    esp::SaState& state = *sa.state;
    const uint64_t before = state.sequence.value();
    if (before >= sa.last_sequence) [[unlikely]]
      return &esp::kExhausted;
    state.sequence.set(before + 1);
    state.pkts.add(1);
    state.bytes.add(fit.ip_bytes);

    const uint8_t* const inner = pkt.data() + fit.l3;
    const uint32_t version = net::ip_version(inner);
    const uint32_t inner_class = traffic_class_of(inner);
    const bool is_df =
        version == 4 && (header_at<net::Ipv4>(inner).fragment & net::Ipv4::kDontFragment) != 0;
    pkt.pull_front(fit.l3);
    pkt.push_front(fit.front_bytes);
    pkt.set_len_bytes(fit.len_bytes);
    uint8_t* const data = pkt.data();
    copy_outer(data, sa);
    write_outer(data, sa, fit.len_bytes, inner_class, is_df);
    uint8_t* const esp_header = data + sa.outer_bytes;
    header_at<net::Esp>(esp_header) = {.spi = sa.spi,
                                       .sequence = static_cast<uint32_t>(before + 1)};
    write_trailer(data + fit.front_bytes + fit.ip_bytes, fit.padding_bytes, version);
    work.keys = sa.keys.get();
    work.esp = esp_header;
    work.body_bytes = fit.body_bytes;
    work.sequence = before + 1;
    PacketMeta& meta = pkt.meta();
    meta.l3_offset_bytes = net::kEthBytes;
    meta.l4_offset_bytes =
        static_cast<uint8_t>(net::kEthBytes + (sa.is_outer6() ? net::kIpv6Bytes : net::kIpv4Bytes));
    if (sa.vrf >= 0) meta.vrf = static_cast<uint16_t>(sa.vrf);
    return nullptr;
  }

  // Two overlapping copies of fixed size, so that no byte behind the headers is overwritten.
  static void copy_outer(uint8_t* data, const Sa& sa) noexcept {
    constexpr uint32_t kHalfBytes = 32;
    static_assert(2 * kHalfBytes >= esp::kMaxOuterBytes);
    const uint32_t second = sa.outer_bytes - kHalfBytes;
    std::memcpy(data, sa.outer, kHalfBytes);
    std::memcpy(data + second, sa.outer + second, kHalfBytes);
  }

  // The padding bytes are 1, 2, 3, ... (RFC 4303, 2.4).
  static void write_trailer(uint8_t* at, uint32_t padding_bytes, uint32_t version) noexcept {
    for (uint32_t i = 0; i < padding_bytes; ++i) at[i] = static_cast<uint8_t>(i + 1);
    header_at<net::EspTrailer>(at + padding_bytes) = {
        .padding_bytes = static_cast<uint8_t>(padding_bytes),
        .next_header = version == 4 ? net::kProtoIpv4 : net::kProtoIpv6};
  }

  void write_outer(uint8_t* data, const Sa& sa, uint32_t len_bytes, uint32_t inner_class,
                   bool is_inner_df) noexcept {
    const uint32_t ip_bytes = len_bytes - net::kEthBytes;
    const uint32_t dscp_bits = dscp_ < 0 ? inner_class & 0xfcU : static_cast<uint32_t>(dscp_) << 2;
    const uint32_t outer_class = dscp_bits | (copies_ecn_ ? inner_class & 3U : 0U);
    uint32_t header_bytes = net::kIpv4Bytes;
    if (sa.is_outer6()) {
      header_bytes = net::kIpv6Bytes;
      auto& ip = header_at<net::Ipv6>(data + net::kEthBytes);
      ip.version_class_flow = net::Ipv6::kPlain | outer_class << net::Ipv6::kClassShift;
      ip.payload_length = static_cast<uint16_t>(ip_bytes - net::kIpv6Bytes);
    } else {
      auto& ip = header_at<net::Ipv4>(data + net::kEthBytes);
      const bool is_df = df_ == OuterDf::kSet || (df_ == OuterDf::kCopy && is_inner_df);
      ip.tos = static_cast<uint8_t>(outer_class);
      ip.total_length = static_cast<uint16_t>(ip_bytes);
      if (is_df) {
        ip.fragment = net::Ipv4::kDontFragment;
      } else {
        ip.id = next_id_++;
      }
      const uint32_t sum = sa.header_sum + ip.total_length.raw() + (outer_class << 8) +
                           ip.fragment.raw() + ip.id.raw();
      ip.checksum.set_raw(static_cast<uint16_t>(~fold16(sum)));
    }
    if (!sa.is_over_udp) return;
    auto& udp = header_at<net::Udp>(data + net::kEthBytes + header_bytes);
    udp.length = static_cast<uint16_t>(ip_bytes - header_bytes);
  }

  void finish(Context& ctx, Batch& batch, const esp::SaTable& table, const Work& work) noexcept {
    if (!work.is_done) [[unlikely]] {
      ctx.drop(batch, work.index, esp::kCryptoFailed);
      return;
    }
    write_udp6_sum(*batch[work.index], table.sas[found_[work.index]]);
  }

  static void write_udp6_sum(Packet& pkt, const Sa& sa) noexcept {
    if (!sa.is_over_udp || !sa.is_outer6()) [[likely]]
      return;
    auto& ip = header_in<net::Ipv6>(pkt, net::kEthBytes);
    auto& udp = behind<net::Udp>(ip);
    l4::write_udp6_checksum(ip, udp, udp.length);
  }

  const SaBy by_;
  const OuterDf df_;
  const int32_t dscp_;
  const bool copies_ecn_;
  uint16_t next_id_ = 1;
  uint32_t found_[exec::kMaxBatchPkts] = {};
  std::atomic<uint64_t> guess_run_{0};
  esp::Crypto crypto_;
  esp::SaCommands sas_;
};

std::vector<ParamSpec> encrypt_params() {
  std::vector<ParamSpec> params = esp::SaCommands::params(
      "[{id, spi, suite, remote, local}], at most 65536; also esn: true (64-bit sequence "
      "numbers), udp: true (behind UDP port 4500), dst_mac and src_mac of the outer frame (a "
      "neighbour module behind sets them too), vrf, the table that routes the outer packet, and "
      "first_sequence");
  const std::vector<ParamSpec> own = {
      {.name = "by",
       .type = ParamType::kString,
       .default_value = "tunnel_id",
       .help = "which of the packet's notes is the SA's id",
       .choices = {"tunnel_id", "vrf", "mark"}},
      {.name = "ttl",
       .type = ParamType::kInt,
       .unit = "hops",
       .default_value = 64,
       .help = "TTL or hop limit of the outer header",
       .min = 1,
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
       .type = ParamType::kString,
       .default_value = "copy",
       .help = "whether routers on the way may not fragment the outer IPv4 packet",
       .choices = {"copy", "set", "clear"}}};
  return joined(params, own);
}

const Register<EspEncrypt> kEspEncrypt{{
    .kind = "esp_encrypt",
    .state = StateOf::kOneOwner,
    .help = "Encrypts IP packets into IPsec tunnels (ESP, tunnel mode).",
    .params = encrypt_params(),
    .drops = {&esp::kUnknownSa, &esp::kNotIp, &esp::kExhausted, &frame::kNoHeadroom,
              &esp::kNoTailroom, &frame::kFrameTooLong, &reason::kTooShort,
              &reason::kBadTotalLength, &esp::kCryptoFailed},
    .notes = "Suites: aes-128-gcm, aes-192-gcm, aes-256-gcm, chacha20-poly1305, aes-128-cbc-sha1, "
             "aes-256-cbc-sha1, aes-128-cbc-sha256, aes-256-cbc-sha256. The keys of GCM and "
             "ChaCha20 end in 4 bytes of salt. An SA stops before its sequence number would begin "
             "anew; a start of the program begins at first_sequence, so that it needs new keys. "
             "Live commands: add {id, spi, suite, remote, local, ..} (changes an SA that is "
             "there), delete {id}, replace {sas}, reload (reads the keys again), list; add and "
             "delete take {items: [...]} for many.",
    .can_offload = true,
}};

}  // namespace
}  // namespace batchplane
