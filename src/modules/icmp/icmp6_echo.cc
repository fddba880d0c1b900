// SPDX-License-Identifier: BSD-3-Clause
// icmp6_echo.cc - answers IPv6 pings to the router's own addresses and groups; separates neighbour
// discovery messages.
//
// in: 1   out: reply (0), other (1), neighbour (2)   drops: bad_icmp_checksum   state: none
#include "core/module/register.h"
#include "modules/headers/ipv6_header.h"
#include "modules/headers/shared_reasons.h"
#include "modules/icmp/icmp6.h"
#include "modules/icmp/own_address6.h"
#include "modules/route/route_family.h"

namespace batchplane {
namespace {

constexpr GateIndex kReply6Gate = 0;
constexpr GateIndex kOther6Gate = 1;
constexpr GateIndex kNeighbourGate = 2;
constexpr uint8_t kEchoHopLimit = 64;

class Icmp6Echo final : public Module {
 public:
  explicit Icmp6Echo(const Args& args) : interfaces_(args.env().interfaces) {}

  void classify(Context& ctx, Batch& batch) noexcept {
    for (uint32_t i = 0; i < batch.size_pkts; ++i) {
      Packet& pkt = *batch[i];
      const uint32_t l3 = pkt.meta().l3_offset_bytes;
      ctx.gates[i] = kOther6Gate;
      const uint32_t len_bytes = pkt.len_bytes();
      if (len_bytes < l3 + net::kIpv6Bytes + net::kIcmpBytes) continue;
      auto& ip = header_in<net::Ipv6>(pkt, l3);
      const uint32_t icmp_bytes = ip.payload_length;
      if (ip.version() != 6 || ip.next_header != net::kProtoIcmp6 || icmp_bytes < net::kIcmpBytes ||
          icmp_bytes > len_bytes - l3 - net::kIpv6Bytes) {
        continue;
      }
      auto& message = behind<net::Icmp>(ip);
      if (icmp6::is_discovery(message.type)) {
        ctx.gates[i] = kNeighbourGate;
        continue;
      }
      if (message.type != icmp6::kEchoRequest || message.code != 0) continue;
      const net::Address6 sender = ip.src;
      const net::Address6 own = answering(pkt, ip.dst, sender);
      if (own.is_unspecified() || !Ipv6Family::is_unicast(sender)) continue;
      if (icmp6::checksum(ip, icmp_bytes) != 0) {
        ctx.drop(batch, i, reason::kBadIcmpChecksum);
        continue;
      }
      ip.hop_limit = kEchoHopLimit;
      ip.src = own;
      ip.dst = sender;
      message.type = icmp6::kEchoReply;
      icmp6::write_checksum(ip, icmp_bytes);
      ctx.gates[i] = kReply6Gate;
    }
  }

  uint32_t link(uint32_t /*connected*/) override { return 3; }

 private:
  // The own address to answer from; :: when the packet is not for this router.
  [[nodiscard]] net::Address6 answering(Packet& pkt, const net::Address6& dst,
                                        const net::Address6& sender) const noexcept {
    const uint16_t in = pkt.meta().in_interface;
    if (dst.is_multicast()) {
      const bool is_listening = dst == net::kAllNodes || dst == net::kAllRouters;
      return is_listening && in < interfaces_.size() ? own_source6(interfaces_, in, sender)
                                                     : net::Address6{};
    }
    return is_own6(interfaces_, in, dst) ? dst : net::Address6{};
  }

  const std::vector<Interface> interfaces_;
};

const Register<Icmp6Echo> kIcmp6Echo{{
    .kind = "icmp6_echo",
    .state = StateOf::kNone,
    .help = "Answers echo requests to the interfaces' IPv6 addresses, all nodes and all routers.",
    .gate_names = {"reply", "other", "neighbour"},
    .drops = {&reason::kBadIcmpChecksum},
    .notes = "Put it behind the gate `local` of an ipv6_lookup; `reply` leads to a second "
             "ipv6_lookup of the same table, `neighbour` (discovery messages) to the neighbour6 "
             "module, `other` to a local_tap or a drop module. Requests with extension headers "
             "leave by `other`.",
    .is_for_ipv6 = true,
}};

}  // namespace
}  // namespace batchplane
