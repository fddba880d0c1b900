// SPDX-License-Identifier: BSD-3-Clause
// icmp6_echo.cc - answers IPv6 pings to the router's own addresses and groups; sorts out what is
// neighbour discovery's.
//
// in: 1   out: reply (0), other (1), neighbour (2)   drops: bad_icmp_checksum   state: none
#include "core/module.h"
#include "modules/icmp6.h"
#include "modules/ipv6_header.h"
#include "modules/own_address6.h"
#include "modules/route_family.h"
#include "modules/shared_reasons.h"

namespace batchplane {
namespace {

constexpr GateIndex kReplyGate = 0;
constexpr GateIndex kOtherGate = 1;
constexpr GateIndex kNeighbourGate = 2;
constexpr uint8_t kHopLimit = 64;

class Icmp6Echo final : public Module {
 public:
  explicit Icmp6Echo(const Args& args) : interfaces_(args.env().interfaces) {}

  void classify(Context& ctx, Batch& batch) noexcept {
    for (uint32_t i = 0; i < batch.size_pkts; ++i) {
      Packet& pkt = *batch[i];
      const uint32_t l3 = pkt.meta().l3_offset_bytes;
      ctx.gates[i] = kOtherGate;
      const uint32_t len_bytes = pkt.len_bytes();
      if (len_bytes < l3 + net::kIpv6Bytes + icmp6::kHeaderBytes) continue;
      uint8_t* ip = pkt.data() + l3;
      const uint32_t icmp_bytes = net::load16(ip + net::kIp6PayloadLength);
      if (ip[0] >> 4 != 6 || ip[net::kIp6NextHeader] != net::kProtoIcmp6 ||
          icmp_bytes < icmp6::kHeaderBytes || icmp_bytes > len_bytes - l3 - net::kIpv6Bytes) {
        continue;
      }
      uint8_t* message = ip + net::kIpv6Bytes;
      if (icmp6::is_discovery(message[0])) {
        ctx.gates[i] = kNeighbourGate;
        continue;
      }
      if (message[0] != icmp6::kEchoRequest || message[1] != 0) continue;
      const net::Address6 sender = net::load_address6(ip + net::kIp6Src);
      const net::Address6 own = answering(pkt, ip, sender);
      if (own.is_unspecified() || !Ipv6Family::is_unicast(sender)) continue;
      if (icmp6::checksum(ip, message, icmp_bytes) != 0) {
        ctx.drop(batch, i, reason::kBadIcmpChecksum);
        continue;
      }
      ip[net::kIp6HopLimit] = kHopLimit;
      net::store_address6(ip + net::kIp6Src, own);
      net::store_address6(ip + net::kIp6Dst, sender);
      message[0] = icmp6::kEchoReply;
      icmp6::write_checksum(ip, message, icmp_bytes);
      ctx.gates[i] = kReplyGate;
    }
  }

  [[nodiscard]] uint32_t gates_used(uint32_t /*connected*/) const override { return 3; }

 private:
  // The own address from which to answer; :: when the packet is for somebody else.
  [[nodiscard]] net::Address6 answering(Packet& pkt, const uint8_t* ip,
                                        const net::Address6& sender) const noexcept {
    const net::Address6 dst = net::load_address6(ip + net::kIp6Dst);
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
    .help = "Answers echo requests to the interfaces' IPv6 addresses, all nodes and all routers.",
    .gate_names = {"reply", "other", "neighbour"},
    .drops = {&reason::kBadIcmpChecksum},
    .notes = "Put it behind the gate `local` of an ipv6_lookup; `reply` leads to a second "
             "ipv6_lookup of the same table, `neighbour` (discovery messages) to the neighbour6 "
             "module, `other` to a local_tap or a drop module. Requests with extension headers "
             "leave by `other`.",
}};

}  // namespace
}  // namespace batchplane
