// SPDX-License-Identifier: BSD-3-Clause
// icmp_echo.cc - answers pings to the router's own addresses; passes on everything else.
//
// in: 1   out: reply (0), other (1)   drops: bad_icmp_checksum   state: none
#include "base/net.h"
#include "core/module.h"
#include "modules/ipv4_header.h"
#include "modules/shared_reasons.h"

namespace batchplane {
namespace {

constexpr GateIndex kReplyGate = 0;
constexpr GateIndex kOtherGate = 1;
constexpr uint8_t kEchoRequest = 8;
constexpr uint32_t kIcmpBytes = 8;
constexpr uint8_t kTtl = 64;

class IcmpEcho final : public Module {
 public:
  explicit IcmpEcho(const Args& args) : interfaces_(args.env().interfaces) {}

  void classify(Context& ctx, Batch& batch) noexcept {
    for (uint32_t i = 0; i < batch.size_pkts; ++i) {
      Packet& pkt = *batch[i];
      const uint32_t l3 = pkt.meta().l3_offset_bytes;
      ctx.gates[i] = kOtherGate;
      if (!is_request(pkt, l3)) continue;
      uint8_t* ip = pkt.data() + l3;
      uint8_t* icmp = ip + net::kIpv4Bytes;
      const uint32_t icmp_bytes = net::load16(ip + net::kIpTotalLength) - net::kIpv4Bytes;
      if (net::checksum_finish(net::checksum_add(icmp, icmp_bytes)) != 0) {
        ctx.drop(batch, i, reason::kBadIcmpChecksum);
        continue;
      }
      answer(ip, icmp);
      ctx.gates[i] = kReplyGate;
    }
  }

  [[nodiscard]] uint32_t gates_used(uint32_t /*connected*/) const override { return 2; }

 private:
  // A whole request to an own address. Options and fragments are left to a real host stack.
  [[nodiscard]] bool is_request(Packet& pkt, uint32_t l3) const noexcept {
    const uint32_t len = pkt.len_bytes();
    if (len < l3 + net::kIpv4Bytes + kIcmpBytes) return false;
    const uint8_t* ip = pkt.data() + l3;
    const uint32_t total_bytes = net::load16(ip + net::kIpTotalLength);
    if (ip[0] != 0x45 || ip[net::kIpProto] != net::kProtoIcmp ||
        total_bytes < net::kIpv4Bytes + kIcmpBytes || total_bytes > len - l3) {
      return false;
    }
    if ((net::load16(ip + net::kIpFragment) & 0x3fff) != 0) return false;
    const uint8_t* icmp = ip + net::kIpv4Bytes;
    if (icmp[0] != kEchoRequest || icmp[1] != 0) return false;
    const uint32_t src_top = ip[net::kIpSrc];
    if (src_top == 0 || src_top == 127 || src_top >= 224) return false;
    return is_own(net::load32(ip + net::kIpDst));
  }

  [[nodiscard]] bool is_own(uint32_t address) const noexcept {
    for (const Interface& interface : interfaces_) {
      for (const net::Prefix4& own : interface.addresses) {
        if (own.address == address) return true;
      }
    }
    return false;
  }

  static void answer(uint8_t* ip, uint8_t* icmp) noexcept {
    const uint32_t src = net::load32(ip + net::kIpSrc);
    const uint32_t dst = net::load32(ip + net::kIpDst);
    net::store32(ip + net::kIpSrc, dst);
    net::store32(ip + net::kIpDst, src);
    ip[net::kIpTtl] = kTtl;
    net::store16(ip + net::kIpChecksum, 0);
    net::store16(ip + net::kIpChecksum,
                 net::checksum_finish(net::checksum_add(ip, net::kIpv4Bytes)));
    icmp[0] = 0;
    // RFC 1624: type and code fell by 0x0800, so the checksum rises by it.
    const uint32_t sum = net::load16(icmp + 2) + (uint32_t{kEchoRequest} << 8);
    net::store16(icmp + 2, static_cast<uint16_t>(sum + (sum >> 16)));
  }

  const std::vector<Interface> interfaces_;
};

const Register<IcmpEcho> kIcmpEcho{{
    .kind = "icmp_echo",
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
