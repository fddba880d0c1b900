// SPDX-License-Identifier: BSD-3-Clause
// neighbour_arp.cc - answers ARP messages, learns from them, or drops them.
#include "modules/neighbour/neighbour_reasons.h"
#include "modules/neighbour/neighbour_resolver.h"

namespace batchplane {
namespace {

constexpr net::Mac kBroadcast{0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

}  // namespace

void NeighbourResolver::handle_arp(Context& ctx, Batch& batch, uint32_t i, uint32_t l3) noexcept {
  Packet& pkt = *batch[i];
  auto& message = header_in<net::Arp>(pkt, l3);
  const uint16_t interface = pkt.meta().in_interface;
  if (interface >= interfaces_.size()) {
    ctx.drop(batch, i, neighbour::kNoInterface);
    return;
  }
  if (l3 < net::kEthBytes || !arp::is_valid(message, pkt.len_bytes() - l3)) {
    ctx.drop(batch, i, neighbour::kArpMalformed);
    return;
  }
  const uint32_t sender = message.sender_ip;
  const uint32_t target = message.target_ip;
  const net::Mac mac = message.sender_mac;
  if (sender != 0 && own_address(interface, sender) != nullptr) {
    ctx.drop(batch, i,
             mac == interfaces_[interface].mac ? neighbour::kArpDone : neighbour::kArpConflict);
    return;
  }
  const bool is_for_us = own_address(interface, target) != nullptr;
  const bool is_request = message.operation == arp::kRequest;
  // A new sender is learnt only from a request for our address; a known one may always update its
  // MAC.
  learn(ctx, interface, sender, mac, is_for_us && is_request);
  if (!is_request || !is_for_us) {
    ctx.drop(batch, i, neighbour::kArpDone);
    return;
  }
  arp::write_message(message, arp::kReply, interfaces_[interface].mac, target, mac, sender);
  if (l3 > net::kEthBytes) pkt.pull_front(l3 - net::kEthBytes);
  pkt.meta().l3_offset_bytes = net::kEthBytes;
  arp::write_eth(pkt.data(), mac, interfaces_[interface].mac, net::kTypeArp);
  ctx.gates[i] = interface;
}

void NeighbourResolver::solicit(Context& ctx, uint16_t interface, const net::Mac* known,
                                const uint32_t& address) noexcept {
  send_request(ctx, interface, known != nullptr ? *known : kBroadcast,
               source_for(interface, address), address);
}

void NeighbourResolver::send_request(Context& ctx, uint16_t interface, const net::Mac& dst,
                                     uint32_t source, uint32_t wanted) noexcept {
  Packet* pkt = ctx.originate(arp::kFrameBytes);
  if (pkt == nullptr) return;  // counts as a try: the next one follows after retry_ns
  arp::write_request(pkt->data(), dst, interfaces_[interface].mac, source, wanted);
  send(ctx, interface, pkt);
}

void NeighbourResolver::announce(Context& ctx) noexcept {
  is_announcing_ = false;
  for (const Interface& interface : interfaces_) {
    for (const net::Prefix4& own : interface.addresses) {
      send_request(ctx, interface.index, kBroadcast, own.address, own.address);
    }
  }
}

}  // namespace batchplane
