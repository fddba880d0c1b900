// SPDX-License-Identifier: BSD-3-Clause
// hop_limit.cc - decrements the IPv6 hop limit; expired packets are dropped.
//
// in: 1   out: 1   drops: too_short, hop_limit_expired (send it to an icmp6_error module with
// on_drop)   state: none
#include "core/module/register.h"
#include "modules/headers/shared_reasons.h"

namespace batchplane {
namespace {

const DropReason kExpired{"hop_limit_expired", "the packet's hop limit ended at this router",
                          "look for a routing loop, or a traceroute; on_drop sends time exceeded"};

class HopLimit final : public Module {
 public:
  explicit HopLimit(const Args& /*args*/) {}

  void process(Context& ctx, Batch& batch) noexcept {
    Packet* const* const pkts = batch.pkts;
    const uint32_t n = batch.size_pkts;
    for (uint32_t i = 0; i < n; ++i) {
      Packet& pkt = *pkts[i];
      const uint32_t l3 = pkt.meta().l3_offset_bytes;
      if (pkt.len_bytes() < l3 + net::kIpv6Bytes) [[unlikely]] {
        ctx.drop(batch, i, reason::kTooShort);
        continue;
      }
      auto& ip = header_in<net::Ipv6>(pkt, l3);
      const uint8_t left = ip.hop_limit;
      if (left <= 1) [[unlikely]] {
        ctx.drop(batch, i, kExpired);
        continue;
      }
      ip.hop_limit = static_cast<uint8_t>(left - 1);
    }
  }
};

const Register<HopLimit> kHopLimit{{
    .kind = "hop_limit",
    .state = StateOf::kNone,
    .help = "Decrements the IPv6 hop limit; drops packets whose hop limit ends here.",
    .drops = {&reason::kTooShort, &kExpired},
    .is_for_ipv6 = true,
}};

}  // namespace
}  // namespace batchplane
