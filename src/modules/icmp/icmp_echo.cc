// SPDX-License-Identifier: BSD-3-Clause
// icmp_echo.cc - answers pings to the router's own addresses; passes on everything else.
//
// in: 1   out: reply (0), other (1)   drops: bad_icmp_checksum   state: none
#include <utility>

#include "core/module/register.h"
#include "modules/headers/ipv4_header.h"
#include "modules/headers/shared_reasons.h"

namespace batchplane {
namespace {

constexpr GateIndex kReplyGate = 0;
constexpr GateIndex kOtherGate = 1;
constexpr uint8_t kEchoRequest = 8;
constexpr uint8_t kEchoReply = 0;
constexpr uint8_t kEchoTtl = 64;

class IcmpEcho final : public Module {
 public:
  explicit IcmpEcho(const Args& args) : interfaces_(args.env().interfaces) {}

  void classify(Context& ctx, Batch& batch) noexcept {
    for (uint32_t i = 0; i < batch.size_pkts; ++i) {
      Packet& pkt = *batch[i];
      const uint32_t l3 = pkt.meta().l3_offset_bytes;
      ctx.gates[i] = kOtherGate;
      if (!is_request(pkt, l3)) continue;
      auto& ip = header_in<net::Ipv4>(pkt, l3);
      auto& icmp = behind<net::Icmp>(ip);
      const uint32_t icmp_bytes = ip.total_length - net::kIpv4Bytes;
      if (net::checksum_finish(net::checksum_add(bytes_of(icmp), icmp_bytes)) != 0) {
        ctx.drop(batch, i, reason::kBadIcmpChecksum);
        continue;
      }
      answer(ip, icmp);
      ctx.gates[i] = kReplyGate;
    }
  }

  uint32_t link(uint32_t /*connected*/) override { return 2; }

 private:
  // True for an unfragmented echo request without options to an own address. A real host stack
  // handles options and fragments.
  [[nodiscard]] bool is_request(Packet& pkt, uint32_t l3) const noexcept {
    const uint32_t len = pkt.len_bytes();
    if (len < l3 + net::kIpv4Bytes + net::kIcmpBytes) return false;
    const auto& ip = header_in<net::Ipv4>(pkt, l3);
    const uint32_t total_bytes = ip.total_length;
    if (ip.version_ihl != net::Ipv4::kPlain || ip.protocol != net::kProtoIcmp ||
        total_bytes < net::kIpv4Bytes + net::kIcmpBytes || total_bytes > len - l3) {
      return false;
    }
    if (ip.is_fragment()) return false;
    const auto& icmp = behind<net::Icmp>(ip);
    if (icmp.type != kEchoRequest || icmp.code != 0) return false;
    const uint32_t src_top = ip.src >> 24;
    if (src_top == 0 || src_top == 127 || src_top >= 224) return false;
    return is_own(ip.dst);
  }

  [[nodiscard]] bool is_own(uint32_t address) const noexcept {
    for (const Interface& interface : interfaces_) {
      for (const net::Prefix4& own : interface.addresses) {
        if (own.address == address) return true;
      }
    }
    return false;
  }

  static void answer(net::Ipv4& ip, net::Icmp& icmp) noexcept {
    std::swap(ip.src, ip.dst);
    ip.ttl = kEchoTtl;
    write_checksum(ip);
    icmp.type = kEchoReply;
    // RFC 1624: the word of type and code fell by 0x0800, so the checksum rises by as much.
    const uint32_t sum = icmp.checksum + (uint32_t{kEchoRequest} << 8);
    icmp.checksum = static_cast<uint16_t>(sum + (sum >> 16));
  }

  const std::vector<Interface> interfaces_;
};

const Register<IcmpEcho> kIcmpEcho{{
    .kind = "icmp_echo",
    .state = StateOf::kNone,
    .help = "Answers echo requests to the interfaces' addresses; the rest leaves by `other`.",
    .gate_names = {"reply", "other"},
    .drops = {&reason::kBadIcmpChecksum},
    .notes = "Put it behind the gate `local` of an ipv4_lookup; `reply` leads to a second "
             "ipv4_lookup of the "
             "same table, `other` to a local_tap or a drop module. Requests with IP options, "
             "fragments and pings to "
             "broadcast addresses leave by `other`.",
}};

}  // namespace
}  // namespace batchplane
