// SPDX-License-Identifier: BSD-3-Clause
// neighbour.cc - forwards IPv4 packets to their next hops: resolves the MAC by ARP and writes the
// Ethernet header.
//
// in: 1 (ARP frames, and IPv4 after its lookup)   out: gate = interface index
// drops: neighbour_reasons.h   state: neighbours and held packets; owner: the worker
#include "core/module/register.h"
#include "modules/headers/ipv4_header.h"
#include "modules/neighbour/neighbour_module.h"
#include "modules/neighbour/neighbour_resolver.h"

namespace batchplane {
namespace {

class NeighbourModule final : public NeighbourModuleOf<Ipv4Family, NeighbourResolver> {
 public:
  explicit NeighbourModule(const Args& args) : NeighbourModuleOf(args) {}

  void classify(Context& ctx, Batch& batch) noexcept {
    for (uint32_t i = 0; i < batch.size_pkts; ++i) {
      Packet& pkt = *batch[i];
      const uint32_t l3 = pkt.meta().l3_offset_bytes;
      if (l3 >= sizeof(net::Be16) && pkt.len_bytes() >= l3 &&
          type_before(pkt, l3) == net::kTypeArp) {
        resolver().handle_arp(ctx, batch, i, l3);
      } else if (is_too_short(pkt, l3, net::kIpv4Bytes)) {
        ctx.drop(batch, i, reason::kTooShort);
      } else {
        forward(ctx, batch, i, l3);
      }
    }
  }

 private:
  void forward(Context& ctx, Batch& batch, uint32_t i, uint32_t l3) noexcept {
    Packet& pkt = *batch[i];
    const NextHop* hop = hop_of(pkt);
    if (hop == nullptr || hop->interface >= resolver().interfaces().size()) {
      ctx.drop(batch, i, neighbour::kNoInterface);
      return;
    }
    const auto& ip = header_in<net::Ipv4>(pkt, l3);
    if (ip.total_length > resolver().interfaces()[hop->interface].mtu_bytes) {
      ctx.drop(batch, i, neighbour::kMtuExceeded);
      return;
    }
    send(ctx, batch, i, l3, hop->interface, *hop, ip.dst);
  }
};

const Register<NeighbourModule> kNeighbour{{
    .kind = "neighbour",
    .state = StateOf::kOneOwner,
    .help = "Resolves next hops by ARP, writes Ethernet headers, answers ARP requests.",
    .params = neighbour_params(60'000'000'000,
                               "tell the links about our addresses at the start (gratuitous ARP)"),
    .drops = {&neighbour::kUnreachable, &neighbour::kHoldFull, &neighbour::kTableFull,
              &neighbour::kMtuExceeded, &neighbour::kNoInterface, &neighbour::kArpMalformed,
              &neighbour::kArpConflict, &neighbour::kArpDone, &reason::kTooShort},
    .notes =
        "Gate N leads to the port of interface N (in the order of the pipeline's interfaces). Send "
        "it "
        "ARP frames (EtherType 0x0806) and the IPv4 packets of an ipv4_lookup of the same table. "
        "Packets longer than the interface's MTU are dropped for mtu_exceeded. Live commands: add "
        "{interface, address, mac} (static), delete {interface, address}, list. At an apply the "
        "new "
        "file decides about the entries that files declare; those learnt or added live stay.",
}};

}  // namespace
}  // namespace batchplane
