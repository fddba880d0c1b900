// SPDX-License-Identifier: BSD-3-Clause
// ttl.cc - decrements the IPv4 TTL and updates the header checksum; expired packets are dropped.
//
// in: 1   out: 1   drops: too_short, ttl_expired (send it to an icmp_error module with on_drop)
// state: none
#include "core/module/register.h"
#include "modules/headers/ipv4_header.h"
#include "modules/headers/shared_reasons.h"

namespace batchplane {
namespace {

const DropReason kTtlExpired{
    "ttl_expired", "the packet's TTL ended at this router",
    "look for a routing loop, or a traceroute; on_drop sends time exceeded"};

class Ttl final : public Module {
 public:
  explicit Ttl(const Args& args) : is_checksum_mended_(args.flag("mend_checksum")) {}

  void process(Context& ctx, Batch& batch) noexcept {
    // Packet stores may alias anything, so members that the loop reads are copied to locals.
    const bool is_mended = is_checksum_mended_;
    Packet* const* const pkts = batch.pkts;
    const uint32_t n = batch.size_pkts;
    for (uint32_t i = 0; i < n; ++i) {
      Packet& pkt = *pkts[i];
      const uint32_t l3 = l3_offset_of(pkt);
      auto& ip = header_in<net::Ipv4>(pkt, l3);
      if (pkt.len_bytes() < l3 + net::kIpv4Bytes) [[unlikely]] {
        ctx.drop(batch, i, reason::kTooShort);
        continue;
      }
      if (ip.ttl <= 1) [[unlikely]] {
        ctx.drop(batch, i, kTtlExpired);
        continue;
      }
      lower_ttl(ip, is_mended);
    }
  }

 private:
  const bool is_checksum_mended_;
};

const Register<Ttl> kTtl{{
    .kind = "ttl",
    .state = StateOf::kNone,
    .help = "Decrements the IPv4 TTL; drops packets whose TTL ends here.",
    .params = {{.name = "mend_checksum",
                .type = ParamType::kBool,
                .default_value = true,
                .help = "update the header checksum incrementally (RFC 1624)"}},
    .drops = {&reason::kTooShort, &kTtlExpired},
}};

}  // namespace
}  // namespace batchplane
