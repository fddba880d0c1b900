// SPDX-License-Identifier: BSD-3-Clause
// checksum.cc - writes or verifies the IPv4 header checksum.
//
// in: 1   out: 1   drops: bad_checksum, bad_version, bad_header_length, too_short   state: none
#include "core/module/register.h"
#include "modules/headers/ipv4_header.h"
#include "modules/headers/shared_reasons.h"

namespace batchplane {
namespace {

enum class Mode : uint8_t { kFull, kIncremental, kCheck };

Mode mode_of(const std::string& name) {
  if (name == "full") return Mode::kFull;
  return name == "check" ? Mode::kCheck : Mode::kIncremental;
}

class Checksum final : public Module {
 public:
  explicit Checksum(const Args& args)
      : mode_(mode_of(args.string("mode"))), ttl_steps_(args.u32("ttl_steps")) {}

  void process(Context& ctx, Batch& batch) noexcept {
    switch (mode_) {
      case Mode::kFull:
        return process_as<Mode::kFull>(ctx, batch);
      case Mode::kIncremental:
        return process_as<Mode::kIncremental>(ctx, batch);
      case Mode::kCheck:
        return process_as<Mode::kCheck>(ctx, batch);
    }
  }

 private:
  template <Mode kMode>
  void process_as(Context& ctx, Batch& batch) noexcept {
    // Packet stores may alias anything, so members that the loop reads are copied to locals.
    Packet* const* const pkts = batch.pkts;
    const uint32_t n = batch.size_pkts;
    [[maybe_unused]] const uint32_t ttl_steps = ttl_steps_;
    for (uint32_t i = 0; i < n; ++i) {
      Packet& pkt = *pkts[i];
      const uint32_t l3 = l3_offset_of(pkt);
      auto& ip = header_in<net::Ipv4>(pkt, l3);
      if (pkt.len_bytes() < l3 + net::kIpv4Bytes) [[unlikely]] {
        ctx.drop(batch, i, reason::kTooShort);
        continue;
      }
      uint64_t sum = 0;
      if constexpr (kMode == Mode::kFull) sum = sum_header20_but_checksum(ip);
      if constexpr (kMode == Mode::kCheck) sum = sum_header20(ip);
      if (ip.version_ihl != net::Ipv4::kPlain) [[unlikely]] {
        if (const DropReason* reason = fault_of(ip, pkt.len_bytes() - l3); reason != nullptr) {
          ctx.drop(batch, i, *reason);
          continue;
        }
        sum = add_with_carry(sum, sum_options(ip, ip.header_bytes()));
      }
      if constexpr (kMode == Mode::kFull) {
        ip.checksum.set_raw(static_cast<uint16_t>(~fold16(sum)));
      } else if constexpr (kMode == Mode::kIncremental) {
        lower_ttl_by(ip, ttl_steps);
      } else if (fold16(sum) != 0xffff) [[unlikely]] {
        ctx.drop(batch, i, reason::kBadIpv4Checksum);
      }
    }
  }

  static const DropReason* fault_of(const net::Ipv4& ip, uint32_t room_bytes) {
    if (ip.version() != 4) return &reason::kBadVersion;
    const uint32_t header_bytes = ip.header_bytes();
    return header_bytes < net::kIpv4Bytes || header_bytes > room_bytes ? &reason::kBadHeaderLength
                                                                       : nullptr;
  }

  // RFC 1624: the 16-bit word of TTL and protocol fell by steps * 0x0100, so the checksum rises by
  // the same amount, which is `steps` in memory order. 0xffff becomes 0, the form in which a full
  // sum stores this value.
  static void lower_ttl_by(net::Ipv4& ip, uint32_t steps) {
    const uint32_t sum = ip.checksum.raw() + steps;
    ip.checksum.set_raw(static_cast<uint16_t>(sum + (sum >= 0xffff ? 1 : 0)));
  }

  const Mode mode_;
  const uint32_t ttl_steps_;
};

const Register<Checksum> kChecksum{{
    .kind = "checksum",
    .state = StateOf::kNone,
    .help = "Writes or verifies the IPv4 header checksum.",
    .params =
        {{.name = "mode",
          .type = ParamType::kString,
          .default_value = "full",
          .help = "full: compute it anew; incremental: account for a TTL lowered before; check: "
                  "drop packets where it is wrong",
          .choices = {"full", "incremental", "check"}},
         {.name = "ttl_steps",
          .type = ParamType::kInt,
          .default_value = 1,
          .help = "incremental only: by how much the TTL was lowered since the checksum was right",
          .min = 1,
          .max = 255}},
    .drops = {&reason::kTooShort, &reason::kBadVersion, &reason::kBadHeaderLength,
              &reason::kBadIpv4Checksum},
    .notes =
        "The header starts where an earlier module found it, else at byte 14. Mode full makes any "
        "header right, broken ones too: check before it. Incremental keeps a wrong sum wrong.",
}};

}  // namespace
}  // namespace batchplane
